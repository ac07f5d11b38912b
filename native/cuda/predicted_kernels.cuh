// Predicted arrays as kernels: the parts of a step are independent of each other, and each is the work of a warp.
// Kernels are templates of the element type, those too that do not ask for it: each type has a file of its own.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/predicted/box_ends.h"
#include "codecs/predicted/coarsest.h"
#include "codecs/predicted/columns.h"
#include "codecs/predicted/exact.h"
#include "codecs/predicted/gap_mask.h"
#include "codecs/predicted/refine.h"
#include "codecs/predicted/samples.h"
#include "cuda/atomics.cuh"
#include "cuda/header.h"
#include "cuda/predicted_arguments.h"
#include "cuda/set_up.cuh"
#include "cuda/shared.cuh"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// Elements, or codes, that a warp works on at a time.
constexpr uint64_t part_size = 1024;
ARRCOMP_SHARED constexpr uint64_t parts_of(uint64_t count) { return ceil_div(count, part_size); }

// ---- who does what

// Calls visit(array, unit) for the units of all arrays that this warp takes. `units(array)` are those of an array.
template <class Units, class Visit>
ARRCOMP_METHOD void for_each_unit(const PredictionArguments& a, Units units, Visit visit) {
  const uint64_t warps = warps_of_grid();
  uint64_t unit = warp_of_grid();
  for (uint64_t i = 0; i < a.count; ++i) {
    PredictedArray& array = a.arrays[i];
    const uint64_t count = array.is_active ? units(array) : 0;
    for (; unit < count; unit += warps) visit(array, unit);
    unit -= count;
  }
}

// Calls visit(array, k, begin, end) for parts of step k, the `finer`-th from the finest one.
template <class Elements, class Visit>
ARRCOMP_METHOD void for_each_part_of_step(const PredictionArguments& a, int finer, Elements elements, Visit visit) {
  const auto step_of = [&](const PredictedArray& array) { return array.prediction.steps - 1 - finer; };
  const auto count_of = [&](const PredictedArray& array) {
    return step_of(array) < 0 ? 0 : elements(array.refinements[step_of(array)]);
  };
  for_each_unit(
      a, [&](const PredictedArray& array) { return parts_of(count_of(array)); },
      [&](PredictedArray& array, uint64_t part) {
        const uint64_t begin = part * part_size, end = begin + part_size, count = count_of(array);
        visit(array, step_of(array), begin, end < count ? end : count);
      });
}

// Calls visit(array, begin, end) for parts of its elements.
template <class Visit>
ARRCOMP_METHOD void for_each_part(const PredictionArguments& a, Visit visit) {
  for_each_unit(
      a, [](const PredictedArray& array) { return parts_of(array.elements()); },
      [&](PredictedArray& array, uint64_t part) {
        const uint64_t begin = part * part_size, end = begin + part_size, count = array.elements();
        visit(array, begin, end < count ? end : count);
      });
}

template <class T>
ARRCOMP_METHOD auto* codes_of(const PredictedArray& array) {
  return reinterpret_cast<typename T::Word::scalar*>(array.codes);
}

// ---- the choice of a way

struct AtomicSums {
  ARRCOMP_METHOD static void add(uint64_t& sum, uint64_t number) { add_atomically(sum, number); }
  ARRCOMP_METHOD static void raise(uint64_t& number, uint64_t least) { raise_atomically(number, least); }
};

// Whether the array is predicted in any case.
ARRCOMP_SHARED bool must_predict(const ChoiceArguments& a) { return a.main.settings.must_predict(); }

// The levels of all axes, one after the other.
struct AxisLevel {
  int axis, level;

  ARRCOMP_SHARED static int number(const Axes& axes) {
    int levels = 0;
    for (uint64_t size : axes.sizes) levels += PredictionSamples::levels_of(size);
    return levels;
  }
  ARRCOMP_SHARED static AxisLevel at(const Axes& axes, int number) {
    AxisLevel own{0, number};
    for (; own.level >= PredictionSamples::levels_of(axes.sizes[own.axis]); ++own.axis)
      own.level -= PredictionSamples::levels_of(axes.sizes[own.axis]);
    return own;
  }
};

// A unit of sampling: of gaps, of differences, or of a level of an axis.
struct SampleUnit {
  enum Kind { gaps, differences, interpolation };

  Kind kind;
  int sample;
  AxisLevel level;

  ARRCOMP_SHARED static uint64_t number(const Axes& axes) {
    int units = PredictionSamples::number_of_gaps(axes) + PredictionSamples::number_of_differences(axes);
    for (const uint64_t size : axes.sizes)
      for (int level = 0; level < PredictionSamples::levels_of(size); ++level)
        units += PredictionSamples::number_of_level(axes, level);
    return static_cast<uint64_t>(units);
  }
  ARRCOMP_SHARED static SampleUnit at(const Axes& axes, uint64_t unit) {
    int sample = static_cast<int>(unit), of_kind = PredictionSamples::number_of_gaps(axes);
    if (sample < of_kind) return {gaps, sample, {}};
    sample -= of_kind;
    of_kind = PredictionSamples::number_of_differences(axes);
    if (sample < of_kind) return {differences, sample, {}};
    sample -= of_kind;
    AxisLevel own{0, 0};
    while (own.level >= PredictionSamples::levels_of(axes.sizes[own.axis]) ||
           sample >= PredictionSamples::number_of_level(axes, own.level)) {
      if (own.level < PredictionSamples::levels_of(axes.sizes[own.axis])) {
        sample -= PredictionSamples::number_of_level(axes, own.level++);
      } else {
        own = {own.axis + 1, 0};
      }
    }
    return {interpolation, sample, own};
  }
};

template <class T>
__global__ void clear_samples(const __grid_constant__ ChoiceArguments a) {
  if (thread_of_grid() == 0) a.state->bound = absolute_bound(*a.array, a.main.settings);
  auto* const words = reinterpret_cast<uint32_t*>(&a.state->samples);
  for (uint64_t i = thread_of_grid(); i < sizeof(PredictionSamples) / 4; i += threads_of_grid()) words[i] = 0;
}

// `found`: of those that were found by the others.
template <class T, bool found>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    sample_multiples(const __grid_constant__ ChoiceArguments a) {
  const MultiplesSampler<T, AtomicSums> sampler(a.array->source, a.axes, a.main.element, a.main.settings,
                                                a.state->samples.numbers);
  for (uint64_t s = warp_of_grid(); s < SampledMultiples::samples; s += warps_of_grid()) {
    if constexpr (found) {
      sampler.add_found(static_cast<int>(s));
    } else {
      sampler.add(static_cast<int>(s));
    }
  }
}

// By one thread.
template <class T>
__global__ void look_for_multiples(const __grid_constant__ ChoiceArguments a) {
  if (threadIdx.x == 0) find_multiples(a.main.element, a.state->samples.numbers);
}

// By one thread.
template <class T>
__global__ void choose_multiples(const __grid_constant__ ChoiceArguments a) {
  if (threadIdx.x != 0) return;
  PredictionState& state = *a.state;
  state.bound =
      state.samples.choose_multiples(a.main.element, MultiplesSampler<T, AtomicSums>::place_of_one, state.bound);
}

// Units are few: a thread may have all registers that it wants, which it has where one block a processor is asked for.
template <class T>
__global__ void __launch_bounds__(threads_per_block, 1) fit_weights(const __grid_constant__ ChoiceArguments a) {
  const Sampler<T, AtomicSums> sampler(a.array->source, a.axes, a.main.settings, a.state->bound, a.state->samples);
  const auto levels = static_cast<uint64_t>(AxisLevel::number(a.axes));
  for (uint64_t unit = warp_of_grid(); unit < levels; unit += warps_of_grid()) {
    const AxisLevel own = AxisLevel::at(a.axes, static_cast<int>(unit));
    sampler.fit_weights(own.axis, own.level, PredictionSamples::number_of_fits(a.axes));
  }
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    sample_kernel(const __grid_constant__ ChoiceArguments a) {
  const Sampler<T, AtomicSums> sampler(a.array->source, a.axes, a.main.settings, a.state->bound, a.state->samples);
  const uint64_t units = SampleUnit::number(a.axes);
  for (uint64_t number = warp_of_grid(); number < units; number += warps_of_grid()) {
    const SampleUnit unit = SampleUnit::at(a.axes, number);
    if (unit.kind == SampleUnit::interpolation) {
      sampler.add_interpolation(unit.level.axis, unit.level.level, unit.sample);
    } else if (unit.kind == SampleUnit::differences) {
      sampler.add_differences(unit.sample);
    } else if constexpr (T::quantizes) {
      sampler.add_gaps(unit.sample);
    }
  }
}

// Chooses ways; where there is but one, and no other may be better, it is taken. By one thread.
template <class T>
__global__ void choose_ways(const __grid_constant__ ChoiceArguments a) {
  if (threadIdx.x != 0) return;
  const double bound = absolute_bound(*a.array, a.main.settings);
  PredictedArray& main = a.main.arrays[0];
  main.source = a.array->source;
  main.is_active = false;
  a.memory.place(main, a.memory_at);
  a.state->count = 0;
  if (a.main.settings.has_one_bound() && !is_predictable(a.main.element, bound)) return;
  const PredictionChoice choice(a.axes, a.state->samples, FloatTraits::of<T>(), a.state->bound);
  a.state->count = choice.candidates(a.main.settings.possible_predictor(), a.state->ways);
  if (must_predict(a) && a.state->count == 1) main.predict(a.state->ways[0], bound, a.main.element);
}

// Copies the part of a shape out of the array, a line at a time.
template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    cut_part(const __grid_constant__ TrialArguments a, const void* source, int shape) {
  const Axes& part = a.trial.part(shape);
  const uint64_t size = part.sizes[max_axes - 1], lines = part.outer(max_axes - 1);
  for (uint64_t line = warp_of_grid(); line < lines; line += warps_of_grid()) {
    const uint64_t from = a.trial.line_of_array(shape, line);
    for_each_row(0, size, [&](uint64_t i, int n) {
      store_elements<T>(a.cut_of(shape), line * size + i, n, load_elements<T>(source, from + i, n));
    });
  }
}

// Lists the parts, without prediction and in each way. By one block.
template <class T>
__global__ void set_up_trials(const __grid_constant__ TrialArguments a, const __grid_constant__ ChoiceArguments c) {
  const double bound = absolute_bound(*c.array, c.main.settings);
  const PredictionState& state = *c.state;
  const bool has_choice = state.count > 0 && !(must_predict(c) && state.count == 1);
  for (uint64_t i = threadIdx.x; i < a.trials.count; i += blockDim.x) {
    PredictedArray& array = a.trials.arrays[i];
    array.is_active = false;
    a.memory_of_way.place(array, a.memory + i * a.memory_of_way.bytes());
    if (!has_choice || static_cast<int>(i) >= state.count) continue;
    const int shape = Trial::shape_of(state.ways[i]);
    array.source = a.cut_of(shape);
    put_on_axes(state.ways[i], a.trial.part(shape), array.prediction);
    array.activate(bound, a.trials.element);
  }
  for (uint64_t i = threadIdx.x; i < a.plain.count; i += blockDim.x) {
    const auto shape = static_cast<int>(i);
    EncodeArray& array = a.plain.arrays[i];
    array = {a.plans[shape],
             a.cut_of(shape),
             a.coded + i * a.coded_bytes,
             &c.state->plain_lengths[i],
             i * a.groups,
             {c.array->range_keys[0], c.array->range_keys[1]}};
    c.state->plain_lengths[i] = 0;
    if (!has_choice || !a.trial.tries(shape, state.ways, state.count)) array.plan.groups = 0;
  }
  clear_placing(a.plain);
}

// Takes the best way, or none. By one thread.
template <class T>
__global__ void decide(const __grid_constant__ TrialArguments a, const __grid_constant__ ChoiceArguments c) {
  const PredictionState& state = *c.state;
  if (threadIdx.x != 0 || state.count == 0 || (must_predict(c) && state.count == 1)) return;
  uint64_t bytes[max_candidates];
  for (int way = 0; way < state.count; ++way) {
    const PredictedArray& array = a.trials.arrays[way];
    const PredictedPlaces places(array.prediction, array.bytes);
    const bool is_kept = !array.is_ambiguous() && places.length <= a.trial.capacity();
    bytes[way] = a.trial.counted(array.prediction, is_kept ? places.length : 0);
  }
  const int best = a.trial.best(state.ways, bytes, state.count, state.plain_lengths);
  const double bound = absolute_bound(*c.array, c.main.settings);
  if (best >= 0) c.main.arrays[0].predict(state.ways[best], bound, c.main.element);
}

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

// Makes codes where lines of boxes end, along axes that are cut, those next to them.
template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    even_ends_kernel(const __grid_constant__ PredictionArguments a, uint32_t cut) {
  const auto ends_of = [&](const PredictedArray& array) {
    return BoxEnds<typename T::Word>(array.prediction, array.refinements, array.coarsest, cut, codes_of<T>(array));
  };
  const auto units = [&](const PredictedArray& array) {
    return array.prediction.is_by_columns() ? 0 : ends_of(array).units();
  };
  for_each_unit(a, units, [&](PredictedArray& array, uint64_t unit) { ends_of(array).even(unit); });
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
