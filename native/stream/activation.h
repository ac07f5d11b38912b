// Activation functions, and the steps that stand for their derivatives.
#pragma once
#include <limits>
#include <string_view>

#include "stream/buckets.h"
#include "stream/parameters.h"
#include "stream/step_tables.h"

namespace arrcomp {

// Which number of a step a value has: that of borders below it (or below its magnitude); or 1 between two borders or
// outside of them, both exclusive.
enum class StepRule : int { ascending = 0, even = 1, inside = 2, outside = 3 };

struct Steps {
  StepTables tables;
  StepRule rule;
  float lower, upper;  // of the two borders

  // From numbers in this order: the rule, bits, borders, levels.
  static bool read(Reals numbers, Steps& steps) {
    if (numbers.size() < 2) return false;
    const double rule = numbers[0], bits = numbers[1];
    const Reals tables = numbers.subspan(2);
    if (!is_integer(rule, 0, 3)) return false;
    steps.rule = static_cast<StepRule>(static_cast<int>(rule));
    const size_t borders = tables.size() / 2;
    bool ok;
    if (steps.rule == StepRule::ascending || steps.rule == StepRule::even) {
      ok = steps.tables.set(tables.first(borders), tables.subspan(borders));
    } else {
      ok = tables.size() == 4 && steps.set_pair(tables[0], tables[1]) &&
           steps.tables.set(tables.first(1), tables.subspan(2));
    }
    return ok && bits == steps.tables.bits;
  }

 private:
  bool set_pair(double from, double to) {
    lower = static_cast<float>(from);
    upper = static_cast<float>(to);
    return std::isfinite(lower) && std::isfinite(upper) && lower < upper;
  }
};

// What is calculated; the names that users know are mapped to these by `find_activation`.
enum class Function : int {
  none,
  gelu,
  gelu_tanh,
  silu,
  mish,
  sigmoid,
  tanh,
  softplus,
  softsign,
  elu,
  celu,
  hardswish,
  tanhshrink,
  leaky_relu,
  threshold,
  hardsigmoid,
  hardtanh,
  hardshrink,
  softshrink
};

struct Activation {
  Function function;
  double parameters[2];
};

namespace detail {

struct ActivationName {
  std::string_view name;
  Activation activation;  // with the parameters that are not the caller's
  size_t given;           // parameters, the first ones
};

constexpr double infinity = std::numeric_limits<double>::infinity();
// G. Klambauer et al., arXiv:1706.02515, equation 14.
constexpr double selu_alpha = 1.6732632423543772848, selu_scale = 1.0507009873554804934;

constexpr ActivationName activation_names[] = {
    {"", {Function::none, {}}, 0},
    {"gelu", {Function::gelu, {}}, 0},
    {"gelu_tanh", {Function::gelu_tanh, {}}, 0},
    {"silu", {Function::silu, {}}, 0},
    {"mish", {Function::mish, {}}, 0},
    {"sigmoid", {Function::sigmoid, {}}, 0},
    {"tanh", {Function::tanh, {}}, 0},
    {"softplus", {Function::softplus, {}}, 2},
    {"logsigmoid", {Function::softplus, {-1, infinity}}, 0},
    {"softsign", {Function::softsign, {}}, 0},
    {"elu", {Function::elu, {1, 1}}, 1},
    {"selu", {Function::elu, {selu_alpha, selu_scale}}, 0},
    {"celu", {Function::celu, {}}, 1},
    {"hardswish", {Function::hardswish, {}}, 0},
    {"tanhshrink", {Function::tanhshrink, {}}, 0},
    {"relu", {Function::threshold, {0, 0}}, 0},
    {"threshold", {Function::threshold, {}}, 2},
    {"leaky_relu", {Function::leaky_relu, {}}, 1},
    {"hardsigmoid", {Function::hardsigmoid, {}}, 0},
    {"relu6", {Function::hardtanh, {0, 6}}, 0},
    {"hardtanh", {Function::hardtanh, {}}, 2},
    {"hardshrink", {Function::hardshrink, {}}, 1},
    {"softshrink", {Function::softshrink, {}}, 1},
};

}  // namespace detail

// The function of this name with these parameters; false if there is none, or these are not as many as it takes.
inline bool find_activation(std::string_view name, std::span<const double> parameters, Activation& activation) {
  for (const detail::ActivationName& row : detail::activation_names) {
    if (row.name != name) continue;
    activation = row.activation;
    for (size_t i = 0; i < row.given && i < parameters.size(); ++i) activation.parameters[i] = parameters[i];
    return parameters.size() == row.given;
  }
  return false;
}

// What is kept of an array for its gradient: the numbers of its elements' steps, packed as the codes of quantizers are
// (FORMAT.md, section 3.3). Bytes of `count` elements.
constexpr uint64_t step_bytes(const Steps& steps, uint64_t count) {
  return code_bytes(count, static_cast<uint32_t>(steps.tables.bits));
}

// An array to activate, in a back end's memory space.
struct ActivateTask {
  const void* source;  // `count` elements; any alignment on the CPU, the element's on CUDA
  void* values;        // as many, which may be the source; null where none are wanted
  uint8_t* packed;     // step_bytes, aligned to 4; null where none are wanted
  uint64_t count;
};

// Gradients that become those of a source: times the level of each element's step.
struct StepGradTask {
  const uint8_t* packed;  // step_bytes, aligned to 4
  const void* gradients;
  void* target;  // may be the gradients
  uint64_t count;
};

// Elements that are worked on together: their packed numbers fill whole words.
constexpr int activation_unit = lanes_per_row * 32;

}  // namespace arrcomp
