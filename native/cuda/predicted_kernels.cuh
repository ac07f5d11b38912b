// Predicted arrays as kernels: the parts of a step are independent of each other, and each is the work of a warp.
// Kernels are templates of the element type, those too that do not ask for it: each type has a file of its own.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/predicted/coarsest.h"
#include "codecs/predicted/columns.h"
#include "codecs/predicted/exact.h"
#include "codecs/predicted/gap_mask.h"
#include "codecs/predicted/refine.h"
#include "cuda/header.h"
#include "cuda/predicted_units.cuh"
#include "cuda/set_up.cuh"
#include "cuda/shared.cuh"

namespace arrcomp::cuda {

// ---- codes

// Blocks on a processor for which steps have registers enough: where words have 32 bits one more than other kernels, on GPUs
// that would not spill then, and where they have 64 bits one less on those that would.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ <= 900
constexpr int min_blocks_of_32_bit_steps = min_blocks + 1;
#else
constexpr int min_blocks_of_32_bit_steps = min_blocks;
#endif
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ > 900)
constexpr int min_blocks_of_64_bit_steps = min_blocks - 1;
#else
constexpr int min_blocks_of_64_bit_steps = min_blocks;
#endif
template <class T>
constexpr int min_blocks_of_step = T::width == 64 ? min_blocks_of_64_bit_steps : min_blocks_of_32_bit_steps;

// Whether codes serve all elements. Gaps are not told from others here, which would take registers.
ARRCOMP_METHOD void note(PredictedArray& array, Unserved unserved) {
  if (unserved != Unserved::none && leader()) atomicOr(&array.has_unserved, 1u);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    coarsen_kernel(const __grid_constant__ PredictionArguments a, int finer) {
  const auto elements = [](const Refinement& step) { return step.coarse_elements(); };
  for_each_part_of_step(a, finer, elements, [&](PredictedArray& array, int k, uint64_t begin, uint64_t end) {
    const Refinement step = array.refinements[k];
    PartOfStep<T>(step, warp_memory<Window<T>>()).coarsen(array.original_grid(k + 1), array.made_grid(k), begin, end);
  });
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks_of_step<T>)
    encode_step_kernel(const __grid_constant__ PredictionArguments a, int finer) {
  const auto elements = [](const Refinement& step) { return step.codes(); };
  for_each_part_of_step(a, finer, elements, [&](PredictedArray& array, int k, uint64_t begin, uint64_t end) {
    const Refinement step = array.refinements[k];
    const CodeBook<T> book(step.bound, step.scale, step.multiples);
    const Gaps<T> gaps(a.settings);
    const Unserved unserved =
        PartOfStep<T>(step, warp_memory<Window<T>>())
            .encode(book, gaps, array.made_grid(k), array.original_grid(k + 1), array.made_grid(k + 1),
                    codes_of<T>(array) + array.elements_of(k) + begin, begin, end);
    note(array, unserved);
  });
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks_of_step<T>)
    decode_step_kernel(const __grid_constant__ PredictionArguments a, int finer) {
  const auto elements = [](const Refinement& step) { return step.codes(); };
  for_each_part_of_step(a, finer, elements, [&](PredictedArray& array, int k, uint64_t begin, uint64_t end) {
    const Refinement step = array.refinements[k];
    const CodeBook<T> book(step.bound, step.scale, step.multiples);
    PartOfStep<T>(step, warp_memory<Window<T>>())
        .decode(book, array.decoded_grid(k), codes_of<T>(array) + array.elements_of(k) + begin,
                array.decoded_grid(k + 1), begin, end);
  });
}

// Brings elements from rows to columns, where codes would stand, or back from there.
template <class T, bool back>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    columns_kernel(const __grid_constant__ PredictionArguments a) {
  const auto tiles = [](const PredictedArray& array) {
    return array.prediction.is_by_columns() ? array.prediction.columns().tiles() : 0;
  };
  for_each_unit(a, tiles, [&](PredictedArray& array, uint64_t number) {
    const Columns matrix = array.prediction.columns();
    const ColumnOrder<T> order(matrix, warp_memory<ColumnTile<T>>());
    if constexpr (back) {
      order.to_rows(matrix.tile(number), array.codes, array.made);
    } else {
      order.to_columns(matrix.tile(number), array.source, array.codes);
    }
  });
}

// Lines of the coarsest grid.
ARRCOMP_INLINE uint64_t coarse_lines(const PredictedArray& array) {
  return array.prediction.is_by_columns() ? 0 : array.coarsest.outer(max_axes - 1);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    encode_lines_kernel(const __grid_constant__ PredictionArguments a) {
  for_each_unit(a, coarse_lines, [&](PredictedArray& array, uint64_t line) {
    const Prediction& prediction = array.prediction;
    const Gaps<T> gaps(a.settings);
    const GridIntegers<T> integers(array.bound, prediction.coarse_bound(a.element, array.bound), prediction.multiples);
    const uint64_t size = array.coarsest.sizes[max_axes - 1], first = line * size;
    const Unserved unserved =
        integers.encode(gaps, array.original_grid(0), first, size, array.made_grid(0), codes_of<T>(array) + first);
    note(array, unserved);
  });
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    decode_lines_kernel(const __grid_constant__ PredictionArguments a) {
  for_each_unit(a, coarse_lines, [&](PredictedArray& array, uint64_t line) {
    const Prediction& prediction = array.prediction;
    const GridIntegers<T> integers(array.bound, prediction.coarse_bound(a.element, array.bound), prediction.multiples);
    const uint64_t size = array.coarsest.sizes[max_axes - 1], first = line * size;
    integers.decode(codes_of<T>(array) + first, first, size, array.decoded_grid(0));
  });
}

// Takes the differences of the coarsest grid along an axis, or adds them up.
template <class T, bool take>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    differences_kernel(const __grid_constant__ PredictionArguments a, int axis) {
  const auto units = [&](const PredictedArray& array) {
    const Axes& grid = array.coarsest;
    return array.prediction.has_differences(axis) ? difference_units(grid.outer(axis), grid.inner(axis)) : 0;
  };
  for_each_unit(a, units, [&](PredictedArray& array, uint64_t unit) {
    const Axes& grid = array.coarsest;
    const AxisDifferences<typename T::Word> differences(codes_of<T>(array), grid.sizes[axis], grid.inner(axis), unit);
    if constexpr (take) {
      differences.take();
    } else {
      differences.add();
    }
  });
}

// ---- payloads

// Puts elements that must be kept exactly in place of those that were made, and absent ones in place of the others.
template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    find_exact_kernel(const __grid_constant__ PredictionArguments a) {
  for_each_part(a, [&](PredictedArray& array, uint64_t begin, uint64_t end) {
    if (array.has_unserved == 0) return;
    const ExactElements<T> exact(a.settings, array.prediction.mask, array.bound);
    const FoundExact found = exact.find(Unserved::others, array.source, array.made, begin, end - begin);
    if (found != FoundExact::none && leader()) atomicMax(&array.found_exact, static_cast<uint32_t>(found));
  });
}

// The mask of gaps: from elements to bytes, which stand where codes were, or back.
template <class T, bool back>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    mask_bits_kernel(const __grid_constant__ PredictionArguments a) {
  const auto pieces = [](const PredictedArray& array) {
    return array.has_mask() ? MaskGrid(array.prediction.axes).pieces() : 0;
  };
  for_each_unit(a, pieces, [&](PredictedArray& array, uint64_t number) {
    const MaskGrid::Piece piece = MaskGrid(array.prediction.axes).piece(number);
    const MaskBits<T> mask(array.prediction.mask);
    if constexpr (back) {
      mask.put(piece, array.codes, 0, array.elements(), array.made);
    } else {
      mask.find(piece, array.source, array.codes);
    }
  });
}

// Takes the differences of the mask's bytes along an axis but the last, or adds them up.
template <class T, bool take>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    mask_slices_kernel(const __grid_constant__ PredictionArguments a, int axis) {
  const auto units = [&](const PredictedArray& array) {
    if (!array.has_mask() || !array.prediction.mask.has_differences(axis)) return uint64_t{0};
    const Axes bytes = MaskGrid(array.prediction.axes).bytes();
    return difference_units(bytes.outer(axis), bytes.inner(axis));
  };
  for_each_unit(a, units, [&](PredictedArray& array, uint64_t unit) {
    const Axes bytes = MaskGrid(array.prediction.axes).bytes();
    const MaskSlices slices(array.codes, bytes.sizes[axis], bytes.inner(axis), unit);
    if constexpr (take) {
      slices.take();
    } else {
      slices.add();
    }
  });
}

// Lists what is to be encoded of each array, where it has any: codes, the mask, or the elements that are kept exactly.
template <class T, PredictedPart part>
__global__ void list_payloads(const __grid_constant__ PredictionArguments a, const __grid_constant__ EncodeArguments e,
                              Plan plan) {
  for (uint64_t i = thread_of_grid(); i < a.count; i += threads_of_grid()) {
    PredictedArray& array = a.arrays[i];
    EncodeArray& listed = e.arrays[i];
    const bool is_predicted = array.is_active && !array.prediction.is_by_columns();
    bool has_any = is_predicted;
    if constexpr (part == PredictedPart::codes) {
      const Plan own = array.is_active ? array.prediction.codes_plan(a.element) : plan;
      listed = {own, array.codes, array.coded_codes, &array.bytes.codes, i * plan.groups, {0, 0}};
    } else if constexpr (part == PredictedPart::mask) {
      has_any = is_predicted && array.has_mask();
      const Plan own = has_any ? MaskGrid(array.prediction.axes).plan() : plan;
      listed = {own, array.codes, array.coded_mask, &array.bytes.mask, i * plan.groups, {0, 0}};
    } else {
      has_any = is_predicted && array.has_exact();
      listed = {plan, array.made, array.coded_exact, &array.bytes.exact, i * plan.groups, {0, 0}};
    }
    if (!has_any) listed.plan.groups = 0;
  }
  clear_placing(e);
}

// The same of arrays by columns. The bound is that of `main`, and so is the number of chunks in a group.
template <class T>
__global__ void list_columns(const __grid_constant__ PredictionArguments a, const __grid_constant__ EncodeArguments e,
                             uint64_t groups, const EncodeArray* main) {
  for (uint64_t i = thread_of_grid(); i < a.count; i += threads_of_grid()) {
    PredictedArray& array = a.arrays[i];
    const bool is_listed = array.is_active && array.prediction.is_by_columns();
    EncodeArray& listed = e.arrays[i];
    listed = {make_plan(a.element, is_listed ? array.elements() : 1, main->plan.chunks_per_group),
              array.codes,
              array.coded_codes,
              &array.bytes.codes,
              i * groups,
              {main->range_keys[0], main->range_keys[1]}};
    if (!is_listed) listed.plan.groups = 0;
  }
  clear_placing(e);
}

// Puts the payload together, where there is one and it fits `capacity`; else all is left to the encoder of `plain`.
template <class T>
__global__ void finish_predicted(const __grid_constant__ PredictionArguments a,
                                 const __grid_constant__ EncodeArguments plain, uint64_t capacity) {
  PredictedArray& array = a.arrays[0];
  EncodeArray& target = plain.arrays[0];
  const PredictedPlaces places(array.prediction, array.bytes);
  const bool is_kept = array.is_active && !array.is_ambiguous() && places.length <= capacity;
  const auto copy = [](const uint8_t* from, uint8_t* to, uint64_t bytes) {  // multiples of 4
    const auto* const words = reinterpret_cast<const uint32_t*>(from);
    auto* const out = reinterpret_cast<uint32_t*>(to);
    for (uint64_t i = thread_of_grid(); i < bytes / 4; i += threads_of_grid()) out[i] = words[i];
  };
  clear_placing(plain);
  if (!is_kept) return;
  copy(array.coded_codes, target.payload + places.codes, array.bytes.codes);
  copy(array.coded_mask, target.payload + places.mask, array.bytes.mask);
  copy(array.coded_exact, target.payload + places.exact, array.bytes.exact);
  if (thread_of_grid() != 0) return;
  write_predicted_head(array.prediction, array.bound, array.bytes, target.payload);
  *target.length = places.length;
  target.plan.groups = 0;
}

// ---- decoding

// Reads the payload's header, and lists what is to be decoded. By one thread.
template <class T>
__global__ void open_predicted(const __grid_constant__ DecodeTask task, Element element, PredictedMemory memory,
                               uint8_t* memory_at, PredictedDecoding* decoding, uint32_t* status) {
  if (threadIdx.x != 0) return;
  DecodeArray nothing{make_plan(element, task.count), nullptr, 0, nullptr, nullptr, 0};
  nothing.plan.groups = 0;
  decoding->codes = decoding->mask = decoding->elements = nothing;
  PredictedArray& array = decoding->array;
  array.is_active = false;
  const uint64_t length = task.length == nullptr ? task.limit : read_number(task.length);
  if (length > task.limit) {
    *status = 1;
    return;
  }
  const Plan plan = make_plan(element, task.count);
  if (!is_predicted(task.payload, length, task.count)) {
    decoding->elements = {plan, task.payload, task.limit, task.length, task.target, 0};
    return;
  }
  PredictedParts parts;
  if (parts.read(element, task.payload, length, task.count) != nullptr) {
    *status = 1;
    return;
  }
  array.predict(parts.prediction, parts.header.bound, element);
  memory.place(array, memory_at);
  array.made = static_cast<uint8_t*>(task.target);
  if (parts.prediction.is_by_columns()) {
    decoding->elements = {plan, parts.codes, parts.header.codes_bytes, nullptr, array.codes, 0};
    return;
  }
  decoding->codes = {
      parts.prediction.codes_plan(element), parts.codes, parts.header.codes_bytes, nullptr, array.codes, 0};
  if (parts.mask_bytes > 0) {
    array.has_unserved = 1;
    decoding->mask = {MaskGrid(array.prediction.axes).plan(), parts.mask, parts.mask_bytes, nullptr, array.codes, 0};
  }
  if (parts.header.exact_bytes == 0) return;
  array.found_exact = static_cast<uint32_t>(FoundExact::some);
  decoding->elements = {plan, parts.exact, parts.header.exact_bytes, nullptr, array.codes, 0};
}

// Puts elements that are kept exactly, which stand where codes were, in their places.
template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    put_exact_kernel(const __grid_constant__ PredictionArguments a) {
  for_each_part(a, [&](PredictedArray& array, uint64_t begin, uint64_t end) {
    if (array.has_exact()) ExactElements<T>::put(array.codes, array.made, begin, end - begin);
  });
}

}  // namespace arrcomp::cuda
