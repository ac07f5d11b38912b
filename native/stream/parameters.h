// A codec's parameters by name. Each type of settings lists them in `parameters()`: the name, the member and its range.
// Names, order and checks of the numbers that a codec travels as (FORMAT.md has nothing of these) follow from the list.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace arrcomp {

using Reals = std::span<const double>;

inline bool is_integer(double x, double min, double max) {
  return x >= min && x <= max && x == static_cast<double>(static_cast<int64_t>(x));
}

namespace detail {

// A field is a pointer to a member, or a function that returns a reference to one further inside.
template <class Field, class Settings>
constexpr auto& member(const Field& field, Settings& settings) {
  if constexpr (std::is_member_object_pointer_v<Field>) {
    return settings.*field;
  } else {
    return field(settings);
  }
}

inline bool take(Reals& numbers, double& number) {
  if (numbers.empty()) return false;
  number = numbers.front();
  numbers = numbers.subspan(1);
  return true;
}

template <class Field>
struct IntegerParameter {
  std::array<std::string_view, 1> names;
  Field field;
  double min, max;
  bool may_be_zero;

  template <class Settings>
  bool read(Reals& numbers, Settings& settings) const {
    double x = 0;
    if (!take(numbers, x) || !(is_integer(x, min, max) || (may_be_zero && x == 0))) return false;
    auto& target = member(field, settings);
    target = static_cast<std::remove_reference_t<decltype(target)>>(static_cast<int64_t>(x));
    return true;
  }
};

template <class Field>
struct RealParameter {
  std::array<std::string_view, 1> names;
  Field field;
  double min, max;

  template <class Settings>
  bool read(Reals& numbers, Settings& settings) const {
    double x = 0;
    if (!take(numbers, x) || !(x >= min && x <= max)) return false;
    member(field, settings) = x;
    return true;
  }
};

template <class Field>
struct MaskParameter {
  std::array<std::string_view, 2> names;  // of the lower and the upper 32 bits
  Field field;
  uint64_t always_set;

  template <class Settings>
  bool read(Reals& numbers, Settings& settings) const {
    double low = 0, high = 0;
    if (!take(numbers, low) || !take(numbers, high) || !is_integer(low, 0, 0xffffffff) ||
        !is_integer(high, 0, 0xffffffff))
      return false;
    member(field, settings) = static_cast<uint64_t>(high) << 32 | static_cast<uint64_t>(low) | always_set;
    return true;
  }
};

template <class Settings>
struct TableParameter {
  std::array<std::string_view, 2> names;  // of two lists, the second with one number more
  bool (Settings::*set)(Reals, Reals);

  bool read(Reals& numbers, Settings& settings) const {
    if (numbers.size() % 2 == 0) return false;
    const size_t first = numbers.size() / 2;
    const bool ok = (settings.*set)(numbers.first(first), numbers.subspan(first));
    numbers = {};
    return ok;
  }
};

}  // namespace detail

constexpr double max_bucket_size = 0x1p40;
constexpr double max_real = 0x1.fffffffffffffp1023;

// From `min` to `max`; for enumerations too.
template <class Field>
constexpr auto integer(std::string_view name, Field field, double min, double max) {
  return detail::IntegerParameter<Field>{{name}, field, min, max, false};
}

// The same, or 0.
template <class Field>
constexpr auto integer_or_zero(std::string_view name, Field field, double min, double max) {
  return detail::IntegerParameter<Field>{{name}, field, min, max, true};
}

template <class Field>
constexpr auto flag(std::string_view name, Field field) {
  return integer(name, field, 0, 1);
}

// Finite, and not NaN.
template <class Field>
constexpr auto real(std::string_view name, Field field, double min, double max) {
  return detail::RealParameter<Field>{{name}, field, min, max};
}

// 64 bits, as two numbers of 32.
template <class Field>
constexpr auto mask(std::string_view low, std::string_view high, Field field, uint64_t always_set) {
  return detail::MaskParameter<Field>{{low, high}, field, always_set};
}

// Two lists, the last parameters: (settings.*set)(first, second) says whether they are right.
template <class Settings>
constexpr auto table(std::string_view first, std::string_view second, bool (Settings::*set)(Reals, Reals)) {
  return detail::TableParameter<Settings>{{first, second}, set};
}

// False where the numbers are not parameters of these settings.
template <class Settings>
bool read_parameters(Reals numbers, Settings& settings) {
  const auto read_all = [&](const auto&... parameter) { return (parameter.read(numbers, settings) && ...); };
  if (!std::apply(read_all, Settings::parameters()) || !numbers.empty()) return false;
  if constexpr (requires { settings.is_consistent(); }) return settings.is_consistent();
  return true;
}

// In the order in which the numbers come.
template <class Settings>
std::vector<std::string_view> parameter_names() {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& parameter) {
    names.insert(names.end(), parameter.names.begin(), parameter.names.end());
  };
  std::apply([&](const auto&... parameter) { (add(parameter), ...); }, Settings::parameters());
  return names;
}

}  // namespace arrcomp
