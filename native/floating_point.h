// The floating-point environment that lanes expect: rounding to nearest even, subnormal numbers kept.
#pragma once
#include <cfenv>

namespace arrcomp {

// Sets it for as long as this lives; threads started meanwhile have it too. Callers may have set another one: XLA and
// torch.set_flush_denormal take subnormal numbers for zeros.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&before_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace arrcomp
