// What a back end does: encode and decode arrays, all of a call with one element type, so that many small ones go into
// one launch. All sizes are in bytes unless they say elements; the payload is FORMAT.md's, section 3.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "stream/activation.h"
#include "stream/sums.h"

namespace arrcomp {

// An array to encode, in the back end's memory space.
struct Encoding {
  const void* source;  // `count` elements; any alignment on the CPU, the element's on CUDA
  uint8_t* payload;    // capacity(codec, element, count) bytes, aligned to 8
  uint64_t count;      // elements
};

// An array to decode, in the back end's memory space.
struct Decoding {
  const uint8_t* payload;  // `limit` bytes, aligned to 8
  uint64_t limit;
  const uint64_t* length;  // of the payload, aligned to 4; null where it is `limit`
  void* target;            // `count` elements; any alignment on the CPU, the element's on CUDA
  uint64_t count;          // elements
};

// Bytes [begin, end) of a payload.
struct Span {
  uint64_t begin, end;
};

// Of all arrays.
template <class Arrays>
uint64_t elements_of(const Arrays& arrays) {
  uint64_t elements = 0;
  for (const auto& array : arrays) elements += array.count;
  return elements;
}

namespace cpu {

// All of these throw std::bad_alloc, and Interrupted where an Interruption of the calling thread says so (interruption.h).

// Encodes all arrays, with at most `threads` threads (0: as many as there are cores for this process). The payloads'
// lengths go to `lengths`.
void encode(const Codec& codec, const Element& element, std::span<const Encoding> arrays, uint64_t* lengths,
            const Seed& seed, int threads);

// Decodes all arrays. The index of the first whose payload is corrupt (its target then holds anything), or their
// number.
size_t decode(const Codec& codec, const Element& element, std::span<const Decoding> arrays, int threads);

// What is corrupt of a payload's length, head or directory, as FORMAT.md calls it, or null: all that can be known without
// memory for the array. The `length` bytes at `payload` have any alignment. Throws std::bad_alloc.
const char* payload_fault(const Codec& codec, const Element& element, const uint8_t* payload, uint64_t length,
                          uint64_t count);

// Decodes elements [first, first + count) of an array, of which `target` has room for these alone; false where the payload
// is found corrupt, of which other groups and chunks are not looked at.
bool decode_part(const Codec& codec, const Element& element, const Decoding& array, uint64_t first, uint64_t count,
                 int threads);

// What part_spans looks at of a payload of `length` bytes, whatever the part. Throws std::bad_alloc.
std::vector<Span> part_index(const Codec& codec, const Element& element, uint64_t count, uint64_t length);

// What decode_part looks at beside that, of `array` without a target; nothing where it will find that corrupt. Throws
// std::bad_alloc.
std::vector<Span> part_spans(const Codec& codec, const Element& element, const Decoding& array, uint64_t first,
                             uint64_t count);

// Puts the elements of a sum that begins with the array `start` to `target`, which may be `start` (any alignment). The
// index of the first term whose payload is corrupt (nothing is then written), or their number.
size_t accumulate(const Sum& sum, const void* start, void* target, int threads);

// Encodes a sum: what encode writes of an array with its elements, for `codec`. As accumulate tells of corrupt payloads
// (nothing is then written). `payload` and `length` are as of encode.
size_t encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  int threads);

// Puts an activation function's values, and what is kept of the array for its gradient.
void activate(const Activation& activation, const Steps& steps, const Element& element, const Activating& array,
              int threads);

// The gradient, from what `activate` kept.
void times_steps(const Steps& steps, const Element& element, const TimesSteps& array, int threads);

// Cores that this process may use.
int available_threads();

// Instruction sets that this processor has, the best first, ending with a null pointer; and the one in use.
const char* const* instruction_sets();
const char* instruction_set();
bool use_instruction_set(const char* name);

}  // namespace cpu

namespace cuda {

enum class Status : int { ok = 0, unavailable = 1, failed = 2 };

// Instead of a device's number: the one that is current on this thread.
constexpr int current_device = -1;

bool is_built();
int device_count();

// The text of the last failure on this thread.
const char* last_error();

// Bytes of device memory that encode needs as scratch on this device, for arrays of so many elements.
Status encode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts, int device,
                            uint64_t& bytes);

// As cpu::encode, with device memory everywhere (`scratch` aligned to 256), enqueued on `stream` (a cudaStream_t)
// without waiting. The spans are read before this returns. Safe to capture in a graph.
Status encode(const Codec& codec, const Element& element, std::span<const Encoding> arrays, uint64_t* lengths,
              const Seed& seed, void* scratch, void* stream, int device);

// Bytes of device memory that decode needs as scratch for arrays of so many elements.
uint64_t decode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts);

// As cpu::decode, enqueued; *status (device memory) is set to 0, or to 1 where a payload is corrupt.
Status decode(const Codec& codec, const Element& element, std::span<const Decoding> arrays, uint32_t* status,
              void* scratch, void* stream, int device);

// Bytes of device memory that accumulate needs as scratch for so many terms.
uint64_t accumulate_scratch_bytes(size_t terms);

// As cpu::accumulate, enqueued; `status` is as of decode. The arrays are aligned to their elements.
Status accumulate(const Sum& sum, const void* start, void* target, uint32_t* status, void* scratch, void* stream,
                  int device);

// Bytes of device memory that encode_sum needs as scratch.
Status encode_sum_scratch_bytes(const Codec& terms_codec, const Codec& codec, const Element& element, size_t terms,
                                uint64_t count, int device, uint64_t& bytes);

// As cpu::encode_sum, enqueued; `status` is as of decode.
Status encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  uint32_t* status, void* scratch, void* stream, int device);

// As cpu::activate and cpu::times_steps, enqueued.
Status activate(const Activation& activation, const Steps& steps, const Element& element, const Activating& array,
                void* stream, int device);
Status times_steps(const Steps& steps, const Element& element, const TimesSteps& array, void* stream, int device);

}  // namespace cuda
}  // namespace arrcomp
