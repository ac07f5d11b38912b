#include "bindings/messages.h"

#include <cstdio>
#include <limits>

#include "floating_point.h"

namespace arrcomp {
namespace {

// The first numbers, as short as they are the same float64.
std::string list_of(std::span<const double> numbers) {
  constexpr size_t max_shown = 16;
  std::string list = "(";
  for (size_t i = 0; i < numbers.size() && i < max_shown; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%s%.17g", i > 0 ? ", " : "", numbers[i]);
    list += text;
  }
  return list + (numbers.size() > max_shown ? ", ...)" : ")");
}

template <class Settings>
std::string unexpected_parameters(const char* codec, std::span<const double> parameters) {
  std::string names;
  for (const std::string_view name : parameter_names<Settings>()) names += std::string(name) + ", ";
  return expected("parameters", names + "as " + codec + " takes them", list_of(parameters));
}

std::string unexpected_codec(int64_t codec_id, std::span<const double> parameters) {
  switch (codec_id) {
#define ARRCOMP_MESSAGE(id, name, Type, text) \
  case id: return unexpected_parameters<Type##Settings>(text, parameters);
    ARRCOMP_CODECS(ARRCOMP_MESSAGE)
#undef ARRCOMP_MESSAGE
  }
  return expected("codec_id", "the id of a codec", std::to_string(codec_id));
}

}  // namespace

std::string read_codec(int64_t codec_id, std::span<const double> parameters, const Element& element, Codec& codec) {
  const DefaultFloatingPoint environment;  // parameters may become subnormal numbers
  const bool is_id = codec_id >= 0 && codec_id <= std::numeric_limits<uint8_t>::max();
  if (!is_id || !codec_of(static_cast<int>(codec_id), parameters, codec)) return unexpected_codec(codec_id, parameters);
  if (takes(codec, element)) return "";
  return expected("dtype_id", "one that codec " + std::to_string(codec_id) + " takes with these parameters", "another");
}

std::string wrong_reference(const WrongReference& wrong, size_t arrays) {
  const std::string name = arrays == 1 ? "reference" : "reference of array " + std::to_string(wrong.array);
  const auto described = [](const char* what, uint64_t hash) {
    char text[96];
    std::snprintf(text, sizeof text, "%s (hash %016llx)", what, static_cast<unsigned long long>(hash));
    return std::string(text);
  };
  return expected(name, described("the array that was given to compress", wrong.expected),
                  described("another one", wrong.got));
}

std::string read_steps(std::span<const double> numbers, Steps& steps) {
  const DefaultFloatingPoint environment;  // borders and levels may become subnormal numbers
  if (Steps::read(numbers, steps)) return "";
  return expected("steps", "a rule, bits, borders and levels", list_of(numbers));
}

std::string read_activation(std::string_view function, std::span<const double> parameters, Activation& activation) {
  if (find_activation(function, parameters, activation)) return "";
  std::string got(function);
  got.append(" with ").append(list_of(parameters));
  return expected("function", "a known one, and as many parameters as it takes", got);
}

}  // namespace arrcomp
