// Which CPUs the threads of a call run on.
#pragma once
#include <mutex>

#ifdef __linux__
#include <sched.h>
#endif

namespace arrcomp::cpu {

#ifdef __linux__

// A new thread may begin on the CPU of the thread that made it, and stay there for many milliseconds while another CPU
// is idle: kernels of small virtual machines do so. A thread that begins where another of the call is moves to a CPU
// of its own. It is not bound to it.
class WorkerCpus {
 public:
  // On the thread that makes the others.
  WorkerCpus() {
    CPU_ZERO(&taken_);
    is_known_ = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0;
    take(sched_getcpu());
  }

  // On the first thread, once the others are made: lets one that waits for its CPU begin, and move.
  static void make_way() { sched_yield(); }

  // On each new thread, first.
  void settle() {
    if (!is_known_) return;
    const std::lock_guard lock(mutex_);
    int cpu = sched_getcpu();
    if (cpu >= 0 && CPU_ISSET(cpu, &taken_)) cpu = move();
    take(cpu);
  }

 private:
  void take(int cpu) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &taken_);
  }

  // To a CPU that no thread of the call has; returns it, or -1 where there is none.
  int move() const {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed_) || CPU_ISSET(cpu, &taken_)) continue;
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(cpu, &only);
      if (sched_setaffinity(0, sizeof only, &only) != 0) return -1;
      sched_setaffinity(0, sizeof allowed_, &allowed_);
      return cpu;
    }
    return -1;
  }

  std::mutex mutex_;
  bool is_known_;
  cpu_set_t allowed_, taken_;
};

#else

class WorkerCpus {
 public:
  static void make_way() {}
  void settle() {}
};

#endif

}  // namespace arrcomp::cpu
