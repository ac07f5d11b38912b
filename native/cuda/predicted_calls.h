// What is launched for a predicted array, one after the other. `Launcher` launches kernels: on a GPU, or emulated.
//   .run<kernel>(units, arguments...)   as many warps as there are units, or fewer
//   .widen_range(arguments), .encode(arguments), .encode_codes(arguments)
//   .decode(element, arguments), .decode_codes(element, arguments)       the kernels of groups
#pragma once
#include <algorithm>
#include <bit>

#include "cuda/parts.h"
#include "cuda/predicted_kernels.cuh"
#include "cuda/predicted_scratch.h"
#include "cuda/prediction_choice_kernels.cuh"

namespace arrcomp::cuda {

template <class T, class Launcher>
class PredictedEncoding {
 public:
  PredictedEncoding(const Launcher& launcher, const Codec& codec, const Element& element, const Tables* tables,
                    void* scratch)
      : launcher_(launcher),
        element_(element),
        settings_(group_settings(codec)),
        predictor_(settings_.possible_predictor()),
        tables_(tables),
        base_(static_cast<uint8_t*>(scratch)) {}

  // Encodes an array for which may_be_predicted holds.
  void encode(const EncodeTask& task, uint64_t* length) const {
    const PredictedScratch layout(element_, task.count);
    auto* const predicted = reinterpret_cast<PredictedArray*>(base_ + layout.predicted);
    const Plan plan = make_plan(element_, task.count);
    const EncodeArguments plain = arguments(layout, 0, 1, plan.groups, element_, settings_);
    Batch<EncodeTask, 1> batch{0, 1, {{task, 0}}};
    launcher_.template run<set_up_encoding<1>>(plan.groups, batch, plain, length);
    if (settings_.kind == BoundKind::relative) launcher_.widen_range(plain);

    const ChoiceArguments choice{plain.arrays,
                                 reinterpret_cast<PredictionState*>(base_ + layout.state),
                                 {predicted, 1, element_, settings_},
                                 PredictedMemory::to_encode(element_, task.count),
                                 base_ + layout.work,
                                 task.axes};
    launcher_.template run<clear_samples<T>>(uint64_t{1}, choice);
    if (predictor_ != Predictor::columns) sample(choice);
    launcher_.template run<choose_ways<T>>(uint64_t{1}, choice);
    if (predictor_ != Predictor::lorenzo) try_ways(layout, plan, task, choice);
    encode_all(choice.main, layout, choice.array, task.axes, PredictionSamples::most_steps(task.axes), plan);
    const uint64_t capacity = capacity_of_groups(element_, task.count);
    launcher_.template run<finish_predicted<T>>(parts_of(capacity), choice.main, plain, capacity);
    launcher_.encode(plain);
  }

 private:
  void sample(const ChoiceArguments& choice) const {
    if constexpr (T::quantizes) choose_multiples_of(choice);
    if (const int levels = AxisLevel::number(choice.axes))
      launcher_.template run<fit_weights<T>>(static_cast<uint64_t>(levels), choice);
    launcher_.template run<sample_kernel<T>>(SampleUnit::number(choice.axes), choice);
  }

  void choose_multiples_of(const ChoiceArguments& choice) const {
    constexpr uint64_t samples = SampledMultiples::samples;
    launcher_.template run<sample_multiples<T, false>>(samples, choice);
    launcher_.template run<look_for_multiples<T>>(uint64_t{1}, choice);
    launcher_.template run<sample_multiples<T, true>>(samples, choice);
    launcher_.template run<choose_multiples<T>>(uint64_t{1}, choice);
  }

  // `first`: of the lists of arrays in the scratch memory.
  EncodeArguments arguments(const PredictedScratch& layout, uint64_t first, uint64_t count, uint64_t groups,
                            const Element& element, const GroupSettings& settings) const {
    return arguments_of_parts(base_, layout, first, count, groups, element, settings, tables_);
  }

  void try_ways(const PredictedScratch& layout, const Plan& plan, const EncodeTask& task,
                const ChoiceArguments& choice) const {
    const Trial trial(element_, task.axes, settings_.must_predict());
    const bool has_columns = settings_.may_be_by_columns();
    const int first_shape = settings_.predictor == Predictor::columns ? 1 : 0, shapes = has_columns ? Trial::shapes : 1;
    const uint64_t part = trial.most_elements();
    const GroupSettings settings = trial.settings_of_part(settings_);
    const Plan most = make_plan(element_, part, plan.chunks_per_group);
    TrialArguments a{trial,
                     PredictedMemory::to_encode(element_, part),
                     {},
                     most.groups,
                     {choice.main.arrays + 1, max_candidates, element_, settings},
                     arguments(layout, 1, Trial::shapes, Trial::shapes * most.groups, element_, settings),
                     base_ + layout.work,
                     nullptr,
                     nullptr,
                     PredictedScratch::cut_bytes(element_, part),
                     PredictedScratch::coded_bytes(element_, part)};
    a.coded = a.cut + Trial::shapes * a.cut_bytes;
    a.memory = a.coded + Trial::shapes * a.coded_bytes;
    for (int shape = 0; shape < Trial::shapes; ++shape)
      a.plans[shape] = make_plan(element_, trial.part(shape).count(), plan.chunks_per_group);
    for (int shape = first_shape; shape < shapes; ++shape)
      launcher_.template run<cut_part<T>>(trial.part(shape).outer(max_axes - 1), a, task.source, shape);
    launcher_.template run<set_up_trials<T>>(uint64_t{1}, a, choice);
    if (has_columns) launcher_.encode(a.plain);
    encode_all(a.trials, layout, choice.array, trial.part(), PredictionSamples::most_steps(task.axes), most,
               trial.cut_axes());
    launcher_.template run<decide<T>>(uint64_t{1}, a, choice);
  }

  // Encodes all arrays: codes and exact elements of those that are predicted, which have the same axes, and those by columns,
  // of `most` elements and groups, within the bound of `main`. `cut`: the axes along which they are boxes of an array.
  void encode_all(const PredictionArguments& a, const PredictedScratch& layout, const EncodeArray* main,
                  const Axes& axes, int steps, const Plan& most, uint32_t cut = 0) const {
    if (settings_.may_be_by_columns()) encode_columns(a, layout, main, most);
    if (predictor_ != Predictor::columns) encode_codes(a, layout, axes, steps, cut);
  }

  void encode_columns(const PredictionArguments& a, const PredictedScratch& layout, const EncodeArray* main,
                      const Plan& most) const {
    launcher_.template run<columns_kernel<T, false>>(a.count * parts_of(most.count), a);
    const EncodeArguments of_columns = arguments(layout, list, a.count, a.count * most.groups, element_, a.settings);
    launcher_.template run<list_columns<T>>(of_columns.groups, a, of_columns, most.groups, main);
    launcher_.encode(of_columns);
  }

  void encode_codes(const PredictionArguments& a, const PredictedScratch& layout, const Axes& axes, int steps,
                    uint32_t cut) const {
    const uint64_t count = axes.count();
    const auto units_of_step = [&](int finer) {  // the part of all elements that a step has, at most
      uint64_t elements = count;
      for (int i = 0; i < finer; ++i) elements -= elements / 3;
      return a.count * parts_of(elements);
    };
    for (int finer = 0; finer < steps; ++finer)
      launcher_.template run<coarsen_kernel<T>>(units_of_step(finer + 1), a, finer);
    launcher_.template run<encode_lines_kernel<T>>(a.count * count / axes.sizes[max_axes - 1], a);
    for (int axis = first_axis_of_sets; axis < max_axes; ++axis)
      if (axes.sizes[axis] > 1) launcher_.template run<differences_kernel<T, true>>(a.count * parts_of(count), a, axis);
    for (int finer = steps; finer-- > 0;) launcher_.template run<encode_step_kernel<T>>(units_of_step(finer), a, finer);
    if (cut != 0) launcher_.template run<even_ends_kernel<T>>(a.count * parts_of(count), a, cut);

    const Plan codes = make_codes_plan(element_, count), exact = make_plan(element_, count);
    const EncodeArguments of_codes =
        arguments(layout, list, a.count, a.count * codes.groups, codes.element, codes_settings(a.settings));
    launcher_.template run<list_payloads<T, PredictedPart::codes>>(of_codes.groups, a, of_codes, codes);
    launcher_.encode_codes(of_codes);
    if constexpr (T::quantizes) encode_masks(a, layout, axes);
    launcher_.template run<find_exact_kernel<T>>(a.count * parts_of(count), a);
    const EncodeArguments of_exact =
        arguments(layout, list, a.count, a.count * exact.groups, element_, exact_settings(element_, a.settings));
    launcher_.template run<list_payloads<T, PredictedPart::exact>>(of_exact.groups, a, of_exact, exact);
    launcher_.encode(of_exact);
  }

  void encode_masks(const PredictionArguments& a, const PredictedScratch& layout, const Axes& axes) const {
    const MaskGrid grid(axes);
    const Plan plan = grid.plan();
    launcher_.template run<mask_bits_kernel<T, false>>(a.count * grid.pieces(), a);
    for (int axis = first_axis_of_sets; axis < max_axes - 1; ++axis)
      if (axes.sizes[axis] > 1)
        launcher_.template run<mask_slices_kernel<T, true>>(a.count * parts_of(plan.count), a, axis);
    const EncodeArguments of_masks =
        arguments(layout, list, a.count, a.count * plan.groups, plan.element, codes_settings(a.settings));
    launcher_.template run<list_payloads<T, PredictedPart::mask>>(of_masks.groups, a, of_masks, plan);
    launcher_.encode(of_masks);
  }

  static constexpr uint64_t list = 1 + Trial::shapes;  // of arrays in the scratch memory, where payloads begin

  const Launcher& launcher_;
  const Element& element_;
  GroupSettings settings_;
  Predictor predictor_;
  const Tables* tables_;
  uint8_t* base_;
};

template <class T, class Launcher>
void decode_mask(const Launcher& launcher, const DecodeTask& task, PredictedDecoding* decoding,
                 const PredictionArguments& a, const Tables* tables, uint32_t* status) {
  const Plan most = MaskGrid::plan_of(MaskGrid::most_bytes(task.count));
  launcher.decode(most.element, DecodeArguments{{&decoding->mask, {}, 1, most.groups}, status, tables});
  for (int axis = first_axis_of_sets; axis < max_axes - 1; ++axis)
    launcher.template run<mask_slices_kernel<T, false>>(parts_of(most.count), a, axis);
  launcher.template run<mask_bits_kernel<T, true>>(parts_of(task.count), a);
}

// Decodes an array that may be predicted. The status is 0 before.
template <class T, class Launcher>
void decode_predicted(const Launcher& launcher, const Element& element, const DecodeTask& task, const Tables* tables,
                      uint32_t* status, void* scratch) {
  auto* const base = static_cast<uint8_t*>(scratch);
  auto* const decoding = reinterpret_cast<PredictedDecoding*>(base);
  const PredictedMemory memory = PredictedMemory::to_decode(element, task.count);
  const PredictionArguments a{&decoding->array, 1, element, {}};
  const Plan plan = make_plan(element, task.count), codes = make_codes_plan(element, task.count);
  launcher.template run<open_predicted<T>>(uint64_t{1}, task, element, memory,
                                           base + round_up(sizeof(PredictedDecoding), 256), decoding, status);
  launcher.decode_codes(codes.element, DecodeArguments{{&decoding->codes, {}, 1, codes.groups}, status, tables});
  for (int axis = first_axis_of_sets; axis < max_axes; ++axis)
    launcher.template run<differences_kernel<T, false>>(parts_of(task.count), a, axis);
  launcher.template run<decode_lines_kernel<T>>(parts_of(task.count), a);
  // Each step halves an axis, rounded up, and may keep one slice more.
  const int steps = std::min(static_cast<int>(std::bit_width(task.count)) + 2 * max_axes, max_steps);
  uint64_t parts[max_steps + 1] = {task.count};
  for (int i = 0; i < steps; ++i) parts[i + 1] = parts[i] - parts[i] / 3;
  for (int finer = steps; finer-- > 0;) launcher.template run<decode_step_kernel<T>>(parts_of(parts[finer]), a, finer);
  if constexpr (T::quantizes) decode_mask<T>(launcher, task, decoding, a, tables, status);
  launcher.decode(element, DecodeArguments{{&decoding->elements, {}, 1, plan.groups}, status, tables});
  launcher.template run<columns_kernel<T, true>>(parts_of(task.count), a);
  launcher.template run<put_exact_kernel<T>>(parts_of(task.count), a);
}

}  // namespace arrcomp::cuda
