// Work over threads that live for one call: nothing is left behind for a fork to break.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace arrcomp::cpu {

constexpr uint64_t least_elements = 1 << 17;  // for a thread of its own to pay

// Contiguous shares of `items`, one for each worker.
struct Shares {
  uint64_t items;
  int workers;

  // As many workers as there are threads, but none with fewer than `least` items.
  static Shares of(uint64_t items, int threads, uint64_t least) {
    const uint64_t most = std::max<uint64_t>(items / std::max<uint64_t>(least, 1), 1);
    return {items, static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(threads, 1)), most))};
  }
  uint64_t begin(int worker) const { return items * static_cast<uint64_t>(worker) / static_cast<uint64_t>(workers); }
  uint64_t end(int worker) const { return begin(worker + 1); }
};

// Calls work(worker) for each worker, the first on this thread; on this thread too what gets no thread of its own.
template <class Work>
void run(int workers, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(workers));
  int next = 1;
  try {
    for (; next < workers; ++next) threads.emplace_back(work, next);
  } catch (const std::system_error&) {
    // No more threads: what is left runs here.
  }
  work(0);
  for (; next < workers; ++next) work(next);
  for (std::thread& thread : threads) thread.join();
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
