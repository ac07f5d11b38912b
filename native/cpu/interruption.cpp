#include "cpu/interruption.h"

namespace arrcomp::cpu {
namespace {

thread_local const Interruption* interrupted_by = nullptr;

}  // namespace

const Interruption* interruption() { return interrupted_by; }

bool is_interrupted() {
  const Interruption* const by = interrupted_by;
  return by != nullptr && by->load(std::memory_order_relaxed);
}

Interruptible::Interruptible(const Interruption* by) : before_(interrupted_by) { interrupted_by = by; }

Interruptible::~Interruptible() { interrupted_by = before_; }

}  // namespace arrcomp::cpu
