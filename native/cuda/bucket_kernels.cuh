// Bucketed codecs as kernels: one warp encodes or decodes one unit. Where everything stands follows from the plan.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/bucketed/chunk_windows.h"
#include "cuda/bucket_arguments.h"
#include "cuda/extras.cuh"
#include "cuda/segments.cuh"
#include "cuda/shared.cuh"
#include "cuda/tiling.h"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

template <class T>
ARRCOMP_INLINE void copy_elements(const void* from, uint64_t from_first, void* to, uint64_t to_first, uint64_t count) {
  ARRCOMP_ROLLED
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    store_elements<T>(to, to_first + i, n, load_elements<T>(from, from_first + i, n));
  }
}
template <class... Arguments>
ARRCOMP_INLINE void copy_elements(const Element& element, Arguments... arguments) {
  switch (element.width) {
    case 16: return copy_elements<Float16>(arguments...);
    case 32: return copy_elements<Float32>(arguments...);
    default: return copy_elements<Float64>(arguments...);
  }
}

// Elements that are stored as they are, of a unit behind the chunks: [first, first + count) of them.
struct TailPart {
  uint64_t first, count;

  ARRCOMP_SHARED TailPart(const BucketPlan& plan, uint64_t unit) {
    const uint64_t tail = plan.count - plan.quantized;
    first = (unit - plan.chunks()) * chunk_size;
    count = tail - first < chunk_size ? tail - first : chunk_size;
  }
};

// All of a payload but the numbers, the codes and the elements that are stored as they are; of an empty array all.
ARRCOMP_INLINE void finish_payload(const BucketEncodeArray& array) {
  const BucketPlan& plan = array.plan;
  const auto clear = [&](uint64_t begin, uint64_t end) {
    ARRCOMP_ROLLED
    for (uint64_t b = begin; b < end; ++b) array.payload[b] = 0;
  };
  if (plan.quantized == 0) clear(0, plan.buckets_offset);
  clear(plan.buckets_end(), plan.buckets_padded());
  clear(plan.tail_offset + plan.tail_bytes(), plan.tail_padded());
  if (!plan.has_extras || plan.quantized == 0) *array.length = plan.length;
}

ARRCOMP_INLINE void copy_tail(const BucketEncodeArray& array, uint64_t unit) {
  const TailPart part(array.plan, unit);
  copy_elements(array.plan.element, array.source, array.plan.quantized + part.first,
                array.payload + array.plan.tail_offset, part.first, part.count);
}

// The settings where the codec shall find them: those that lanes look up tables in are copied to shared memory, as
// arguments are slow to read where lanes ask for different places.
template <class Coder, bool encodes>
ARRCOMP_INLINE const typename Coder::Settings& settings_at_hand(const typename Coder::Settings& arguments) {
  if constexpr (requires { Coder::looks_up; } && encodes) {
    return in_shared_memory_as<typename Coder::SettingsToEncode>(arguments);
  } else if constexpr (requires { Coder::looks_up; }) {
    return in_shared_memory(arguments);
  } else {
    return arguments;
  }
}

ARRCOMP_INLINE uint64_t read_seed(const Seed& seed) { return seed.at == nullptr ? seed.value : read_number(seed.at); }

// Writes the numbers of the bucket that begins in each chunk, or those of each array.
template <class Coder>
__global__ void __launch_bounds__(threads_per_block, min_bucket_blocks)
    fit_buckets_kernel(const __grid_constant__ FitArguments<typename Coder::Settings> a) {
  __shared__ BucketStatistics memories[warps_per_block][lanes_per_row];
  BucketStatistics* const memory = memories[threadIdx.x / lanes_per_row];
  const uint64_t seed = read_seed(a.seed);
  for_each_unit(a.work.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Segments segments(array.plan, a.work.of_array);
    const Segment segment = segments.first_in(chunk);
    if (segment.count == 0) return;
    const uint64_t runs = ceil_div(segments.of_bucket_at(segment.first), segments_per_run);
    const BucketStatistics all =
        runs > 1 ? join_segments<true>(a.work.statistics + unit, runs, segments_per_run, memory)
                 : join_segments<true>(a.work.statistics + unit, segments.of_bucket_at(segment.first), 1, memory);
    if (!a.work.of_array) {
      const BucketContext<Coder> context{array.plan, a.settings};
      store_bucket(context, all, array.source, array.payload, seed, segment.first / array.plan.bucket_size);
    } else if constexpr (requires { Coder::store_array(a.settings, array.payload, all); }) {
      Coder::store_array(a.settings, array.payload, all);
    }
  });
}

// Numbers of 64 bits take more registers, and so do guesses; from Blackwell on all do: a thread then has 96, or 128.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int coding_blocks = min_bucket_blocks - 1;
#else
constexpr int coding_blocks = min_bucket_blocks;
#endif
template <class Coder>
constexpr int min_coding_blocks = coding_blocks - (sizeof(typename Coder::Scalar) == 8 || Guesses<Coder>);
// Encoding what is not regular takes more before Hopper.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <class Coder>
constexpr int min_encoding_blocks = min_coding_blocks<Coder> - 1;
#else
template <class Coder>
constexpr int min_encoding_blocks = min_coding_blocks<Coder>;
#endif
// Of regular chunks' kernels: a thread has 64 registers; before Ampere, where that is too few, 96.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int min_window_blocks = 5;
#else
constexpr int min_window_blocks = 8;
#endif
// Where buckets are fitted alone: a thread has 96.
constexpr int min_fit_blocks = 5;

// What of an array regular chunks' kernels code: its first chunks, as many as this says. The rest is the other kernels'.
template <class Coder>
ARRCOMP_SHARED uint64_t encoded_in_windows(const BucketEncodeArray& array, const typename Coder::Settings& settings) {
  if constexpr (HasWindows<Coder>) {
    if (is_encoded_in_windows<Coder>(array.plan, settings)) return regular_chunks(array.plan, array.source);
  }
  return 0;
}
template <class Coder>
ARRCOMP_SHARED uint64_t decoded_in_windows(const BucketDecodeArray& array) {
  if constexpr (HasWindows<Coder>) {
    if (has_windows<Coder>(array.plan)) return regular_chunks(array.plan, array.target);
  }
  return 0;
}

// Writes the numbers of small buckets of regular chunks, of codecs whose windows do not fit them.
template <HasWindows Coder>
__global__ void __launch_bounds__(threads_per_block, min_fit_blocks)
    fit_chunks_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  const uint64_t seed = read_seed(a.work.seed);
  for_each_unit(a.work.arrays, [&](const BucketEncodeArray& array, uint64_t unit, uint64_t) {
    if (unit >= encoded_in_windows<Coder>(array, a.settings) || array.plan.bucket_size > segment_size) return;
    const BucketContext<Coder> context{array.plan, a.settings};
    BucketChunk<Coder>(context, unit, array.payload).fit(array.source, array.payload, seed);
  });
}

// A warp's: for windows, and what it knows of a chunk, which is more than its lanes have registers for beside a window.
template <class Coder, class Memory, bool has_rounds = !HasExtras<Coder>>
struct ChunkMemory {
  Memory of_windows;
  uint32_t rounds[lanes_per_row];
  alignas(ChunkWindows<Coder>) uint8_t chunk[sizeof(ChunkWindows<Coder>)];
};
template <class Coder, class Memory>
struct ChunkMemory<Coder, Memory, false> {
  Memory of_windows;
  alignas(ChunkWindows<Coder>) uint8_t chunk[sizeof(ChunkWindows<Coder>)];
};

template <class Coder, class Memory>
ARRCOMP_INLINE const ChunkWindows<Coder>& windows_of(const typename Coder::Settings& settings, const BucketPlan& plan,
                                                     uint64_t chunk, const void* elements, const uint8_t* payload,
                                                     uint64_t seed, ChunkMemory<Coder, Memory>& memory) {
  const Coder coder(settings, plan.element, payload);
  const ChunkWindows<Coder> windows(plan, coder, chunk, elements, payload, seed);
  static_assert(std::is_trivially_copyable_v<ChunkWindows<Coder>>);
  sync();  // what was there before has been read
  if (leader()) memcpy(memory.chunk, &windows, sizeof windows);
  sync();
  return *reinterpret_cast<const ChunkWindows<Coder>*>(memory.chunk);
}

template <HasWindows Coder>
__global__ void __launch_bounds__(threads_per_block, min_window_blocks)
    encode_windows_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  __shared__ ChunkMemory<Coder, typename ChunkWindows<Coder>::EncodeMemory> memories[warps_per_block];
  auto& memory = memories[warp_of_block()];
  const typename Coder::Settings& settings = settings_at_hand<Coder, true>(a.settings);
  for_each_unit(a.work.arrays, memory.rounds[lane()], [&](const BucketEncodeArray& array, uint64_t unit, uint64_t) {
    if (unit >= encoded_in_windows<Coder>(array, settings)) return;
    if (unit == 0 && leader()) finish_payload(array);
    NoExtras none;
    windows_of<Coder>(settings, array.plan, unit, array.source, array.payload, read_seed(a.work.seed), memory)
        .encode(memory.of_windows, none);
  });
}

template <class Coder>
__global__ void __launch_bounds__(threads_per_block, min_encoding_blocks<Coder>)
    encode_buckets_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  __shared__ BucketMemory<Coder> memories[warps_per_block];
  BucketMemory<Coder>& memory = memories[warp_of_block()];
  const typename Coder::Settings& settings = settings_at_hand<Coder, true>(a.settings);
  const uint64_t seed = read_seed(a.work.seed);
  for_each_unit(a.work.arrays, [&](const BucketEncodeArray& array, uint64_t unit, uint64_t) {
    const BucketPlan& plan = array.plan;
    if (unit < encoded_in_windows<Coder>(array, settings)) return;
    if (unit < plan.chunks()) {
      const BucketContext<Coder> context{plan, settings};
      BucketChunk<Coder>(context, unit, array.payload).encode(array.source, array.payload, seed, memory);
    } else {
      copy_tail(array, unit);
    }
    if (unit == 0 && leader()) finish_payload(array);
  });
}

// Calls visit(array, unit of the array, unit of the call) for each unit that this warp takes: in order, so that no warp
// waits for one that does not run.
template <class Array, class Visitor>
ARRCOMP_INLINE void for_each_ticket(const ArrayList<Array>& list, uint64_t* tickets, Visitor visit) {
  const Array* const arrays = list.begin();
  for (uint64_t ticket = take_unit(tickets); ticket < list.units; ticket = take_unit(tickets)) {
    const Array& array = arrays[array_of_unit(arrays, list.count, ticket)];
    visit(array, ticket - array.first_unit);
  }
}

// The same for codecs with extra words: regular chunks, whose words are placed first.
template <HasExtras Coder>
  requires HasWindows<Coder>
__global__ void __launch_bounds__(threads_per_block, min_window_blocks)
    encode_extra_windows_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  __shared__ ChunkMemory<Coder, typename ChunkWindows<Coder>::EncodeMemory> memories[warps_per_block];
  __shared__ WindowExtraBuffer buffers[warps_per_block];
  __shared__ WindowExtras extras[warps_per_block];
  const uint32_t warp = warp_of_block();
  for_each_ticket(a.work.arrays, a.work.tickets, [&](const BucketEncodeArray& array, uint64_t unit) {
    if (unit >= encoded_in_windows<Coder>(array, a.settings)) return;
    if (unit == 0 && leader()) finish_payload(array);
    encode_chunk(array, unit, a.work.entries, extras[warp].words, [&](uint32_t* words) {
      WindowExtraWriter writer(buffers[warp], words);
      windows_of<Coder>(a.settings, array.plan, unit, array.source, array.payload, read_seed(a.work.seed),
                        memories[warp])
          .encode(memories[warp].of_windows, writer);
      return writer.finish(array.plan.extra_bits, array.plan.code_bits);
    });
  });
}

template <HasExtras Coder>
__global__ void __launch_bounds__(threads_per_block, min_extras_blocks)
    encode_extras_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  __shared__ BucketMemory<Coder> memories[warps_per_block];
  __shared__ ExtrasMemory<Coder> extras[warps_per_block];
  const uint32_t warp = threadIdx.x / lanes_per_row;
  const uint64_t seed = read_seed(a.work.seed);
  for_each_ticket(a.work.arrays, a.work.tickets + 1, [&](const BucketEncodeArray& array, uint64_t unit) {
    if (unit < encoded_in_windows<Coder>(array, a.settings)) return;
    if (unit < array.plan.chunks()) {
      const BucketContext<Coder> context{array.plan, a.settings};
      const BucketChunk<Coder> chunk(context, unit, array.payload);
      encode_chunk(array, unit, a.work.entries, extras[warp].words, [&](uint32_t* words) {
        return chunk.encode(array.source, array.payload, seed, memories[warp], words);
      });
    } else {
      copy_tail(array, unit);
    }
    if (unit == 0 && leader()) finish_payload(array);
  });
}

ARRCOMP_INLINE void copy_tail_back(const BucketDecodeArray& array, uint64_t unit) {
  const TailPart part(array.plan, unit);
  copy_elements(array.plan.element, array.payload + array.plan.tail_offset, part.first, array.target,
                array.plan.quantized + part.first, part.count);
}

// False, and told to the status, where the payload has not the plan's length.
ARRCOMP_INLINE bool has_planned_length(const BucketDecodeArray& array, uint32_t* status) {
  const uint64_t length = array.payload_length();
  const bool ok = length <= array.limit && length == array.plan.length;
  if (!ok && leader()) atomicOr(status, 1u);
  return ok;
}

template <HasWindows Coder>
__global__ void __launch_bounds__(threads_per_block, min_window_blocks)
    decode_windows_kernel(const __grid_constant__ BucketArguments<BucketDecodeWork, typename Coder::Settings> a) {
  __shared__ ChunkMemory<Coder, typename ChunkWindows<Coder>::DecodeMemory> memories[warps_per_block];
  auto& memory = memories[warp_of_block()];
  const typename Coder::Settings& settings = settings_at_hand<Coder, false>(a.settings);
  for_each_unit(a.work.arrays, memory.rounds[lane()], [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    if (unit >= decoded_in_windows<Coder>(array) || !has_planned_length(array, a.work.status)) return;
    NoExtras none;
    windows_of<Coder>(settings, array.plan, unit, array.target, array.payload, 0, memory)
        .decode(memory.of_windows, none);
  });
}

template <class Coder>
__global__ void __launch_bounds__(threads_per_block, min_coding_blocks<Coder>)
    decode_buckets_kernel(const __grid_constant__ BucketArguments<BucketDecodeWork, typename Coder::Settings> a) {
  const typename Coder::Settings& settings = settings_at_hand<Coder, false>(a.settings);
  for_each_unit(a.work.arrays, [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    if (unit < decoded_in_windows<Coder>(array) || !has_planned_length(array, a.work.status)) return;
    if (unit >= array.plan.chunks()) return copy_tail_back(array, unit);
    const BucketContext<Coder> context{array.plan, settings};
    BucketChunk<Coder>(context, unit, array.payload).decode(array.payload, array.target);
  });
}

// Whether a payload with extra words may be as long as it says.
ARRCOMP_INLINE bool has_possible_length(const BucketDecodeArray& array) {
  const uint64_t length = array.payload_length(), least = array.plan.length;
  return length <= array.limit && length >= least && (length == least || array.plan.quantized > 0);
}

template <HasExtras Coder>
  requires HasWindows<Coder>
__global__ void __launch_bounds__(threads_per_block, min_window_blocks)
    decode_extra_windows_kernel(const __grid_constant__ BucketArguments<BucketDecodeWork, typename Coder::Settings> a) {
  __shared__ ChunkMemory<Coder, typename ChunkWindows<Coder>::DecodeMemory> memories[warps_per_block];
  __shared__ ExtraQueue queues[warps_per_block];
  const uint32_t warp = warp_of_block();
  for_each_unit(a.work.arrays, [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    if (unit >= decoded_in_windows<Coder>(array)) return;
    const bool ok = has_possible_length(array) &&
                    decode_chunk(array, unit, array.payload_length(), [&](const uint32_t* words, uint64_t count) {
                      ExtraReader reader(queues[warp], words, count, array.plan.extra_bits, array.plan.code_bits);
                      windows_of<Coder>(a.settings, array.plan, unit, array.target, array.payload, 0, memories[warp])
                          .decode(memories[warp].of_windows, reader);
                      return reader.is_at_end();
                    });
    if (!ok && leader()) atomicOr(a.work.status, 1u);
  });
}

template <HasExtras Coder>
__global__ void __launch_bounds__(threads_per_block, min_coding_blocks<Coder>)
    decode_extras_kernel(const __grid_constant__ BucketArguments<BucketDecodeWork, typename Coder::Settings> a) {
  __shared__ ExtraQueue queues[warps_per_block];
  bool ok = true;
  for_each_unit(a.work.arrays, [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    if (unit < decoded_in_windows<Coder>(array)) return;
    if (!has_possible_length(array)) {
      ok = false;
    } else if (unit < array.plan.chunks()) {
      const BucketContext<Coder> context{array.plan, a.settings};
      const BucketChunk<Coder> chunk(context, unit, array.payload);
      ok = decode_chunk(array, unit, array.payload_length(),
                        [&](const uint32_t* words, uint64_t count) {
                          return chunk.decode(array.payload, array.target, words, count,
                                              queues[threadIdx.x / lanes_per_row]);
                        }) &&
           ok;
    } else {
      copy_tail_back(array, unit);
    }
  });
  if (!ok && leader()) atomicOr(a.work.status, 1u);
}

// Kernels of regular chunks, and of others.
template <class Coder>
constexpr auto encode_windows_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return encode_extra_windows_kernel<Coder>;
  } else {
    return encode_windows_kernel<Coder>;
  }
}
template <class Coder>
constexpr auto decode_windows_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return decode_extra_windows_kernel<Coder>;
  } else {
    return decode_windows_kernel<Coder>;
  }
}
template <class Coder>
constexpr auto encode_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return encode_extras_kernel<Coder>;
  } else {
    return encode_buckets_kernel<Coder>;
  }
}
template <class Coder>
constexpr auto decode_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return decode_extras_kernel<Coder>;
  } else {
    return decode_buckets_kernel<Coder>;
  }
}

}  // namespace arrcomp::cuda
