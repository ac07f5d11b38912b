// Work over threads that live for one call: nothing is left behind for a fork to break.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu/interruption.h"

namespace arrcomp::cpu {

constexpr uint64_t min_elements = 1 << 17;  // for a thread of its own to pay

// Contiguous shares of `items`, one for each worker.
struct Shares {
  uint64_t items;
  int workers;

  // One worker for each thread, but none with fewer than `least` items.
  static Shares of(uint64_t items, int threads, uint64_t least) {
    const uint64_t most = std::max<uint64_t>(items / std::max<uint64_t>(least, 1), 1);
    return {items, static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(threads, 1)), most))};
  }
  uint64_t begin(int worker) const { return items * static_cast<uint64_t>(worker) / static_cast<uint64_t>(workers); }
  uint64_t end(int worker) const { return begin(worker + 1); }
};

// Keeps the first exception of several threads.
class FirstFailure {
 public:
  template <class Work>
  void guard(Work work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

// Calls work(worker) for each worker, the first on this thread; on this thread too what gets no thread of its own. Throws,
// once all have ended, what one of them threw, and Interrupted where their work was not wanted to its end.
template <class Work>
void run(int workers, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(workers));
  FirstFailure failure;
  const auto on_thread = [&failure, &work, by = interruption()](int worker) {
    const Interruptible by_the_same(by);
    failure.guard([&] { work(worker); });
  };
  int next = 1;
  try {
    for (; next < workers; ++next) threads.emplace_back(on_thread, next);
  } catch (const std::system_error&) {
    // No more threads: what is left runs here.
  } catch (const std::bad_alloc&) {
    // Nor memory for one.
  }
  failure.guard([&] {
    work(0);
    for (; next < workers; ++next) work(next);
  });
  for (std::thread& thread : threads) thread.join();
  failure.rethrow();
  if (is_interrupted()) throw Interrupted{};
}

// Calls work(begin, end) with segments of [begin, end), `most` items each at most, for as long as they are wanted.
template <class Work>
void in_steps(uint64_t begin, uint64_t end, uint64_t most, Work work) {
  for (; begin < end && !is_interrupted(); begin += most) work(begin, std::min(begin + most, end));
}

// Calls work(begin, end) with each worker's share of the items, counted from `first`; whether all returned true.
template <class Work>
bool all_of(const Shares& shares, uint64_t first, Work work) {
  std::atomic<bool> ok{true};
  run(shares.workers, [&](int worker) {
    if (!work(first + shares.begin(worker), first + shares.end(worker))) ok = false;
  });
  return ok;
}

}  // namespace arrcomp::cpu
