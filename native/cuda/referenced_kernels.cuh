// Arrays with a reference as kernels. Kernels are templates of the rows' type (codecs/referenced/rows.h), those too that do
// not ask for it: each element type has a file of its own.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/referenced/hash.h"
#include "codecs/referenced/rows.h"
#include "cuda/atomics.cuh"
#include "cuda/header.h"
#include "cuda/referenced_arguments.h"
#include "cuda/set_up.cuh"
#include "cuda/shared.cuh"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// Elements that a warp works on at a time.
constexpr uint64_t delta_part = 1024;

// What a warp wrote as wrong, beside 1 for a corrupt payload.
constexpr uint32_t wrong_reference_status = 2;

// Calls visit(unit) for the units that this warp takes.
template <class Visit>
ARRCOMP_METHOD void for_each_unit_of_warp(uint64_t units, Visit visit) {
  for (uint64_t unit = warp_of_grid(); unit < units; unit += warps_of_grid()) visit(unit);
}

// Calls visit(first, count) for parts of `elements`.
template <class Visit>
ARRCOMP_METHOD void for_each_delta_part(uint64_t elements, Visit visit) {
  for_each_unit_of_warp(ceil_div(elements, delta_part), [&](uint64_t unit) {
    const uint64_t first = unit * delta_part, left = elements - first;
    visit(first, left < delta_part ? left : delta_part);
  });
}

// Calls visit(Row{}) with rows of the gaps of so many elements.
template <class Visit>
ARRCOMP_METHOD void visit_gaps(uint64_t count, Visit visit) {
  if (gap_element_of(count).width == 64) return visit(U64{});
  visit(U32{});
}

// ---- encoding

template <class Rows>
ARRCOMP_METHOD ReferenceJob job_of(const ReferenceArguments& a) {
  ReferenceJob job = a.job;
  if constexpr (!Rows::are_bits) {
    const double bound = absolute_bound(a.lists[plain_of_list], job.settings);
    job.bound = is_predictable(job.element, bound) ? bound : 0;
  }
  return job;
}

// Whether codes may be made: bounds that follow from the range may be too small.
template <class Rows>
ARRCOMP_METHOD bool makes_codes(const ReferenceJob& job) {
  return Rows::are_bits || job.bound != 0;
}

template <class Rows>
__global__ void clear_reference(const __grid_constant__ ReferenceArguments a) {
  if (thread_of_grid() != 0) return;
  a.state->hash = 0;
  a.state->has_codes = false;
  for (uint64_t& bytes : a.state->part_bytes) bytes = 0;
  a.state->plain_bytes = 0;
}

// The hash, and what is listed of each block.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    scan_blocks(const __grid_constant__ ReferenceArguments a) {
  const ReferenceJob job = job_of<Rows>(a);
  const Rows rows(job);
  const auto* const reference = static_cast<const uint8_t*>(job.reference);
  const uint64_t size = a.block_size(), bytes = job.count * (job.element.width / 8);
  uint32_t (&row)[lanes_per_row] = warp_memory<uint32_t[lanes_per_row], Rows>();
  for_each_unit_of_warp(a.number_of_blocks(), [&](uint64_t block) {
    add_atomically(a.state->hash, BlockHash::of(reference, bytes, block, row));
    const uint64_t first = block * size, left = job.count - first;
    DeltaCounts counts{0, 0};
    if (makes_codes<Rows>(job)) rows.count(first, left < size ? left : size, counts);
    if (leader()) a.blocks[block] = counts;
  });
}

// The sums of what is listed before each block. By one warp.
template <class Rows>
__global__ void sum_blocks(const __grid_constant__ ReferenceArguments a) {
  const uint64_t blocks = a.number_of_blocks();
  U64 codes = splat<U64>(0), exact = splat<U64>(0);
  for (uint64_t i = 0; i < blocks; i += lanes_per_row) {
    const uint64_t left = blocks - i;
    const int n = left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
    auto* const counts = reinterpret_cast<uint64_t*>(a.blocks + i);
    const auto sum = [&](int field, U64& before) {
      const U64 own = select(mask(low_mask(n)), load_apart(counts + field, 2, n), splat<U64>(0));
      const U64 all = before + prefix_sum(own);
      sync();
      store_apart(counts + field, 2, n, all - own);
      before = broadcast_last(all);
    };
    sum(0, codes);
    sum(1, exact);
  }
  const DeltaCounts all{or_all(codes), or_all(exact)};
  if (leader()) a.state->all = all;
}

// Makes the codes of chunks, to be tried.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    make_samples(const __grid_constant__ ReferenceArguments a) {
  ReferenceJob job = job_of<Rows>(a);
  const WaySamples samples(job.count);
  for_each_unit_of_warp(2 * samples.number, [&](uint64_t unit) {
    const uint64_t s = unit / 2, first = samples.first(s), count = samples.count(s);
    job.way = unit % 2 == 0 ? ReferenceWay::difference : ReferenceWay::exclusive_or;
    if (!makes_codes<Rows>(job) || (!Rows::are_bits && unit % 2 != 0)) return;
    const Rows rows(job);
    rows.codes(first, count, a.buffers.samples + unit * a.buffers.sample_bytes);
    if (unit % 2 != 0) return;
    DeltaCounts counts{0, 0};
    if (!Rows::are_bits) rows.count(first, count, counts);
    if (leader()) a.state->sample_counts[s] = counts;
  });
}

// Lists the samples, of codes or plain. By one block.
template <class Rows, bool plain>
__global__ void list_samples(const __grid_constant__ ReferenceArguments a, const __grid_constant__ EncodeArguments e) {
  const ReferenceJob job = job_of<Rows>(a);
  const WaySamples samples(job.count);
  const DeltaCounts all = a.state->all;
  const bool is_tried = makes_codes<Rows>(job) && all.codes > 0 && all.exact <= most_exact(job.count);
  for (uint64_t i = threadIdx.x; i < e.count; i += blockDim.x) {
    const uint64_t s = plain ? i : i / 2, other = plain ? 0 : i % 2;
    const auto way = static_cast<int>(plain ? 0 : 1 + other);
    const auto* const source = static_cast<const uint8_t*>(job.source);
    const bool is_there = is_tried && s < samples.number && (Rows::are_bits || other == 0);
    EncodeArray& array = e.arrays[i];
    array = {make_plan(plain ? job.element : code_element_of(job.element, job.bound, static_cast<ReferenceWay>(way)),
                       is_there ? samples.count(s) : 0, 1),
             plain ? source + (is_there ? samples.first(s) : 0) * (job.element.width / 8)
                   : a.buffers.samples + i * a.buffers.sample_bytes,
             a.buffers.coded_samples + (plain ? 2 * most_way_samples + s : i) * a.buffers.coded_sample_bytes,
             &a.state->sample_bytes[s][way],
             i,
             {a.lists[plain_of_list].range_keys[0], a.lists[plain_of_list].range_keys[1]}};
  }
  clear_placing(e);
}

// Decides how the array is coded. By one thread.
template <class Rows>
__global__ void decide_way(const __grid_constant__ ReferenceArguments a) {
  if (threadIdx.x != 0) return;
  ReferenceState& state = *a.state;
  const ReferenceJob job = job_of<Rows>(a);
  const WaySamples samples(job.count);
  const DeltaCounts all = state.all;
  state.header = {0, state.hash, ReferenceWay::plain, 0, {}, 0, 0, {}};
  state.has_codes = job.count > 0 && makes_codes<Rows>(job) && all.exact <= most_exact(job.count);
  if (!state.has_codes) return;
  ReferenceWay way = ReferenceWay::difference;
  if (all.codes > 0) {
    uint64_t bytes[3] = {};
    for (uint64_t s = 0; s < samples.number; ++s) {
      for (int w = 0; w < 3; ++w)
        if (Rows::are_bits || w < 2) bytes[w] += state.sample_bytes[s][w];
      bytes[1] += WaySamples::exact_bytes(job.element, state.sample_counts[s].exact);
    }
    way = samples.shortest(bytes[0], bytes[1], Rows::are_bits ? bytes[2] : ~uint64_t{0});
  }
  state.has_codes = way != ReferenceWay::plain;
  if (!state.has_codes) return;
  const bool is_list = all.codes <= most_listed(job.count);
  state.header.bound = job.bound;
  state.header.way = way;
  state.header.is_list = is_list;
  state.header.codes_count = is_list ? all.codes : 0;
  state.header.exact_count = all.exact;
}

// All codes, where they are no list.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    make_codes(const __grid_constant__ ReferenceArguments a) {
  const ReferenceHeader& header = a.state->header;
  if (!a.state->has_codes || header.is_list != 0) return;
  ReferenceJob job = job_of<Rows>(a);
  job.way = header.way;
  const Rows rows(job);
  for_each_delta_part(job.count, [&](uint64_t first, uint64_t count) {
    rows.codes(first, count, a.buffers.codes + first * sizeof(typename Rows::Stored));
  });
}

// Codes and exact elements that are listed.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    make_lists(const __grid_constant__ ReferenceArguments a) {
  const ReferenceHeader& header = a.state->header;
  const bool lists_codes = header.is_list != 0, lists_exact = header.exact_count > 0;
  if (!a.state->has_codes || !(lists_codes || lists_exact)) return;
  ReferenceJob job = job_of<Rows>(a);
  job.way = header.way;
  const Rows rows(job);
  const uint64_t size = a.block_size();
  visit_gaps(job.count, [&]<class Row>(Row) ARRCOMP_LAMBDA {
    using Place = typename Row::scalar;
    auto& waiting = warp_memory<typename Rows::template Waiting<Row>, Rows>();
    for_each_unit_of_warp(a.number_of_blocks(), [&](uint64_t block) {
      const DeltaCounts before = a.blocks[block];
      const DeltaLists lists{lists_codes ? a.buffers.places[0] + before.codes * sizeof(Place) : nullptr,
                             a.buffers.codes + before.codes * sizeof(typename Rows::Stored),
                             a.buffers.places[1] + before.exact * sizeof(Place),
                             a.buffers.exact + before.exact * (job.element.width / 8)};
      const uint64_t first = block * size, left = job.count - first;
      rows.template list<Row>(first, left < size ? left : size, lists, waiting);
    });
  });
}

// The gaps of both lists.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    make_gaps(const __grid_constant__ ReferenceArguments a) {
  const ReferenceHeader& header = a.state->header;
  if (!a.state->has_codes) return;
  visit_gaps(a.job.count, [&]<class Row>(Row) ARRCOMP_LAMBDA {
    using Place = typename Row::scalar;
    for (int list = 0; list < 2; ++list) {
      const auto* const places = reinterpret_cast<const Place*>(a.buffers.places[list]);
      auto* const gaps = reinterpret_cast<Place*>(a.buffers.gaps[list]);
      for_each_delta_part(list == 0 ? header.codes_count : header.exact_count, [&](uint64_t first, uint64_t count) {
        gaps_of<Row>(places, first, first + count, gaps + first);
      });
    }
  });
}

// Lists `e.count` parts, from `part` on, `step` apart, which are encoded together.
template <class Rows>
__global__ void list_parts(const __grid_constant__ ReferenceArguments a, const __grid_constant__ EncodeArguments e,
                           int part, int step) {
  const ReferenceState& state = *a.state;
  const ReferenceLayout layout = ReferenceLayout::of(a.job.element, state.header, a.job.count);
  for (uint64_t i = thread_of_grid(); i < e.count; i += threads_of_grid()) {
    const int p = part + static_cast<int>(i) * step;
    const uint8_t* const sources[] = {a.buffers.codes, a.buffers.gaps[0], a.buffers.exact, a.buffers.gaps[1]};
    EncodeArray& array = e.arrays[i];
    array = {layout.parts[p],          sources[p], a.buffers.coded[p], &a.state->part_bytes[p],
             i * (e.groups / e.count), {0, 0}};
    if (!state.has_codes || !layout.has(p, state.header.is_list != 0)) array.plan.groups = 0;
  }
  clear_placing(e);
}

// Puts the payload together, where codes have been made and it fits; else all is left to the encoder of `plain`.
template <class Rows>
__global__ void finish_reference(const __grid_constant__ ReferenceArguments a,
                                 const __grid_constant__ EncodeArguments plain, uint64_t capacity) {
  const ReferenceState& state = *a.state;
  const ReferencePlaces places(state.part_bytes);
  const bool is_kept = state.has_codes && places.end <= capacity;
  clear_placing(plain);
  EncodeArray& target = plain.arrays[plain_of_list];
  if (!is_kept) {
    if (thread_of_grid() != 0) return;
    target.payload = a.payload + reference_header_bytes;
    target.length = &a.state->plain_bytes;
    if (target.plan.groups == 0) finish_empty(target, plain.settings);
    return;
  }
  for (int p = 0; p < reference_parts; ++p) {  // multiples of 4 bytes
    const auto* const words = reinterpret_cast<const uint32_t*>(a.buffers.coded[p]);
    auto* const out = reinterpret_cast<uint32_t*>(a.payload + places.begin[p]);
    for (uint64_t i = thread_of_grid(); i < state.part_bytes[p] / 4; i += threads_of_grid()) out[i] = words[i];
  }
  if (thread_of_grid() != 0) return;
  ReferenceHeader header = state.header;
  for (int p = 0; p < reference_parts; ++p) header.part_bytes[p] = state.part_bytes[p];
  uint64_t end = reference_header_bytes;
  for (int p = 0; p < reference_parts; ++p) {
    if (state.part_bytes[p] == 0) continue;
    for (; end < places.begin[p]; ++end) a.payload[end] = 0;
    end = places.begin[p] + state.part_bytes[p];
  }
  memcpy(a.payload, &header, sizeof header);
  *a.length = places.end;
  target.plan.groups = 0;
}

// Writes what stands before the array's own payload, where that was encoded. By one thread.
template <class Rows>
__global__ void finish_plain(const __grid_constant__ ReferenceArguments a) {
  if (threadIdx.x != 0 || a.state->plain_bytes == 0) return;
  ReferenceHeader header = {0, a.state->hash, ReferenceWay::plain, 0, {}, 0, 0, {a.state->plain_bytes, 0, 0, 0}};
  memcpy(a.payload, &header, sizeof header);
  *a.length = reference_header_bytes + a.state->plain_bytes;
}

// ---- decoding

// Reads the payload's header, and lists what is to be decoded. By one thread.
template <class Rows>
__global__ void open_reference(const __grid_constant__ ReferenceDecodeArguments a) {
  if (threadIdx.x != 0) return;
  ReferenceDecoding& decoding = *a.decoding;
  const DecodeTask& task = a.task;
  for (DecodeArray& array : decoding.lists) {
    array = {make_plan(a.element, 0), nullptr, 0, nullptr, nullptr, 0};
  }
  decoding.state.hash = 0;
  decoding.state.has_codes = false;
  decoding.state.header = ReferenceHeader{};
  const uint64_t length = task.length == nullptr ? task.limit : read_number(task.length);
  ReferencePayload payload;
  if (length > task.limit || payload.read(a.element, task.payload, length, task.count) != nullptr) {
    *a.status = 1;
    return;
  }
  decoding.state.header = payload.header;
  decoding.state.has_codes = true;
  const ReferenceHeader& header = payload.header;
  const auto list = [&](int list, int part, void* target, uint64_t first_unit) {
    if (header.part_bytes[part] == 0) return;
    decoding.lists[list] = {
        payload.layout.parts[part], payload.part[part], header.part_bytes[part], nullptr, target, first_unit};
  };
  const uint64_t gap_groups = make_list_plan(gap_element_of(task.count), most_listed(task.count)).groups;
  if (header.way == ReferenceWay::plain) return list(plain_of_list, codes_part, task.target, 0);
  const bool are_wide = header.bound != 0 && a.element.width < 32;
  list(are_wide ? steps_of_list : codes_of_list, codes_part, a.codes, 0);
  list(gaps_of_list, gaps_part, a.gaps[0], 0);
  list(gaps_of_list + 1, exact_gaps_part, a.gaps[1], gap_groups);
  decoding.lists[gaps_of_list + 1].first_unit = gap_groups;
  list(exact_of_list, exact_part, a.exact, 0);
}

template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    hash_reference(const __grid_constant__ ReferenceDecodeArguments a) {
  if (!a.decoding->state.has_codes) return;
  const uint64_t bytes = a.task.count * (a.element.width / 8);
  uint32_t (&row)[lanes_per_row] = warp_memory<uint32_t[lanes_per_row], Rows>();
  for_each_unit_of_warp(ceil_div(bytes, hash_block_bytes), [&](uint64_t block) {
    add_atomically(a.decoding->state.hash,
                   BlockHash::of(static_cast<const uint8_t*>(a.task.reference), bytes, block, row));
  });
}

// Goes on with the reference that the array was compressed against alone. By one thread.
template <class Rows>
__global__ void check_reference(const __grid_constant__ ReferenceDecodeArguments a) {
  if (threadIdx.x != 0) return;
  ReferenceState& state = a.decoding->state;
  if (!state.has_codes || state.hash == state.header.hash) return;
  *a.status |= wrong_reference_status;
  state.has_codes = false;
  for (DecodeArray& array : a.decoding->lists) {
    array.plan.groups = 0;
    array.payload = nullptr;
  }
}

ARRCOMP_INLINE uint64_t entries_of(const ReferenceHeader& header, int list) {
  return list == 0 ? header.codes_count : header.exact_count;
}

// How many elements the units of both lists pass.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    pass_units(const __grid_constant__ ReferenceDecodeArguments a) {
  if (!a.decoding->state.has_codes) return;
  visit_gaps(a.task.count, [&]<class Row>(Row) ARRCOMP_LAMBDA {
    for (int list = 0; list < 2; ++list) {
      const auto* const gaps = reinterpret_cast<const typename Row::scalar*>(a.gaps[list]);
      const uint64_t entries = entries_of(a.decoding->state.header, list);
      for_each_unit_of_warp(ceil_div(entries, list_unit), [&](uint64_t unit) {
        const uint64_t begin = unit * list_unit, end = begin + list_unit;
        const uint64_t sum = passed(gaps, begin, end < entries ? end : entries, a.task.count);
        if (leader()) a.passed[list][unit] = sum;
      });
    }
  });
}

// Puts the sums of all units before each in their place; whether they lead behind the last element.
ARRCOMP_METHOD bool sums_pass(uint64_t* passed, uint64_t units, uint64_t most) {
  U64 before = splat<U64>(0);
  for (uint64_t i = 0; i < units; i += lanes_per_row) {
    const int n = units - i < lanes_per_row ? static_cast<int>(units - i) : lanes_per_row;
    const U64 own = select(mask(low_mask(n)), load_row(passed + i, n), splat<U64>(0));
    const U64 all = before + prefix_sum(own);  // of numbers up to 2^58
    before = broadcast_last(all);
    replace_row(passed + i, all - own, n);
    if (or_all(before) > most) return true;
  }
  return false;
}

// Adds them up; nothing is put where they lead behind the last element, or where a part is corrupt. By one warp.
template <class Rows>
__global__ void sum_units(const __grid_constant__ ReferenceDecodeArguments a) {
  ReferenceState& state = a.decoding->state;
  if (!state.has_codes) return;
  bool ok = *a.status == 0;
  for (int list = 0; list < 2 && ok; ++list)
    ok = !sums_pass(a.passed[list], ceil_div(entries_of(state.header, list), list_unit), a.task.count);
  sync();
  if (ok || !leader()) return;
  state.has_codes = false;
  *a.status |= 1;
}

template <class Rows>
ARRCOMP_METHOD bool applies(const ReferenceDecodeArguments& a) {
  const ReferenceState& state = a.decoding->state;
  return state.has_codes && state.header.way != ReferenceWay::plain && (state.header.bound == 0) == Rows::are_bits;
}

// Elements of all codes, or copies of the reference's where codes are a list.
template <class Rows>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    apply_codes(const __grid_constant__ ReferenceDecodeArguments a) {
  if (!applies<Rows>(a)) return;
  const ReferenceJob job = a.job();
  const Rows rows(job);
  const bool is_list = a.decoding->state.header.is_list != 0;
  if (is_list && a.task.target == a.task.reference) return;
  for_each_delta_part(job.count, [&](uint64_t first, uint64_t count) {
    if (is_list) {
      rows.copy(first, count, a.task.target);
    } else {
      rows.apply(first, count, a.codes + first * sizeof(typename Rows::Stored), a.task.target);
    }
  });
}

// Elements of lists: of codes, or exact ones.
template <class Rows, bool exact>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    put_list(const __grid_constant__ ReferenceDecodeArguments a) {
  if (!applies<Rows>(a)) return;
  const ReferenceJob job = a.job();
  const Rows rows(job);
  constexpr int list = exact ? 1 : 0;
  const uint64_t entries = entries_of(a.decoding->state.header, list);
  visit_gaps(job.count, [&]<class Row>(Row) ARRCOMP_LAMBDA {
    const auto* const gaps = reinterpret_cast<const typename Row::scalar*>(a.gaps[list]);
    for_each_unit_of_warp(ceil_div(entries, list_unit), [&](uint64_t unit) {
      const uint64_t begin = unit * list_unit, last = begin + list_unit, end = last < entries ? last : entries;
      const uint64_t place = a.passed[list][unit];
      if constexpr (exact) {
        rows.put_exact(gaps, place, a.exact, begin, end, a.task.target);
      } else {
        rows.put_codes(gaps, place, a.codes, begin, end, a.task.target);
      }
    });
  });
}

}  // namespace arrcomp::cuda
