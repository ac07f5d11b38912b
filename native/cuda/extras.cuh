// Where the extra words of a chunk go is known once those of all chunks before it are counted: found in the same launch,
// as groups are placed. Until then they wait in shared memory.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/bucketed/bucket_chunks.h"
#include "codecs/bucketed/window_extras.h"
#include "cuda/bucket_arguments.h"
#include "cuda/look_back.cuh"

namespace arrcomp::cuda {

// On a processor: leaves a thread 96 registers; from Blackwell on, for which a few more are needed, 128.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int min_extras_blocks = 4;
#else
constexpr int min_extras_blocks = 5;
#endif

// The memory of a warp that encodes.
template <HasExtras Coder>
struct ExtrasMemory {
  uint32_t words[rows_per_chunk * Coder::max_extra_bits];
};

// Of a warp that encodes windows.
struct WindowExtras {
  uint32_t words[max_window_extra_words];
};

// The next free unit, the same in all lanes.
ARRCOMP_INLINE uint64_t take_unit(uint64_t* tickets) {
  uint64_t ticket = 0;
  if (leader()) ticket = atomicAdd(reinterpret_cast<unsigned long long*>(tickets), 1ull);
  return or_all(U64{ticket});
}

// Places the `count` words of a chunk, which all lanes see.
ARRCOMP_INLINE void put_extras(const BucketEncodeArray& array, uint64_t* entries, uint64_t chunk, const uint32_t* words,
                               uint32_t count) {
  const BucketPlan& plan = array.plan;
  const uint64_t begin = exclusive_sum(entries + array.first_unit, chunk, count), end = begin + count;
  uint32_t* const out = extra_words(plan, array.payload) + begin;
  for (uint32_t i = static_cast<uint32_t>(lane()); i < count; i += lanes_per_row) out[i] = words[i];
  if (!leader()) return;
  extras_directory(plan, array.payload)[chunk] = end;
  if (chunk + 1 == plan.chunks()) *array.length = plan.length + end * sizeof(uint32_t);
}

// Encodes a chunk and its extra words: encode(words) puts them there, and returns their number.
template <class Encode>
ARRCOMP_INLINE void encode_chunk(const BucketEncodeArray& array, uint64_t chunk, uint64_t* entries, uint32_t* words,
                                 Encode encode) {
  const uint32_t count = encode(words);
  put_extras(array, entries, chunk, words, count);
  sync();
}

// Decodes a chunk of a payload of this length: decode(words, count) tells whether there are enough. False where the
// payload is corrupt.
template <class Decode>
ARRCOMP_INLINE bool decode_chunk(const BucketDecodeArray& array, uint64_t chunk, uint64_t length, Decode decode) {
  const BucketPlan& plan = array.plan;
  const uint64_t* const ends = extras_directory(plan, array.payload);
  const uint64_t begin = chunk > 0 ? ends[chunk - 1] : 0, end = ends[chunk], bytes = length - plan.length;
  if (begin > end || end > bytes / sizeof(uint32_t)) return false;
  if (chunk + 1 == plan.chunks() && end * sizeof(uint32_t) != bytes) return false;
  const bool ok = decode(extra_words(plan, array.payload) + begin, end - begin);
  sync();
  return ok;
}

}  // namespace arrcomp::cuda
