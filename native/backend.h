// The contract of a back end. A call encodes or decodes arrays of one element type, so that many small ones share a
// launch. Sizes are in bytes unless a name says elements. FORMAT.md, sections 3 and 5, defines payloads.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "stream/activation.h"
#include "stream/sums.h"

namespace arrcomp {

// An array to encode, in the back end's memory space.
struct EncodeTask {
  const void* source;               // `count` elements; any alignment on the CPU, the element's on CUDA
  uint8_t* payload;                 // capacity(codec, element, count) bytes, aligned to 8
  uint64_t count;                   // elements
  Axes axes = {};                   // that predictors need; all 0: they are not known
  const void* reference = nullptr;  // as `source`, of a codec with a reference
};

// An array to decode, in the back end's memory space.
struct DecodeTask {
  const uint8_t* payload;  // `limit` bytes, aligned to 8
  uint64_t limit;
  const uint64_t* length;           // of the payload, aligned to 4; null if it is `limit`
  void* target;                     // `count` elements; any alignment on the CPU, the element's on CUDA
  uint64_t count;                   // elements
  const void* reference = nullptr;  // as `target`, which it may be, of a codec with a reference
};

// Thrown where a reference is another one than that of the encoder.
struct WrongReference {
  size_t array;            // its index among those of the call
  uint64_t expected, got;  // hashes
};

// Bytes [begin, end) of a payload.
struct ByteRange {
  uint64_t begin, end;
};

// The elements of all arrays.
template <class Arrays>
uint64_t elements_of(const Arrays& arrays) {
  uint64_t elements = 0;
  for (const auto& array : arrays) elements += array.count;
  return elements;
}

namespace cpu {

// All of these throw std::bad_alloc, and Interrupted if the calling thread is interrupted (interruption.h).

// Encodes all arrays with at most `threads` threads (0: the number of cores that this process may use). Writes the
// payloads' lengths to `lengths`.
void encode(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
            const Seed& seed, int threads);

// Decodes all arrays. Returns the index of the first corrupt payload (its target is then undefined), or the number of
// arrays. Throws WrongReference before anything is written.
size_t decode(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, int threads);

// The hash of an array that is a reference (FORMAT.md, section 10.4).
uint64_t content_hash(const Element& element, const void* array, uint64_t count, int threads);

// Names what is corrupt in a payload's length, header or directory, in FORMAT.md's words; null if nothing is. Takes no
// memory for the array. The `length` bytes at `payload` have any alignment.
const char* payload_fault(const Codec& codec, const Element& element, const uint8_t* payload, uint64_t length,
                          uint64_t count);

// Decodes elements [first, first + count) of an array; `target` has room for these alone. Reads only the groups or
// chunks that hold them. Returns false if these are corrupt.
bool decode_range(const Codec& codec, const Element& element, const DecodeTask& array, uint64_t first, uint64_t count,
                  int threads);

// The bytes that payload_ranges reads of any payload of `length` bytes: its header and directory.
std::vector<ByteRange> directory_ranges(const Codec& codec, const Element& element, uint64_t count, uint64_t length);

// The other bytes that decode_range reads, of `array` without a target; none if header or directory are corrupt.
std::vector<ByteRange> payload_ranges(const Codec& codec, const Element& element, const DecodeTask& array,
                                      uint64_t first, uint64_t count);

// Writes the elements of a sum that begins with the array `start` to `target`, which may be `start` (any alignment).
// Returns the index of the first term whose payload is corrupt (nothing is then written), or the number of terms.
size_t accumulate(const Sum& sum, const void* start, void* target, int threads);

// Encodes a sum with `codec`: the same bytes as encode writes for an array of the sum's elements. Returns the same as
// accumulate; `payload` and `length` are the same as in encode.
size_t encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  int threads);

// Writes an activation function's values, and what the gradient needs of the array.
void activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
              int threads);

// Writes the gradient, from what `activate` kept.
void step_grad(const Steps& steps, const Element& element, const StepGradTask& array, int threads);

// Cores that this process may use.
int available_threads();

// The instruction sets that this processor has, the best first, ending with a null pointer; and the one in use.
const char* const* instruction_sets();
const char* instruction_set();

// The processor's best set where this build has plain code alone for it; else an empty name.
const char* missing_instruction_set();
bool use_instruction_set(const char* name);

}  // namespace cpu

namespace cuda {

enum class Status : int { ok = 0, unavailable = 1, failed = 2 };

// Stands for the device that is current on this thread.
constexpr int current_device = -1;

bool is_built();
int device_count();

// The message of the last failure on this thread.
const char* last_error();

// Bytes of scratch memory that encode needs on this device for arrays with these numbers of elements.
Status encode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts, int device,
                            uint64_t& bytes);

// cpu::encode with device memory everywhere (`scratch` aligned to 256), enqueued on `stream` (a cudaStream_t):
// asynchronous. Reads the spans before it returns. A graph may capture it.
Status encode(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
              const Seed& seed, void* scratch, void* stream, int device);

// Bytes of scratch memory that decode needs for arrays with these numbers of elements.
uint64_t decode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts);

// cpu::decode, enqueued. Sets *status (device memory) to 0, or to 1 if a payload is corrupt, or to 2 (or 3) if a reference
// is another one than that of the encoder, whose array is not written then.
Status decode(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, uint32_t* status,
              void* scratch, void* stream, int device);

// Bytes of scratch memory that accumulate needs for so many terms.
uint64_t accumulate_scratch_bytes(size_t terms);

// cpu::accumulate, enqueued; `status` is the same as in decode. The arrays are aligned to their elements.
Status accumulate(const Sum& sum, const void* start, void* target, uint32_t* status, void* scratch, void* stream,
                  int device);

// Bytes of scratch memory that encode_sum needs.
Status encode_sum_scratch_bytes(const Codec& terms_codec, const Codec& codec, const Element& element, size_t terms,
                                uint64_t count, int device, uint64_t& bytes);

// cpu::encode_sum, enqueued; `status` is the same as in decode.
Status encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  uint32_t* status, void* scratch, void* stream, int device);

// cpu::activate and cpu::step_grad, enqueued.
Status activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
                void* stream, int device);
Status step_grad(const Steps& steps, const Element& element, const StepGradTask& array, void* stream, int device);

}  // namespace cuda
}  // namespace arrcomp
