// What is launched for an array with a reference, one after the other. `Launcher` launches kernels: on a GPU, or emulated
// (predicted_calls.h).
#pragma once
#include "cuda/parts.h"
#include "cuda/referenced_kernels.cuh"
#include "cuda/referenced_scratch.h"

namespace arrcomp::cuda {

template <class Rows, class Launcher>
class ReferenceEncoding {
 public:
  ReferenceEncoding(const Launcher& launcher, const Codec& codec, const Element& element, const Tables* tables,
                    void* scratch)
      : launcher_(launcher),
        element_(element),
        code_(code_element(element, Rows::are_bits)),
        settings_(group_settings(codec)),
        tables_(tables),
        base_(static_cast<uint8_t*>(scratch)) {}

  void encode(const EncodeTask& task, uint64_t* length) const {
    const ReferenceScratch layout(element_, Rows::are_bits, task.count);
    auto* const lists = reinterpret_cast<EncodeArray*>(base_ + layout.arrays);
    auto* const state = reinterpret_cast<ReferenceState*>(base_ + layout.state);
    const Plan plan = make_plan(element_, task.count);
    const EncodeArguments plain = arguments(layout, plain_of_list, 1, plan.groups, element_, settings_);
    Batch<EncodeTask, 1> batch{0, 1, {{task, 0}}};
    launcher_.template run<set_up_encoding<1>>(plan.groups, batch, plain, length);
    if (settings_.kind == BoundKind::relative && plan.groups > 0) launcher_.widen_range(plain);

    const ReferenceJob job{
        element_,    settings_,     0, settings_.rounded_bits(element_), ReferenceWay::difference, task.count,
        task.source, task.reference};
    const ReferenceArguments a{job,
                               state,
                               reinterpret_cast<DeltaCounts*>(base_ + layout.blocks),
                               lists,
                               task.payload,
                               length,
                               {layout.parts, base_ + layout.work}};
    launcher_.template run<clear_reference<Rows>>(uint64_t{1}, a);
    launcher_.template run<scan_blocks<Rows>>(a.number_of_blocks(), a);
    launcher_.template run<sum_blocks<Rows>>(uint64_t{1}, a);
    if (task.count > 0) try_ways(layout, a);
    launcher_.template run<decide_way<Rows>>(uint64_t{1}, a);
    launcher_.template run<make_codes<Rows>>(ceil_div(task.count, delta_part), a);
    launcher_.template run<make_lists<Rows>>(a.number_of_blocks(), a);
    launcher_.template run<make_gaps<Rows>>(ceil_div(most_listed(task.count), delta_part), a);
    encode_parts(layout, a);
    launcher_.template run<finish_reference<Rows>>(ceil_div(capacity_of_groups(element_, task.count), 4096), a, plain,
                                                   capacity_of_groups(element_, task.count) + reference_header_bytes);
    if (plan.groups > 0) launcher_.encode(plain);
    launcher_.template run<finish_plain<Rows>>(uint64_t{1}, a);
  }

 private:
  EncodeArguments arguments(const ReferenceScratch& layout, int first, uint64_t count, uint64_t groups,
                            const Element& element, const GroupSettings& settings) const {
    return arguments_of_parts(base_, layout, static_cast<uint64_t>(first), count, groups, element, settings, tables_);
  }

  void try_ways(const ReferenceScratch& layout, const ReferenceArguments& a) const {
    constexpr int samples = static_cast<int>(most_way_samples);
    launcher_.template run<make_samples<Rows>>(uint64_t{2} * samples, a);
    const EncodeArguments codes =
        arguments(layout, lists_of_reference, 2 * samples, 2 * samples, code_, codes_settings(settings_));
    launcher_.template run<list_samples<Rows, false>>(uint64_t{1}, a, codes);
    launcher_.encode(codes);
    const EncodeArguments plain = arguments(layout, lists_of_reference, samples, samples, element_, settings_);
    launcher_.template run<list_samples<Rows, true>>(uint64_t{1}, a, plain);
    launcher_.encode(plain);
  }

  void encode_parts(const ReferenceScratch& layout, const ReferenceArguments& a) const {
    const uint64_t count = a.job.count;
    const auto encode = [&](int list, int part, int step, uint64_t lists, const Plan& largest) {
      if (largest.groups == 0) return;
      const EncodeArguments e =
          arguments(layout, list, lists, lists * largest.groups, largest.element, codes_settings(settings_));
      launcher_.template run<list_parts<Rows>>(e.groups, a, e, part, step);
      launcher_.encode(e);
    };
    encode(codes_of_list, codes_part, 1, 1, make_plan(code_, count));
    encode(gaps_of_list, gaps_part, 2, Rows::are_bits ? 1 : 2,
           make_list_plan(gap_element_of(count), most_listed(count)));
    if (!Rows::are_bits) encode(exact_of_list, exact_part, 1, 1, make_list_plan(element_, most_exact(count)));
  }

  const Launcher& launcher_;
  const Element& element_;
  Element code_;
  GroupSettings settings_;
  const Tables* tables_;
  uint8_t* base_;
};

// Decodes an array with a reference. The status is 0 before. `Steps`: the rows of codes that are steps, or those of bits
// where the elements have none.
template <class Bits, class Steps, class Launcher>
void decode_referenced(const Launcher& launcher, const Element& element, const DecodeTask& task, const Tables* tables,
                       uint32_t* status, void* scratch) {
  constexpr bool has_steps = !std::is_same_v<Bits, Steps>;
  auto* const base = static_cast<uint8_t*>(scratch);
  const ReferenceDecodeScratch layout(element, task.count);
  auto* const decoding = reinterpret_cast<ReferenceDecoding*>(base);
  const auto numbers = [&](uint64_t at) { return reinterpret_cast<uint64_t*>(base + at); };
  const ReferenceDecodeArguments a{task,
                                   element,
                                   decoding,
                                   base + layout.codes,
                                   {base + layout.gaps[0], base + layout.gaps[1]},
                                   base + layout.exact,
                                   {numbers(layout.passed[0]), numbers(layout.passed[1])},
                                   status};
  launcher.template run<open_reference<Bits>>(uint64_t{1}, a);
  launcher.template run<hash_reference<Bits>>(ceil_div(task.count * (element.width / 8), hash_block_bytes), a);
  launcher.template run<check_reference<Bits>>(uint64_t{1}, a);
  const uint64_t listed = most_listed(task.count);
  const auto decode = [&](int list, uint64_t lists, const Plan& largest) {
    if (lists * largest.groups > 0 || list == plain_of_list)
      launcher.decode(largest.element,
                      DecodeArguments{{&decoding->lists[list], {}, lists, lists * largest.groups}, status, tables});
  };
  decode(plain_of_list, 1, make_plan(element, task.count));
  decode(codes_of_list, 1, make_plan(code_element(element, true), task.count));
  if (has_steps && element.width < 32) decode(steps_of_list, 1, make_plan(code_element(element, false), task.count));
  decode(gaps_of_list, 2, make_list_plan(gap_element_of(task.count), listed));
  if (has_steps) decode(exact_of_list, 1, make_list_plan(element, most_exact(task.count)));
  launcher.template run<pass_units<Bits>>(ceil_div(listed, list_unit), a);
  launcher.template run<sum_units<Bits>>(uint64_t{1}, a);
  const uint64_t parts = ceil_div(task.count, delta_part), units = ceil_div(listed, list_unit);
  launcher.template run<apply_codes<Bits>>(parts, a);
  launcher.template run<put_list<Bits, false>>(units, a);
  if constexpr (has_steps) {
    launcher.template run<apply_codes<Steps>>(parts, a);
    launcher.template run<put_list<Steps, false>>(units, a);
    launcher.template run<put_list<Steps, true>>(units, a);
  }
}

}  // namespace arrcomp::cuda
