// As race_detector.h says. Compiled without -fsanitize=thread, unlike what it looks at.
#define EMULATED_RACE_DETECTOR
#include "race_detector.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

extern "C" {
extern char __executable_start, _end;  // all of the program's static memory lies between
void* __real_memcpy(void*, const void*, size_t);
void* __real_memmove(void*, const void*, size_t);
void* __real_memset(void*, int, size_t);
}

namespace emulated::races {
namespace {

enum class Access : uint8_t { read, write, atomic_read, atomic_write };

// Lanes that are not in order with each other, where they were last.
struct Accesses {
  uint32_t epoch, lanes, place;  // the place counts from the program's first byte
};

// A byte of memory.
struct Cell {
  Accesses written, read, changed;  // the last by atomic and volatile accesses
};

// What a warp does between two barriers. Epochs are counted through the whole program.
struct Epoch {
  unsigned block;
  int warp;
  unsigned block_barriers;
};

uintptr_t load_address() {
  uintptr_t address = 0;
  const auto first = [](dl_phdr_info* info, size_t, void* to) {
    *static_cast<uintptr_t*>(to) = info->dlpi_addr;
    return 1;
  };
  dl_iterate_phdr(first, &address);
  return address;
}

uintptr_t address_of(uint32_t place) { return reinterpret_cast<uintptr_t>(&__executable_start) + place; }

// The line, those of the functions that it is inlined into, and the outermost of these.
void print_source_of(uintptr_t address) {
  char command[128];
  std::snprintf(command, sizeof command, "addr2line -Cfise /proc/%d/exe 0x%zx 2>&1", static_cast<int>(getpid()),
                address - load_address() - 1);  // before the return address
  FILE* const lines = popen(command, "r");
  if (lines == nullptr) return;
  char function[200], rest[2000], line[200];
  const char* between = "    ";
  while (std::fscanf(lines, "%199[^\n]%1999[^\n]", function, rest) > 0 &&
         std::fscanf(lines, " %199[^\n] ", line) == 1) {
    std::printf("%s%s", between, line);
    between = " < ";
  }
  std::printf("\n    in %.120s\n", function);
  pclose(lines);
}

class Detector {
 public:
  void begin_launch() {
    if (pages_.size() > max_pages) {
      pages_.clear();
      last_page_ = ~uintptr_t{0};
    }
    first_epoch_ += static_cast<uint32_t>(epochs_.size());
    epochs_.clear();
  }

  void begin_block(unsigned block, int warps) {
    block_ = block;
    block_barriers_ = 0;
    of_warps_.resize(static_cast<size_t>(warps));
    for (int w = 0; w < warps; ++w) begin_epoch(w);
  }

  void synced_warp(int warp, const void* place) {
    sync_places_.insert(place);
    if (place != left_out_) begin_epoch(warp);
  }

  void synced_block() {
    ++block_barriers_;
    for (size_t w = 0; w < of_warps_.size(); ++w) begin_epoch(static_cast<int>(w));
  }

  void go_on(int warp, int lane, const void* stack, size_t stack_bytes) {
    now_ = of_warps_[static_cast<size_t>(warp)];
    lane_ = lane;
    stack_ = reinterpret_cast<uintptr_t>(stack);
    stack_bytes_ = stack_bytes;
    is_watching_ = true;
  }

  void pause() {
    finish_write();
    is_watching_ = false;
  }

  void access(const void* p, size_t bytes, Access access, const void* return_address) {
    if (!is_watching_) return;
    finish_write();
    const auto address = reinterpret_cast<uintptr_t>(p);
    if (address - stack_ < stack_bytes_) return;
    place_ = static_cast<uint32_t>(static_cast<const char*>(return_address) - &__executable_start);
    for (size_t i = 0; i < bytes; ++i) {
      Cell& cell = cell_of(address + i);
      switch (access) {
        case Access::read:
          if (!is_own(cell.written)) compare(cell.written, address + i, Kind::read_after_write, bytes);
          compare(cell.changed, address + i, Kind::with_atomic, bytes);
          note(cell.read);
          break;
        case Access::write:
          compare(cell.read, address + i, Kind::write_after_read, bytes);
          compare(cell.changed, address + i, Kind::with_atomic, bytes);
          if (is_conflict(cell.written, address + i)) look_again(cell.written, address + i, bytes);
          note(cell.written);
          break;
        case Access::atomic_write:
          compare(cell.read, address + i, Kind::with_atomic, bytes);
          note(cell.changed);
          [[fallthrough]];
        case Access::atomic_read: compare(cell.written, address + i, Kind::with_atomic, bytes);
      }
    }
  }

  std::vector<Kind> take_found() { return std::exchange(found_, {}); }
  std::vector<const void*> take_sync_places() {
    const std::vector<const void*> places(sync_places_.begin(), sync_places_.end());
    sync_places_.clear();
    return places;
  }
  void leave_out_sync(const void* place) {
    left_out_ = place;
    reported_.clear();
  }

  ~Detector() {
    if (found_.empty()) return;
    std::printf("%zu pairs of accesses by several lanes without a barrier between them\n", found_.size());
    std::fflush(stdout);
    _exit(1);
  }

 private:
  // A byte that another lane has written with no barrier since: harmless if the same value is written again, which is
  // known once it has been.
  struct Rewritten {
    uintptr_t address;
    uint8_t before;
    Accesses other;
    size_t bytes;
  };

  static constexpr uintptr_t page_bytes = 4096;
  static constexpr size_t max_pages = 2048;

  void begin_epoch(int warp) {
    of_warps_[static_cast<size_t>(warp)] = first_epoch_ + static_cast<uint32_t>(epochs_.size());
    epochs_.push_back({block_, warp, block_barriers_});
  }

  Cell& cell_of(uintptr_t address) {
    const uintptr_t page = address / page_bytes;
    if (page != last_page_) {
      is_watching_ = false;  // memset is watched
      std::unique_ptr<Cell[]>& cells = pages_[page];
      if (!cells) cells = std::make_unique<Cell[]>(page_bytes);
      is_watching_ = true;
      last_cells_ = cells.get();
      last_page_ = page;
    }
    return last_cells_[address % page_bytes];
  }

  // What this lane has written, it may read: others have written the same then.
  bool is_own(const Accesses& written) const { return written.epoch == now_ && (written.lanes >> lane_ & 1) != 0; }

  bool is_conflict(const Accesses& other, uintptr_t address) const {
    if (other.epoch < first_epoch_) return false;
    if (other.epoch == now_) return (other.lanes & ~(1u << lane_)) != 0;
    const Epoch &then = epochs_[other.epoch - first_epoch_], &now = epochs_[now_ - first_epoch_];
    if (then.block != now.block) return !is_shared_memory(address);  // each block has its own
    return then.warp != now.warp && then.block_barriers == now.block_barriers;
  }

  static bool is_shared_memory(uintptr_t address) {
    return address - reinterpret_cast<uintptr_t>(&__executable_start) <
           static_cast<uintptr_t>(&_end - &__executable_start);
  }

  void note(Accesses& accesses) const {
    const uint32_t before = accesses.epoch == now_ ? accesses.lanes : 0;
    accesses = {now_, before | 1u << lane_, place_};
  }

  void compare(const Accesses& other, uintptr_t address, Kind kind, size_t bytes) {
    if (is_conflict(other, address)) report(kind, address, bytes, other);
  }

  void look_again(const Accesses& other, uintptr_t address, size_t bytes) {
    rewritten_.push_back({address, *reinterpret_cast<const uint8_t*>(address), other, bytes});
  }

  void finish_write() {
    if (rewritten_.empty()) return;
    for (const Rewritten& byte : rewritten_)
      if (*reinterpret_cast<const uint8_t*>(byte.address) != byte.before)
        report(Kind::write_after_write, byte.address, byte.bytes, byte.other);
    rewritten_.clear();
  }

  void report(Kind kind, uintptr_t address, size_t bytes, const Accesses& other) {
    if (!reported_.insert({kind, place_, other.place}).second) return;
    is_watching_ = false;
    found_.push_back(kind);
    if (left_out_ == nullptr && found_.size() <= max_printed) print(kind, address, bytes, other);
    is_watching_ = true;
  }

  void print(Kind kind, uintptr_t address, size_t bytes, const Accesses& other) const {
    const char* const what[] = {"reads what another has written", "overwrites what another has read",
                                "overwrites what another has written, with another value",
                                "and another access the same place, only one of them atomically"};
    const Epoch &then = epochs_[other.epoch - first_epoch_], &now = epochs_[now_ - first_epoch_];
    const uint32_t others = other.epoch == now_ ? other.lanes & ~(1u << lane_) : other.lanes;
    std::printf("A lane %s, with no barrier between them: %zu bytes, of them that at %p%s\n",
                what[static_cast<int>(kind)], bytes, reinterpret_cast<const void*>(address),
                is_shared_memory(address) ? " (static memory)" : "");
    std::printf("  lane %d of warp %d of block %u:\n", lane_, now.warp, now.block);
    print_source_of(address_of(place_));
    std::printf("  before it lane %d of warp %d of block %u:\n", std::countr_zero(others), then.warp, then.block);
    print_source_of(address_of(other.place));
    std::fflush(stdout);
  }

  static constexpr size_t max_printed = 40;

  std::unordered_map<uintptr_t, std::unique_ptr<Cell[]>> pages_;
  uintptr_t last_page_ = ~uintptr_t{0};
  Cell* last_cells_ = nullptr;

  std::vector<Epoch> epochs_;  // of this launch
  uint32_t first_epoch_ = 1;   // no access has epoch 0
  std::vector<uint32_t> of_warps_;
  unsigned block_ = 0, block_barriers_ = 0;

  bool is_watching_ = false;
  uint32_t now_ = 0, place_ = 0;
  int lane_ = 0;
  uintptr_t stack_ = 0;
  size_t stack_bytes_ = 0;
  std::vector<Rewritten> rewritten_;

  std::vector<Kind> found_;
  std::set<std::tuple<Kind, uint32_t, uint32_t>> reported_;
  std::set<const void*> sync_places_;
  const void* left_out_ = nullptr;
};

Detector detector;

}  // namespace

void begin_launch() { detector.begin_launch(); }
void begin_block(unsigned block, int warps) { detector.begin_block(block, warps); }
void synced_warp(int warp, const void* place) { detector.synced_warp(warp, place); }
void synced_block() { detector.synced_block(); }
void go_on(int warp, int lane, const void* stack, size_t stack_bytes) {
  detector.go_on(warp, lane, stack, stack_bytes);
}
void pause() { detector.pause(); }
void atomic(const void* p, size_t bytes, const void* place) { detector.access(p, bytes, Access::atomic_write, place); }
std::vector<Kind> take_found() { return detector.take_found(); }
std::vector<const void*> take_sync_places() { return detector.take_sync_places(); }
void leave_out_sync(const void* place) { detector.leave_out_sync(place); }
void print_place(const void* place) { print_source_of(reinterpret_cast<uintptr_t>(place)); }

}  // namespace emulated::races

// ---- what the compiler calls

using emulated::races::Access;
using emulated::races::detector;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
// Of the guards of static variables.
char __tsan_atomic8_load(const volatile char* p, int) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

#define HOOK(name, bytes, kind) \
  void name(void* p) { detector.access(p, bytes, Access::kind, __builtin_return_address(0)); }
#define HOOKS(bytes)                                              \
  HOOK(__tsan_read##bytes, bytes, read)                           \
  HOOK(__tsan_write##bytes, bytes, write)                         \
  HOOK(__tsan_unaligned_read##bytes, bytes, read)                 \
  HOOK(__tsan_unaligned_write##bytes, bytes, write)               \
  HOOK(__tsan_volatile_read##bytes, bytes, atomic_read)           \
  HOOK(__tsan_volatile_write##bytes, bytes, atomic_write)         \
  HOOK(__tsan_unaligned_volatile_read##bytes, bytes, atomic_read) \
  HOOK(__tsan_unaligned_volatile_write##bytes, bytes, atomic_write)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void* p, size_t bytes) { detector.access(p, bytes, Access::read, __builtin_return_address(0)); }
void __tsan_write_range(void* p, size_t bytes) {
  detector.access(p, bytes, Access::write, __builtin_return_address(0));
}

// Calls of these functions come here (the linker's --wrap), as the compiler says nothing of what they do.
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  detector.access(from, bytes, Access::read, __builtin_return_address(0));
  detector.access(to, bytes, Access::write, __builtin_return_address(0));
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  detector.access(from, bytes, Access::read, __builtin_return_address(0));
  detector.access(to, bytes, Access::write, __builtin_return_address(0));
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  detector.access(to, bytes, Access::write, __builtin_return_address(0));
  return __real_memset(to, value, bytes);
}
}
