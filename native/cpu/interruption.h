// Calls that may no longer be wanted: who waits for one says so, and its threads ask between chunks.
#pragma once
#include <atomic>

namespace arrcomp::cpu {

// Set by who no longer waits.
using Interruption = std::atomic<bool>;

// Thrown by `run` (threads.h) where its work was left unfinished.
struct Interrupted {};

// What interrupts the work of this thread; null where nothing does.
const Interruption* interruption();

// Whether the work of this thread shall end.
bool is_interrupted();

// Sets what interrupts the work of this thread for as long as this lives; `run` sets it for its threads too.
class Interruptible {
 public:
  explicit Interruptible(const Interruption* by);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const Interruption* before_;
};

}  // namespace arrcomp::cpu
