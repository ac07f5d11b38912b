// Native work of calls from Python: without the GIL, and where it takes long, with an ear for signals.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>

namespace arrcomp {

// Fewer elements are done before anybody would interrupt them: below half a second with the slowest codec on one core.
constexpr uint64_t long_elements = 1 << 24;

// Gives the GIL away for as long as this lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { take_back(); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  // Runs the handlers of signals that came; whether one raised.
  bool signal_raised();

 private:
  void take_back() noexcept;

  PyThreadState* state_;
};

// without_gil, with the work on a thread of its own.
void without_gil_interruptibly(const std::function<void()>& work);

// Calls work(), which codes so many elements, without the GIL. Where that takes long and this is Python's main thread,
// signals are handled meanwhile: when a handler raises (as Ctrl-C's does) the work ends early, and its exception is
// thrown once nothing touches the arrays any more.
template <class Work>
void without_gil(uint64_t elements, const Work& work) {
  if (elements >= long_elements) return without_gil_interruptibly(std::cref(work));
  const WithoutGil released;
  work();
}

}  // namespace arrcomp
