// Activation functions on lanes, and gradients times the levels of steps: forward makes a value and the number of its
// step in one pass, backward looks the level up (G. Novikov et al., "Few-bit backward", arXiv:2202.00441, section 2).
#pragma once
#include "codecs/numeric/elementary.h"
#include "codecs/numeric/steps.h"
#include "codecs/packing.h"
#include "codecs/real_elements.h"
#include "stream/activation.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int activation_rows = 4;  // that are worked on together: 8 bits of each of them fill a word

// --- functions, of which the formulas are PyTorch's. NaN stays NaN.

// D. Hendrycks and K. Gimpel, arXiv:1606.08415.
template <class Real>
ARRCOMP_METHOD Real gelu(Real x) {
  const Real tail = normal_tail(abs(x));
  return x * select(lt(x, splat<Real>(0)), tail, splat<Real>(1) - tail);
}

// The same paper's approximation: x (1 + tanh u) / 2 is x / (1 + e^-2u).
template <class Real>
ARRCOMP_METHOD Real gelu_tanh(Real x) {
  constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
  const auto twice = static_cast<typename Real::scalar>(2 * root), cubic = static_cast<typename Real::scalar>(0.044715);
  return x * logistic(splat<Real>(twice) * (x + splat<Real>(cubic) * x * x * x));
}

// D. Misra, arXiv:1908.08681: x tanh(log(1 + e^x)), of which tanh(log y) = (y^2 - 1) / (y^2 + 1).
template <class Real>
ARRCOMP_METHOD Real mish(Real x) {
  const Real zero = splat<Real>(0), one = splat<Real>(1), two = splat<Real>(2), e = exponential(zero - abs(x));
  const Mask negative = lt(x, zero);
  const Real above = select(negative, e * (e + two), one + two * e);
  return x * (above / (above + select(negative, two, two * e * e)));
}

template <class Real>
ARRCOMP_METHOD Real softplus(Real x, Real beta, Real threshold) {
  const Real zero = splat<Real>(0), z = x * beta;
  const Real rest = logarithm_of_one_plus(exponential(zero - abs(z)));
  return select(lt(threshold, z), x, (max(z, zero) + rest) / beta);
}

// x - tanh x, by its series where the two are nearly the same.
template <class Real>
ARRCOMP_METHOD Real tanhshrink(Real x) {
  const Real s = min(x * x, splat<Real>(0.4f));
  const Real small = x * s * hyperbolic_polynomial(s);
  return select(lt(abs(x), splat<Real>(0.625f)), small, x - hyperbolic_tangent(x));
}

template <class Real>
ARRCOMP_METHOD Real clamped(Real x, Real least, Real largest) {
  return min(max(x, least), largest);
}

// min(max(x + 3, 0), 6) / 6
template <class Real>
ARRCOMP_METHOD Real hard_sigmoid(Real x) {
  return clamped(x + splat<Real>(3), splat<Real>(0), splat<Real>(6)) / splat<Real>(6);
}

template <class Real>
ARRCOMP_METHOD Real softshrink(Real x, Real lambda) {
  const Real negative = splat<Real>(0) - lambda;
  return select(lt(lambda, x), x - lambda, select(lt(x, negative), x + lambda, x * splat<Real>(0)));
}

// Puts each row's values in its place. Rows in memory need no loop to be unrolled.
template <class Real, class Of>
ARRCOMP_METHOD void each(Real (&rows)[activation_rows], Of of) {
  if constexpr (rows_at_once > 1) {
    for (int i = 0; i < activation_rows; ++i) rows[i] = of(rows[i]);
  } else {
    ARRCOMP_UNROLL
    for (int i = 0; i < activation_rows; ++i) rows[i] = of(rows[i]);
  }
}

#define ARRCOMP_VALUE(...) each(rows, [&](Real x) ARRCOMP_LAMBDA { return __VA_ARGS__; })
template <class Real>
ARRCOMP_PART void activate_rows(const Activation& activation, Real (&rows)[activation_rows]) {
  using Scalar = typename Real::scalar;
  const Real zero = splat<Real>(0), one = splat<Real>(1);
  const Real p = splat<Real>(static_cast<Scalar>(activation.parameters[0]));
  const Real q = splat<Real>(static_cast<Scalar>(activation.parameters[1]));
  switch (activation.function) {
    case Function::none: return;
    case Function::gelu: return ARRCOMP_VALUE(gelu(x));
    case Function::gelu_tanh: return ARRCOMP_VALUE(gelu_tanh(x));
    case Function::silu: return ARRCOMP_VALUE(x * logistic(x));
    case Function::mish: return ARRCOMP_VALUE(mish(x));
    case Function::sigmoid: return ARRCOMP_VALUE(logistic(x));
    case Function::tanh: return ARRCOMP_VALUE(hyperbolic_tangent(x));
    case Function::softplus: return ARRCOMP_VALUE(softplus(x, p, q));
    case Function::softsign: return ARRCOMP_VALUE(x / (one + abs(x)));
    case Function::elu: return ARRCOMP_VALUE(q * select(lt(zero, x), x, p * exponential_minus_one(min(x, zero))));
    case Function::celu: return ARRCOMP_VALUE(select(lt(zero, x), x, p * exponential_minus_one(min(x, zero) / p)));
    case Function::hardswish:
      return ARRCOMP_VALUE(x * clamped(x + splat<Real>(3), zero, splat<Real>(6)) / splat<Real>(6));
    case Function::tanhshrink: return ARRCOMP_VALUE(tanhshrink(x));
    case Function::leaky_relu: return ARRCOMP_VALUE(select(lt(zero, x), x, x * p));
    case Function::threshold: return ARRCOMP_VALUE(select(le(x, p), q, x));
    case Function::hardsigmoid: return ARRCOMP_VALUE(hard_sigmoid(x));
    case Function::hardtanh: return ARRCOMP_VALUE(clamped(x, p, q));
    case Function::hardshrink: return ARRCOMP_VALUE(select(le(abs(x), p), zero, x));
    case Function::softshrink: return ARRCOMP_VALUE(softshrink(x, p));
  }
}
#undef ARRCOMP_VALUE

// --- elements

// Which steps numbers have; 0 if they are NaN.
template <class Real, int n>
ARRCOMP_METHOD void steps_of(const Steps& steps, const Real (&rows)[n], U32 (&numbers)[n]) {
  if (steps.rule == StepRule::ascending) return borders_below(steps.tables, steps.tables.bits, rows, numbers);
  if (steps.rule == StepRule::even) {
    Real magnitudes[n];
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) magnitudes[i] = abs(rows[i]);
    return borders_below(steps.tables, steps.tables.bits, magnitudes, numbers);
  }
  const Real lower = real_of(splat<F32>(steps.lower), Real{}), upper = real_of(splat<F32>(steps.upper), Real{});
  ARRCOMP_UNROLL for (int i = 0; i < n; ++i) {
    const Real x = rows[i];
    const Mask is_one = steps.rule == StepRule::inside ? lt(lower, x) & lt(x, upper) : lt(x, lower) | lt(upper, x);
    numbers[i] = select(is_one, splat<U32>(1), splat<U32>(0));
  }
}

// A unit's rows, in fours.
template <class Visit>
ARRCOMP_METHOD void each_four(int count, Visit visit) {
  constexpr int at_once = activation_rows * lanes_per_row;
  for (int position = 0; position < count; position += at_once)
    visit(position, count - position < at_once ? count - position : at_once);
}

template <class Real>
ARRCOMP_METHOD void load_rows(const Element& element, const void* array, uint64_t first, int count,
                              Real (&rows)[activation_rows]) {
  ARRCOMP_UNROLL
  for (int i = 0; i < activation_rows; ++i) {
    const int lanes = lanes_of_row(count, i);
    const uint64_t at = first + static_cast<uint64_t>(i * lanes_per_row);
    rows[i] = lanes > 0 ? load_real<Real>(element, array, at, lanes) : splat<Real>(0);
  }
}

// Infinities stay; NaN is the quiet one, with the same bits on every instruction set.
template <class Real>
ARRCOMP_METHOD void store_rows(const Element& element, void* array, uint64_t first, int count,
                               const Real (&rows)[activation_rows]) {
  ARRCOMP_UNROLL
  for (int i = 0; i < activation_rows; ++i) {
    const int lanes = lanes_of_row(count, i);
    const uint64_t at = first + static_cast<uint64_t>(i * lanes_per_row);
    if (lanes > 0) store_real(element, array, at, lanes, with_quiet_nan(rows[i]));
  }
}

// One unit: `count` elements from `first`, a multiple of activation_unit, on.

struct ActivationUnit {
  uint64_t first;
  int count;

  ARRCOMP_METHOD uint64_t step_offset(const Steps& steps) const {
    return first / lanes_per_row * static_cast<uint64_t>(steps.tables.bits) * (lanes_per_row / 8);
  }
};

// Rows behind the array's end have no numbers.
template <class Real>
ARRCOMP_METHOD void put_steps(const Steps& steps, const Real (&rows)[activation_rows], int count, BitWriter& writer) {
  const int bits = steps.tables.bits;
  U32 codes[activation_rows];
  steps_of(steps, rows, codes);
  if (count < activation_rows * lanes_per_row) {
    ARRCOMP_UNROLL
    for (int i = 0; i < activation_rows; ++i)
      codes[i] = select(mask(low_mask(lanes_of_row(count, i))), codes[i], splat<U32>(0));
  }
  const int used = (count + lanes_per_row - 1) / lanes_per_row;
  U32 together = codes[0];
  ARRCOMP_UNROLL
  for (int i = 1; i < activation_rows; ++i) together = together | codes[i] << (i * bits);
  writer.put(together, used * bits);
}

template <class Real>
ARRCOMP_PART void activate_unit(const Activation& activation, const Steps& steps, const Element& element,
                                const ActivateTask& array, ActivationUnit unit) {
  const bool keeps = array.packed != nullptr;
  BitWriter writer(keeps ? array.packed + unit.step_offset(steps) : nullptr);
  each_four(unit.count, [&](int position, int count) ARRCOMP_LAMBDA {
    Real rows[activation_rows];
    const uint64_t at = unit.first + static_cast<uint64_t>(position);
    load_rows(element, array.source, at, count, rows);
    if (keeps) put_steps(steps, rows, count, writer);
    if (array.values == nullptr) return;
    activate_rows(activation, rows);
    store_rows(element, array.values, at, count, rows);
  });
  if (keeps) writer.finish_codes();
}

template <class Real>
ARRCOMP_PART void step_grad_unit(const Steps& steps, const Element& element, const StepGradTask& array,
                                 ActivationUnit unit) {
  const int bits = steps.tables.bits;
  const uint8_t* const begin = array.packed + unit.step_offset(steps);
  CodeBitReader reader(begin, begin + code_bytes(static_cast<uint64_t>(unit.count), static_cast<uint32_t>(bits)));
  each_four(unit.count, [&](int position, int count) ARRCOMP_LAMBDA {
    Real rows[activation_rows];
    const uint64_t at = unit.first + static_cast<uint64_t>(position);
    load_rows(element, array.gradients, at, count, rows);
    const int used = (count + lanes_per_row - 1) / lanes_per_row;
    const U32 together = reader.get(used * bits, U32{}), one_code = splat<U32>(low_mask(bits));
    ARRCOMP_UNROLL
    for (int i = 0; i < activation_rows; ++i) {
      const U32 code = together >> (i * bits) & one_code;
      rows[i] = rows[i] * real_of(level_of(steps.tables, bits, code), Real{});
    }
    store_rows(element, array.target, at, count, rows);
  });
}

}  // namespace arrcomp::ARRCOMP_ISA
