// The floating-point environment that lanes expect: rounding to nearest even, subnormal numbers kept.
#pragma once
#include <cfenv>

namespace arrcomp {

#ifdef __x86_64__
// Only what vectors and doubles use, MXCSR: the standard functions save the x87's environment too, which takes longer
// than all else in a call for a small array.
using FloatingPoint = unsigned;
inline FloatingPoint floating_point() { return __builtin_ia32_stmxcsr(); }
inline void set_floating_point(const FloatingPoint& environment) { __builtin_ia32_ldmxcsr(environment); }
inline void set_default_floating_point() { __builtin_ia32_ldmxcsr(0x1f80); }
#else
using FloatingPoint = std::fenv_t;
inline FloatingPoint floating_point() {
  std::fenv_t environment;
  std::fegetenv(&environment);
  return environment;
}
inline void set_floating_point(const FloatingPoint& environment) { std::fesetenv(&environment); }
inline void set_default_floating_point() { std::fesetenv(FE_DFL_ENV); }
#endif

// Sets it for as long as this lives; threads started meanwhile have it too. Callers may have set another one: XLA and
// torch.set_flush_denormal take subnormal numbers for zeros.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() : before_(floating_point()) { set_default_floating_point(); }
  ~DefaultFloatingPoint() { set_floating_point(before_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  FloatingPoint before_;
};

}  // namespace arrcomp
