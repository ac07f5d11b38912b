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
#include "cpu/worker_cpus.h"
#include "stream/plan.h"

namespace arrcomp::cpu {

constexpr uint64_t min_elements = 1 << 17;  // for a thread of its own to pay

// Items for workers: contiguous shares, one for each, or pieces that these take one after the other.
struct Shares {
  uint64_t items;
  int workers;
  uint64_t least;  // items that are worth a worker

  // One worker for each thread, but none with fewer than `least` items.
  static Shares of(uint64_t items, int threads, uint64_t least) {
    const uint64_t most = std::max<uint64_t>(items / std::max<uint64_t>(least, 1), 1);
    return {items, static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(threads, 1)), most)), least};
  }
  uint64_t begin(int worker) const { return items * static_cast<uint64_t>(worker) / static_cast<uint64_t>(workers); }
  uint64_t end(int worker) const { return begin(worker + 1); }

  // Several for each worker, as threads are not equally fast: what a cache has room for, unless that is less.
  uint64_t piece_size() const {
    const uint64_t several = items / (8 * static_cast<uint64_t>(workers));
    return workers == 1 ? items : std::clamp<uint64_t>(several, 1, std::max<uint64_t>(least, 1));
  }
  uint64_t pieces() const { return (items + piece_size() - 1) / piece_size(); }
};

// Pieces of the shares: a worker takes those of its own, then those that others have left. Two threads side by side in
// memory would be slower than each in its own part.
class PiecesOfShares {
 public:
  explicit PiecesOfShares(const Shares& shares) : shares_(shares), next_(static_cast<size_t>(shares.workers)) {
    for (int worker = 0; worker < shares.workers; ++worker) next_[static_cast<size_t>(worker)] = shares.begin(worker);
  }

  // Calls visit(begin, end) with pieces until none is left.
  template <class Visit>
  void each_for(int worker, Visit visit) {
    const uint64_t size = shares_.piece_size();
    for (int i = 0; i < shares_.workers; ++i) {
      const int owner = (worker + i) % shares_.workers;
      std::atomic<uint64_t>& next = next_[static_cast<size_t>(owner)];
      const uint64_t end = shares_.end(owner);
      for (uint64_t at = next.fetch_add(size); at < end; at = next.fetch_add(size)) visit(at, std::min(at + size, end));
    }
  }

 private:
  Shares shares_;
  std::vector<std::atomic<uint64_t>> next_;
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

// Calls work(worker) for each of several workers, which throws nothing.
template <class Work>
void run_on_threads(int workers, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(workers));
  WorkerCpus cpus;
  const auto on_thread = [&cpus, &work, by = interruption()](int worker) {
    const Interruptible by_the_same(by);
    cpus.settle();
    work(worker);
  };
  int next = 1;
  try {
    for (; next < workers; ++next) threads.emplace_back(on_thread, next);
  } catch (const std::system_error&) {
    // No more threads: what is left runs here.
  } catch (const std::bad_alloc&) {
    // Nor memory for one.
  }
  WorkerCpus::make_way();
  work(0);
  for (; next < workers; ++next) work(next);
  for (std::thread& thread : threads) thread.join();
}

// Calls work(worker) for each worker, the first on this thread; on this thread too what gets no thread of its own. Throws,
// once all have ended, what one of them threw, and Interrupted where their work was not wanted to its end.
template <class Work>
void run(int workers, Work work) {
  if (workers == 1) {
    work(0);
  } else {
    FirstFailure failure;
    run_on_threads(workers, [&](int worker) { failure.guard([&] { work(worker); }); });
    failure.rethrow();
  }
  if (is_interrupted()) throw Interrupted{};
}

// Calls work(begin, end) with segments of [begin, end), `most` items each at most, for as long as they are wanted.
template <class Work>
void in_steps(uint64_t begin, uint64_t end, uint64_t most, Work work) {
  for (; begin < end && !is_interrupted(); begin += most) work(begin, std::min(begin + most, end));
}

// Calls work(begin, end) with all pieces of the items, counted from `first`; whether all returned true.
template <class Work>
bool all_of(const Shares& shares, uint64_t first, Work work) {
  std::atomic<bool> ok{true};
  PiecesOfShares pieces(shares);
  run(shares.workers, [&](int worker) {
    pieces.each_for(worker, [&](uint64_t begin, uint64_t end) {
      if (!work(first + begin, first + end)) ok = false;
    });
  });
  return ok;
}

// Calls work(begin, end) with all units, of so many elements in all.
template <class Work>
void for_units(uint64_t units, uint64_t elements, int threads, Work work) {
  const uint64_t of_unit = std::max<uint64_t>(elements / std::max<uint64_t>(units, 1), 1);
  all_of(Shares::of(units, threads, std::max<uint64_t>(min_elements / of_unit, 1)), 0,
         [&](uint64_t begin, uint64_t end) {
           work(begin, end);
           return true;
         });
}

// Calls work(first, end) with all of `count` elements, in whole rows.
template <class Work>
void for_rows(uint64_t count, int threads, Work work) {
  for_units(ceil_div(count, lanes_per_row), count, threads,
            [&](uint64_t begin, uint64_t end) { work(begin * lanes_per_row, std::min(end * lanes_per_row, count)); });
}

}  // namespace arrcomp::cpu
