// CUDA on one thread of a CPU, for code that is written for warps: include this before it, and give its kernels to
// emulated::launch.
//
// Each lane is a fiber. It runs ahead to its next collective (ballot, shuffle, reduction, __syncwarp) before another
// lane starts, in an order of the caller's choice. The warps of a block take turns at random between collectives; blocks
// run one after the other. The program ends where the lanes of a warp come to different collectives.
//
// On a GPU, __syncwarp and __syncthreads alone order what lanes write and read. Here each collective does, and lanes
// read what is there: a barrier may be missing and no value be wrong. A program compiled as race_detector.h says finds
// it all the same.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "race_detector.h"

namespace emulated {

struct Index {
  unsigned x;
};

}  // namespace emulated

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

struct alignas(8) uint2 {
  unsigned x, y;
};

inline emulated::Index threadIdx, blockIdx, blockDim, gridDim;

// Its accesses are the emulator's, not the kernel's.
#define EMULATED_UNWATCHED [[gnu::no_sanitize_thread]]

#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static  // one block runs at a time

namespace emulated {

// Code that runs on a stack of its own until it hands over to another. One made with no entry stands for the caller's
// own stack.
class Fiber {
 public:
  Fiber() = default;

  void enter_at(void (*entry)()) {
    if (!stack_) stack_.reset(new char[stack_bytes]);
    bottom_ = stack_.get();
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = stack_bytes;
    makecontext(&context_, entry, 0);
    is_new_ = true;
  }

  const void* stack() const { return stack_.get(); }
  static constexpr size_t stack_bytes = 1 << 18;

  // Goes on in `to` where that left off; returns when somebody goes on here.
  [[gnu::noinline, gnu::no_sanitize_address]] void hand_over(Fiber& to) {
    previous_ = this;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.size_);
#endif
    if (__builtin_setjmp(state_) == 0) to.resume();
    arrive();
  }

  // Called first by whatever goes on or starts: tells the sanitizer whose stack this is.
  void arrive() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack_, &previous_->bottom_, &previous_->size_);
#endif
  }

 private:
  // The compiler's own jumps: swapcontext would ask the kernel for the signal mask each time, and sanitizers make a
  // library's longjmp slower still.
  [[noreturn, gnu::noinline, gnu::no_sanitize_address]] void resume() {
    if (!is_new_) __builtin_longjmp(state_, 1);
    is_new_ = false;
    setcontext(&context_);
    std::abort();
  }

  inline static Fiber* previous_ = nullptr;

  std::unique_ptr<char[]> stack_;
  const void* bottom_ = nullptr;
  size_t size_ = stack_bytes;
  void* fake_stack_ = nullptr;
  ucontext_t context_;
  void* state_[5];
  bool is_new_ = false;
};

// The order in which the lanes of a warp run between two collectives. Shuffled: another one each time.
enum class Order { ascending, descending, shuffled };

enum class Collective : uint8_t { ballot, shuffle, reduction, barrier, block_barrier, end };

class Block {
 public:
  static constexpr int lanes = 32, max_warps = 64;

  // Runs `kernel` in all lanes of one block of the grid.
  void run(unsigned block, unsigned blocks, int warps, Order order, uint64_t seed,
           const std::function<void()>& kernel) {
    gridDim.x = blocks;
    blockIdx.x = block;
    blockDim.x = static_cast<unsigned>(warps * lanes);
    order_ = order;
    random_ = seed;
    kernel_ = &kernel;
    running_ = warps;
    races::begin_block(block, warps);
    for (int w = 0; w < warps; ++w) {
      warps_[w].is_running = true;
      warps_[w].is_waiting = false;
      warps_[w].phase = 0;
      for (Fiber& fiber : warps_[w].fibers) fiber.enter_at(body);
      choose_order(warps_[w]);
    }
    warps_in_block_ = warps;
    warp_ = 0;
    home_.hand_over(start_next());
  }

  // What all lanes bring to a collective, once they have all come to it.
  const uint64_t* meet(Collective collective, uint64_t value) {
    races::pause();
    Warp& warp = warps_[warp_];
    const unsigned lane = threadIdx.x % lanes;
    uint64_t* const values = warp.values[warp.phase % 2];  // the others are still being read
    values[lane] = value;
    warp.collectives[lane] = collective;
    Fiber& own = warp.fibers[lane];
    if (++warp.arrived == lanes) finish_phase(warp);
    Fiber& next = running_ > 0 ? start_next() : home_;
    if (&next != &own) own.hand_over(next);
    go_on();
    return values;
  }

  // The lane whose turn it is runs from here.
  void go_on() {
    const unsigned lane = threadIdx.x % lanes;
    races::go_on(warp_, static_cast<int>(lane), warps_[warp_].fibers[lane].stack(), Fiber::stack_bytes);
  }

 private:
  struct Warp {
    Fiber fibers[lanes];
    uint64_t values[2][lanes];
    Collective collectives[lanes];
    unsigned phase;
    int arrived, first, stride;
    bool is_running, is_waiting;  // for the other warps of the block

    bool is_ready() const { return is_running && !is_waiting; }
  };

  static void body();

  uint64_t random(uint64_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % below;
  }

  void choose_order(Warp& warp) {
    warp.arrived = 0;
    warp.first = order_ == Order::ascending    ? 0
                 : order_ == Order::descending ? lanes - 1
                                               : static_cast<int>(random(32));
    warp.stride = order_ == Order::ascending    ? 1
                  : order_ == Order::descending ? -1
                                                : static_cast<int>(random(16)) * 2 + 1;
  }

  // All lanes of a warp have come to a collective: another warp may be next.
  void finish_phase(Warp& warp) {
    if (!std::all_of(warp.collectives, warp.collectives + lanes,
                     [&](Collective c) { return c == warp.collectives[0]; }))
      fail("lanes of a warp come to different collectives");
    warp.is_waiting = warp.collectives[0] == Collective::block_barrier;
    if (warp.collectives[0] == Collective::barrier)
      races::synced_warp(warp_, reinterpret_cast<const void*>(warp.values[warp.phase % 2][0]));
    if (warp.collectives[0] == Collective::end) {
      warp.is_running = false;
      --running_;
    }
    ++warp.phase;
    choose_order(warp);
    release_if_all_wait();
    if (running_ == 0 || (warp.is_ready() && random(4) != 0)) return;
    do warp_ = static_cast<int>(random(static_cast<uint64_t>(warps_in_block_)));
    while (!warps_[warp_].is_ready());
  }

  void release_if_all_wait() {
    const auto is_ready = [](const Warp& warp) { return warp.is_ready(); };
    if (std::any_of(warps_, warps_ + warps_in_block_, is_ready)) return;
    for (Warp& warp : warps_) warp.is_waiting = false;
    races::synced_block();
  }

  // The fiber of the lane whose turn it is.
  Fiber& start_next() {
    Warp& warp = warps_[warp_];
    const int lane = (warp.first + warp.arrived * warp.stride) & (lanes - 1);
    threadIdx.x = static_cast<unsigned>(warp_ * lanes + lane);
    return warp.fibers[lane];
  }

  [[noreturn]] static void fail(const char* what) {
    std::printf("%s\n", what);
    std::exit(1);
  }

  Fiber home_;
  Warp warps_[max_warps];
  int warps_in_block_, running_, warp_;
  Order order_;
  uint64_t random_;
  const std::function<void()>* kernel_;

  friend Block& block();
};

inline Block& block() {
  static Block block;
  return block;
}

inline void Block::body() {
  Block& block = emulated::block();
  block.warps_[block.warp_].fibers[threadIdx.x % lanes].arrive();
  block.go_on();
  (*block.kernel_)();
  block.meet(Collective::end, 0);
}

// Calls kernel() in each lane of `blocks` blocks of `warps` warps.
inline void launch(unsigned blocks, int warps, Order order, uint64_t seed, const std::function<void()>& kernel) {
  races::begin_launch();
  for (unsigned b = 0; b < blocks; ++b) block().run(b, blocks, warps, order, seed + b, kernel);
}

template <class Operation>
EMULATED_UNWATCHED unsigned reduce(unsigned value, Operation operation) {
  const uint64_t* all = block().meet(Collective::reduction, value);
  unsigned result = static_cast<unsigned>(all[0]);
  for (int l = 1; l < Block::lanes; ++l) result = operation(result, static_cast<unsigned>(all[l]));
  return result;
}

template <class T>
T read_lane(T value, int lane) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = block().meet(Collective::shuffle, bits)[lane & 31];
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline int own_lane() { return static_cast<int>(threadIdx.x) & 31; }

}  // namespace emulated

// --- collectives; the mask of participants is always that of all lanes

EMULATED_UNWATCHED inline unsigned __ballot_sync(unsigned, bool set) {
  const uint64_t* all = emulated::block().meet(emulated::Collective::ballot, set);
  unsigned bits = 0;
  for (int l = 0; l < emulated::Block::lanes; ++l) bits |= static_cast<unsigned>(all[l]) << l;
  return bits;
}
inline bool __any_sync(unsigned lanes, bool set) { return __ballot_sync(lanes, set) != 0; }
[[gnu::noinline]] inline void __syncwarp() {
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  emulated::block().meet(emulated::Collective::barrier, place);
}
inline void __syncthreads() { emulated::block().meet(emulated::Collective::block_barrier, 0); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated::read_lane(value, lane);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int n) {
  const int lane = emulated::own_lane();
  return emulated::read_lane(value, lane >= n ? lane - n : lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::read_lane(value, emulated::own_lane() ^ mask);
}
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
  return emulated::reduce(value, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  return emulated::reduce(value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
  return emulated::reduce(value, [](unsigned a, unsigned b) { return a < b ? b : a; });
}

// --- atomics: fibers change at collectives alone

#define EMULATED_ATOMIC(name, after)                                    \
  template <class T>                                                    \
  [[gnu::noinline]] EMULATED_UNWATCHED T name(T* p, T value) {          \
    emulated::races::atomic(p, sizeof *p, __builtin_return_address(0)); \
    const T before = *p;                                                \
    *p = after;                                                         \
    return before;                                                      \
  }
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicAdd, static_cast<T>(before + value))
EMULATED_ATOMIC(atomicOr, static_cast<T>(before | value))
EMULATED_ATOMIC(atomicMax, before < value ? value : before)
#undef EMULATED_ATOMIC

// --- arithmetic

template <class T>
T __ldg(const T* p) {
  return *p;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return result;
}
inline unsigned __funnelshift_r(unsigned lower, unsigned upper, unsigned n) {
  return static_cast<unsigned>((static_cast<unsigned long long>(upper) << 32 | lower) >> n % 32);
}
inline unsigned __funnelshift_rc(unsigned lower, unsigned upper, unsigned n) {
  return static_cast<unsigned>((static_cast<uint64_t>(upper) << 32 | lower) >> (n < 32 ? n : 32));
}
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline int __float2int_rn(float x) {
  if (!(std::fabs(x) < 0x1p31f)) return x > 0 ? INT32_MAX : x < 0 ? INT32_MIN : 0;
  return static_cast<int>(std::nearbyint(x));
}
inline unsigned __float2uint_rn(float x) {
  if (!(x > 0)) return 0;
  return x < 0x1p32f ? static_cast<unsigned>(std::nearbyint(x)) : UINT32_MAX;
}

// float16 and float32, as cvt.f32.f16 and cvt.rn.f16.f32 convert them.
inline float float_of_half(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  float size = std::ldexp(static_cast<float>(exponent > 0 ? 1024 + mantissa : mantissa), std::max(exponent, 1) - 25);
  if (exponent == 31) size = mantissa != 0 ? NAN : INFINITY;
  return std::copysign(size, half >> 15 != 0 ? -1.0f : 1.0f);
}
// As lg2.approx.ftz.f32 and ex2.approx.ftz.f32, with errors as large as these may have, or smaller.
EMULATED_UNWATCHED inline float with_error(double exact, double most) {
  static uint32_t turn = 0;
  turn = turn * 1664525 + 1013904223;
  return static_cast<float>(exact + most * (static_cast<double>(turn >> 8) * 0x1p-23 - 1));
}
inline float quick_log2(float x) {
  if (std::fabs(x) < 0x1p-126f) return -INFINITY;
  const double exact = std::log2(static_cast<double>(x));
  return with_error(exact, 0x1p-22 * std::max(std::fabs(exact), 1.0));
}
inline float quick_power(float x) {
  const double exact = std::exp2(static_cast<double>(x));
  return exact < 0x1p-126 ? 0 : with_error(exact, 0x1p-22 * exact);
}
inline uint16_t half_of_float(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const float size = std::fabs(x);
  if (std::isnan(x)) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size < 0x1p-14f ? -14 : std::ilogb(size);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign + (exponent + 14) * 1024 + units);
}
