// The choice of a way to predict an array, as kernels: samples, the ways that are worth a trial, and their trial.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/predicted/box_ends.h"
#include "codecs/predicted/samples.h"
#include "cuda/atomics.cuh"
#include "cuda/predicted_units.cuh"
#include "cuda/set_up.cuh"

namespace arrcomp::cuda {

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

}  // namespace arrcomp::cuda
