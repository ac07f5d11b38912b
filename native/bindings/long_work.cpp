#include "bindings/long_work.h"

#include <unistd.h>

#include <chrono>
#include <future>
#include <system_error>
#include <thread>

#include "cpu/interruption.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 50ms;  // at signals

// Python runs signals' handlers on this thread alone.
bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"));
}

// Starts work on a thread of its own; false where there is none to be had.
bool start(const std::function<void()>& work, const cpu::Interruption& interruption, std::future<void>& done) {
  std::packaged_task<void()> task([&] {
    const cpu::Interruptible here(&interruption);
    work();
  });
  done = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

}  // namespace

bool WithoutGil::signal_raised() {
  take_back();
  const bool raised = PyErr_CheckSignals() != 0;
  state_ = PyEval_SaveThread();
  return raised;
}

// While the interpreter shuts down, Python before 3.14 ends a daemon's thread here by unwinding its stack. nanobind's
// frames on it are noexcept and would end the process: the thread waits for the process's end instead, as later Pythons
// let it.
void WithoutGil::take_back() noexcept {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    for (;;) std::this_thread::sleep_for(1h);
  }
}

void without_gil_interruptibly(const std::function<void()>& work) {
  const bool listens = is_main_thread();
  bool raised = false, forked = false;
  std::future<void> done;
  {
    WithoutGil released;
    cpu::Interruption interruption{false};
    if (!listens || !start(work, interruption, done)) return work();
    const pid_t process = getpid();
    while (!raised && !forked && done.wait_for(between_looks) != std::future_status::ready) {
      raised = released.signal_raised();
      forked = getpid() != process;  // a handler did, and this is the child, which has no thread for the work
    }
    interruption = raised;
    if (!forked) done.wait();
  }
  if (raised) throw nb::python_error();
  if (forked) throw std::runtime_error("a signal's handler forked during this call, which goes on in the parent alone");
  done.get();
}

}  // namespace arrcomp
