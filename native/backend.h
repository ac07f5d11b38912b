// What a back end does. All sizes are in bytes unless they say elements; the payload is FORMAT.md's, section 3.
#pragma once
#include "stream/plan.h"
#include "stream/settings.h"

namespace arrcomp {

namespace cpu {

// Encodes the plan.count elements at `source` (host memory, any alignment) into `payload` (host memory, plan.capacity()
// bytes, aligned to 8). Returns the payload's length. Uses at most `threads` threads; throws std::bad_alloc before
// anything is written.
uint64_t encode(const Plan& plan, const Settings& settings, const void* source, uint8_t* payload, int threads);

// Decodes the `length` bytes at `payload` (host memory, aligned to 8) into plan.count elements at `target` (host
// memory, any alignment). False where the payload is corrupt: the target then holds anything.
bool decode(const Plan& plan, const uint8_t* payload, uint64_t length, void* target, int threads);

// Instruction sets that this processor has, the best first, ending with a null pointer; and the one in use.
const char* const* instruction_sets();
const char* instruction_set();
bool use_instruction_set(const char* name);

}  // namespace cpu

namespace cuda {

enum class Status : int { ok = 0, unavailable = 1, failed = 2 };

bool is_built();
int device_count();

// The text of the last failure on this thread.
const char* last_error();

// Bytes of device memory that encode needs as scratch on this device.
Status scratch_bytes(const Plan& plan, int device, uint64_t& bytes);

// As cpu::encode, with device memory everywhere (`source` aligned to the element, `payload` and `scratch` to 256),
// enqueued on `stream` (a cudaStream_t) without waiting. The first bytes of `scratch` then hold a ScratchHead. Safe to
// capture in a graph.
Status encode(const Plan& plan, const Settings& settings, const void* source, uint8_t* payload, void* scratch,
              void* stream, int device);

struct ScratchHead {
  uint64_t length;  // of the payload
  uint32_t status;  // 0
  uint32_t tickets;
  uint64_t range_keys[2];  // of the smallest value, inverted, and of the largest
  double bound;
};

// As cpu::decode, enqueued; *status (device memory) is set to 0, or to 1 where the payload is corrupt.
Status decode(const Plan& plan, const uint8_t* payload, uint64_t length, void* target, uint32_t* status, void* stream,
              int device);

}  // namespace cuda
}  // namespace arrcomp
