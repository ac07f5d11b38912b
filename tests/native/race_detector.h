// Finds what a GPU does not promise: accesses to memory by several lanes that no barrier puts in order.
//
// A program that is compiled with -fsanitize=thread (GCC's; test_emulated_warp.py has all options) calls a function
// before each access to memory. It is linked without the sanitizer's library: race_detector.cpp has these functions, and
// memcpy's. It notes for each byte which lanes have read and written it, and reports two accesses, at least one of them
// a write, by two lanes
//
//   of one warp without __syncwarp between them (votes, shuffles and reductions order no memory),
//   of two warps of a block without __syncthreads between them, or
//   of two blocks of a launch.
//
// Lanes may write the same value to the same place, as CUDA has it; each then may read what it wrote. Atomic and
// volatile accesses to the same place need no order among themselves. What lanes publish by them is not followed: data
// that another warp reads after it has seen a flag is reported. Of reads by several warps, the last is remembered. The
// own stack of a lane is its registers and local memory, which no other lane sees.
//
// Each pair of places in the code is reported once; a program in which any was found ends with an error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulated::races {

enum class Kind : uint8_t { read_after_write, write_after_read, write_after_write, with_atomic };

#if defined(__SANITIZE_THREAD__) || defined(EMULATED_RACE_DETECTOR)
constexpr bool are_looked_for = true;

// ---- what the emulator tells

void begin_launch();
void begin_block(unsigned block, int warps);
// A warp has come to the __syncwarp at `place`, an address in the program.
void synced_warp(int warp, const void* place);
// All warps of the block have come to __syncthreads.
void synced_block();
// From here on a lane, which has this stack, runs, until pause().
void go_on(int warp, int lane, const void* stack, size_t stack_bytes);
void pause();
// The lane that runs changes `bytes` bytes at `p` atomically, as the code at `place` wants.
void atomic(const void* p, size_t bytes, const void* place);

// ---- what tests ask

// The kinds that were found since the last call, in order. What is told here does not end the program with an error.
std::vector<Kind> take_found();
// Where __syncwarp was called since the last call.
std::vector<const void*> take_sync_places();
// From here on the __syncwarp at this place orders nothing, and what is found is not printed. Not so after nullptr.
void leave_out_sync(const void* place);
// Where the place is in the source, innermost function first.
void print_place(const void* place);

#else
constexpr bool are_looked_for = false;

inline void begin_launch() {}
inline void begin_block(unsigned, int) {}
inline void synced_warp(int, const void*) {}
inline void synced_block() {}
inline void go_on(int, int, const void*, size_t) {}
inline void pause() {}
inline void atomic(const void*, size_t, const void*) {}

inline std::vector<Kind> take_found() { return {}; }
inline std::vector<const void*> take_sync_places() { return {}; }
inline void leave_out_sync(const void*) {}
inline void print_place(const void*) {}

#endif

}  // namespace emulated::races
