#include "cpu/predicted.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/coarsest_grid.h"
#include "cpu/code_groups.h"
#include "cpu/gap_mask.h"
#include "cpu/scratch.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "stream/predicted_payload.h"
#include "stream/prediction_choice.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cpu {
namespace {

// An array's grids on their way between the finest and the coarsest.
class Predicted {
 public:
  Predicted(const PredictionJob& job, const Prediction& prediction, int threads)
      : job_(job),
        prediction_(prediction),
        threads_(threads),
        functions_(isa().prediction),
        item_(job.element.width / 8),
        code_item_(code_element_of(job.element).width / 8) {}

  // Hands the codes of all elements to `encoder`. `finest`: where elements go as they are decoded, if not null.
  template <class Encoder>
  Unserved encode(const void* source, Encoder& encoder, void* finest = nullptr) {
    const int steps = prediction_.steps;
    std::vector<Scratch> grids(static_cast<size_t>(steps));
    const auto made = [&](int k) {
      return k == steps ? static_cast<uint8_t*>(finest) : grids[static_cast<size_t>(k)].get();
    };
    const auto grid = [&](int k) { return k == steps ? source : made(k); };
    for (int k = steps; k-- > 0;) {
      const uint64_t count = prediction_.grid(k).count();
      grids[static_cast<size_t>(k)] = scratch_memory(count * item_, "a grid");
      for_units(count, count, threads_, [&](uint64_t begin, uint64_t end) {
        functions_.coarsen(job_, refinement(k), grid(k + 1), made(k), begin, end);
      });
    }
    LastKind<Unserved> unserved;
    unserved.add(encode_coarsest(static_cast<const uint8_t*>(grid(0)), made(0), encoder));
    for (int k = 0; k < steps; ++k) {
      const Refinement step = refinement(k);
      encoder.add(step.codes(), [&](uint64_t begin, uint64_t end, uint8_t* to) {
        unserved.add(functions_.encode_step(job_, step, grid(k), grid(k + 1), made(k + 1), to, begin, end));
      });
      grids[static_cast<size_t>(k)].reset();
    }
    return unserved.kind();
  }

  // Makes the elements of the codes of `decoder`; false where these are corrupt.
  bool decode(CodeGroupsDecoder& decoder, void* target) {
    const int steps = prediction_.steps;
    Scratch other;
    if (steps > 0) other = scratch_memory(prediction_.grid(steps - 1).count() * item_, "a grid");
    // The last step goes to the target, the one before it to other memory, and so on.
    const auto grid = [&](int k) { return (steps - k) % 2 == 0 ? target : static_cast<void*>(other.get()); };
    if (!decode_coarsest(decoder, grid(0))) return false;
    for (int k = 0; k < steps; ++k) {
      const Refinement step = refinement(k);
      const auto use = [&](uint64_t begin, uint64_t end, const uint8_t* codes) {
        functions_.decode_step(job_, step, grid(k), codes, grid(k + 1), begin, end);
      };
      if (!decoder.take(step.codes(), use)) return false;
    }
    return true;
  }

 private:
  Refinement refinement(int k) const { return prediction_.refinement(k, job_.bound); }

  // Some rows at a time, whose integers a cache holds, behind the row before these. Their differences from the row before
  // are taken on their way to the encoder.
  template <class Encoder>
  Unserved encode_coarsest(const uint8_t* source, uint8_t* decoded, Encoder& encoder) {
    Axes rows = prediction_.grid(0);
    const int axis = rows.axis_of_rows();
    const uint64_t all = rows.sizes[axis], row = rows.inner(axis), at_once = rows_at_once(rows, axis);
    const bool differ = axis < max_axes - 1 && prediction_.has_differences(axis);
    Prediction within_rows = prediction_;
    if (differ) within_rows.differences &= static_cast<uint8_t>(~set_of_axis(axis));
    const Scratch integers = scratch_memory((1 + at_once) * row * code_item_, "codes");
    uint8_t* const own = integers.get() + row * code_item_;
    if (differ) memset(integers.get(), 0, row * code_item_);
    LastKind<Unserved> unserved;
    for (uint64_t begin = 0; begin < all; begin += at_once) {
      const uint64_t count = std::min(at_once, all - begin), first = begin * row * item_;
      rows.sizes[axis] = count;
      CoarsestGrid grid(job_, within_rows, rows, own, threads_);
      unserved.add(grid.encode(source + first, decoded == nullptr ? nullptr : decoded + first));
      encoder.add(count * row, [&](uint64_t from, uint64_t to, uint8_t* codes) {
        if (differ) return functions_.write_differences(job_, own + from * code_item_, row, codes, to - from);
        memcpy(codes, own + from * code_item_, (to - from) * code_item_);
      });
      if (differ) memcpy(integers.get(), own + (count - 1) * row * code_item_, row * code_item_);
    }
    return unserved.kind();
  }

  // Several threads are started anew for some rows, which are to be worth it. A line is made as a whole.
  uint64_t rows_at_once(const Axes& grid, int axis) const {
    constexpr uint64_t elements = 1 << 17, elements_a_thread = 1 << 20;
    if (axis == max_axes - 1) return grid.sizes[axis];
    const uint64_t wanted = threads_ == 1 ? elements : elements_a_thread * static_cast<uint64_t>(threads_);
    return std::clamp<uint64_t>(wanted / grid.inner(axis), 1, grid.sizes[axis]);
  }

  // Codes stand where their elements come to stand, if these are as wide.
  bool decode_coarsest(CodeGroupsDecoder& decoder, void* target) {
    const Axes grid = prediction_.grid(0);
    Scratch own;
    if (code_item_ != item_) own = scratch_memory(grid.count() * code_item_, "codes");
    uint8_t* const codes = own != nullptr ? own.get() : static_cast<uint8_t*>(target);
    if (!decoder.take_to(grid.count(), codes)) return false;
    CoarsestGrid(job_, prediction_, grid, codes, threads_).decode(target);
    return true;
  }

  const PredictionJob& job_;
  const Prediction& prediction_;
  int threads_;
  const PredictionFunctions& functions_;
  uint64_t item_, code_item_;
};

// Decodes a payload of codes.
bool decode_codes(const PredictionJob& job, const Prediction& prediction, const uint8_t* codes, uint64_t length,
                  void* target, int threads) {
  const Plan plan = prediction.codes_plan(job.element);
  Groups groups{};
  if (!groups.read(plan, lossless_codec, codes, length)) return false;
  CodeGroupsDecoder decoder(plan, lossless_codec, groups, threads);
  return Predicted(job, prediction, threads).decode(decoder, target);
}

// Encodes the elements that must be kept exactly, if there are any, and tells so: to `payload`, of so many bytes. `made`:
// elements as codes are decoded; only others than gaps are looked for there.
FoundExact encode_exact(const EncodeJob& job, const PredictionJob& prediction_job, Unserved unserved,
                        const Scratch& made, Scratch& payload, uint64_t& bytes, int threads) {
  const uint64_t count = job.plan.count;
  LastKind<FoundExact> found;
  for_rows(count, threads, [&](uint64_t first, uint64_t last) {
    found.add(isa().prediction.find_exact(prediction_job, unserved, job.source, made.get(), first, last - first));
  });
  if (found.kind() != FoundExact::some) return found.kind();
  const Plan plan = make_plan(job.plan.element, count);
  payload = scratch_memory(capacity_of_groups(plan.element, count), "exact elements");
  const GroupSettings settings = exact_settings(plan.element, job.settings);
  bytes = encode_job({plan, made.get(), 0, 0, settings, tables(), nullptr, 0}, payload.get(), threads);
  return FoundExact::some;
}

// Groups whose elements are brought from rows to columns at a time: from all of a line of the cache, and to what it holds.
uint64_t columns_at_once(const Plan& plan) {
  constexpr uint64_t elements = lanes_per_row * chunk_size;
  return std::max<uint64_t>(elements / plan.group_size(), 1);
}

// In groups of the job's plan: those of boxes are as long as the array's.
uint64_t encode_columns(const EncodeJob& job, const Prediction& chosen, uint8_t* payload, uint64_t capacity,
                        int threads) {
  const Plan& plan = job.plan;
  const Element& element = plan.element;
  const Columns matrix = chosen.columns();
  const auto coded = scratch_memory(capacity_of_groups(element, plan.count), "columns");
  CodeGroupsEncoder encoder(plan, job.settings, coded.get() + plan.groups_offset(), threads, job.bound,
                            columns_at_once(plan));
  encoder.add(plan.count, [&](uint64_t begin, uint64_t end, uint8_t* to) {
    uint8_t* const columns = array_with(to, begin, element.width / 8);
    isa().prediction.to_columns(element, matrix, job.source, columns, begin, end);
  });
  const uint64_t bytes = encoder.finish(coded.get());
  const PredictedPlaces places(chosen, {bytes, 0, 0});
  if (places.length > capacity) return 0;
  write_predicted_head(chosen, job.bound, {bytes, 0, 0}, payload);
  memcpy(payload + places.codes, coded.get(), bytes);
  return places.length;
}

bool decode_columns(const Element& element, const PredictedParts& parts, void* target, int threads) {
  const Plan plan = parts.prediction.codes_plan(element);
  Groups groups{};
  if (!groups.read(plan, lossless_codec, parts.codes, parts.header.codes_bytes)) return false;
  const Columns matrix = parts.prediction.columns();
  CodeGroupsDecoder decoder(plan, lossless_codec, groups, threads, columns_at_once(plan));
  return decoder.take(plan.count, [&](uint64_t begin, uint64_t end, const uint8_t* from) {
    const uint8_t* const columns = array_with(const_cast<uint8_t*>(from), begin, element.width / 8);
    isa().prediction.to_rows(element, matrix, columns, target, begin, end);
  });
}

// Codes of an array, all in memory.
class CodesInMemory {
 public:
  CodesInMemory(uint64_t count, uint64_t item) : item_(item), codes_(scratch_memory(count * item, "codes")) {}

  // As CodeGroupsEncoder's.
  template <class Make>
  void add(uint64_t count, Make make) {
    make(0, count, codes_.get() + done_ * item_);
    done_ += count;
  }

  void hand_to(CodeGroupsEncoder& encoder) const {
    encoder.add(done_, [&](uint64_t begin, uint64_t end, uint8_t* to) {
      memcpy(to, codes_.get() + begin * item_, (end - begin) * item_);
    });
  }

  uint8_t* get() const { return codes_.get(); }

 private:
  uint64_t item_, done_ = 0;
  Scratch codes_;
};

// Encodes an array, or boxes of one that are cut along some axes, a bit each: ends of lines there are made like the rest.
uint64_t encode_chosen(const EncodeJob& job, const Prediction& chosen, uint8_t* payload, uint64_t capacity, int threads,
                       uint32_t cut = 0) {
  if (chosen.is_by_columns()) return encode_columns(job, chosen, payload, capacity, threads);
  const double bound = chosen.own_bound(job.bound);
  const Element& element = job.plan.element;
  const PredictionJob prediction_job{element, job.settings, bound, chosen.multiples, chosen.mask};
  const uint64_t count = job.plan.count, bytes_of_elements = count * (element.width / 8);
  const Plan plan = chosen.codes_plan(element);
  const auto coded = scratch_memory(capacity_of_groups(plan.element, count), "coded codes");
  CodeGroupsEncoder encoder(plan, codes_settings(job.settings), coded.get() + plan.groups_offset(), threads);
  Predicted predicted(prediction_job, chosen, threads);
  Unserved unserved;
  Scratch made;
  if (cut == 0) {
    unserved = predicted.encode(job.source, encoder);
  } else {
    CodesInMemory codes(count, plan.element.width / 8);
    made = scratch_memory(bytes_of_elements, "decoded elements");
    unserved = predicted.encode(job.source, codes, made.get());
    isa().prediction.even_ends(prediction_job, chosen, cut, codes.get());
    codes.hand_to(encoder);
  }
  PredictedBytes bytes{encoder.finish(coded.get()), 0, 0};
  Scratch mask, exact;
  if (unserved != Unserved::none && chosen.mask.is_given)
    bytes.mask = MaskBytes(prediction_job, chosen.axes, 0, count, threads).encode(job.source, mask);
  if (unserved > Unserved::masked) {
    if (made == nullptr) {
      made = scratch_memory(bytes_of_elements, "decoded elements");
      if (unserved == Unserved::others)
        decode_codes(prediction_job, chosen, coded.get(), bytes.codes, made.get(), threads);
    }
    const FoundExact found = encode_exact(job, prediction_job, unserved, made, exact, bytes.exact, threads);
    if (found == FoundExact::ambiguous) return 0;
  }
  const PredictedPlaces places(chosen, bytes);
  if (places.length > capacity) return 0;
  write_predicted_head(chosen, bound, bytes, payload);
  memcpy(payload + places.codes, coded.get(), bytes.codes);
  if (bytes.mask > 0) memcpy(payload + places.mask, mask.get(), bytes.mask);
  if (bytes.exact > 0) memcpy(payload + places.exact, exact.get(), bytes.exact);
  return places.length;
}

// The part of an array that is tried.
Scratch cut_out(const Element& element, const void* source, const Trial& trial, int shape) {
  const Axes& axes = trial.part(shape);
  const auto* const elements = static_cast<const uint8_t*>(source);
  const uint64_t item = element.width / 8, size = axes.sizes[max_axes - 1] * item;
  Scratch cut = scratch_memory(axes.count() * item, "a sample");
  for (uint64_t line = 0; line < axes.outer(max_axes - 1); ++line)
    memcpy(cut.get() + line * size, elements + trial.line_of_array(shape, line) * item, size);
  return cut;
}

// Encodes a part of the array in each way, and without prediction; the best way, or -1.
int best_of(const EncodeJob& job, const Axes& axes, const Prediction* ways, int count) {
  const Element& element = job.plan.element;
  const Trial trial(element, axes, job.settings.must_predict());
  const GroupSettings settings = trial.settings_of_part(job.settings);
  const auto payload = scratch_memory(trial.capacity(), "a trial");
  uint64_t plain[Trial::shapes] = {}, bytes[max_candidates] = {};
  for (int shape = 0; shape < Trial::shapes; ++shape) {
    if (!trial.tries(shape, ways, count)) continue;
    const Plan plan = make_plan(element, trial.part(shape).count(), job.plan.chunks_per_group);
    const Scratch cut = cut_out(element, job.source, trial, shape);
    const EncodeJob part{plan, cut.get(), job.bound, job.rounded_bits, settings, job.tables, nullptr, job.seed};
    if (job.settings.may_be_by_columns()) plain[shape] = encode_job(part, payload.get(), 1);
    for (int way = 0; way < count; ++way) {
      if (Trial::shape_of(ways[way]) != shape) continue;
      Prediction smaller;
      put_on_axes(ways[way], trial.part(shape), smaller);
      const uint64_t length = encode_chosen(part, smaller, payload.get(), trial.capacity(), 1, trial.cut_axes());
      bytes[way] = trial.counted(smaller, length);
    }
  }
  return trial.best(ways, bytes, count, plain);
}

}  // namespace

uint64_t encode_predicted(const EncodeJob& job, const Axes& axes, uint8_t* payload, uint64_t capacity, int threads) {
  const Element& element = job.plan.element;
  if (!may_be_predicted(element, job.settings, axes, job.plan.count)) return 0;
  if (job.settings.has_one_bound() && !is_predictable(element, job.bound)) return 0;
  const PredictionJob prediction_job{element, job.settings, job.bound, {}, {}};
  PredictionSamples samples{};
  const Predictor predictor = job.settings.possible_predictor();
  double bound = job.bound;
  if (predictor != Predictor::columns) bound = isa().prediction.sample(prediction_job, axes, job.source, samples);
  const FloatTraits traits = isa().prediction.traits(element);
  Prediction ways[max_candidates];
  const int count = PredictionChoice(axes, samples, traits, bound).candidates(predictor, ways);
  if (count == 0) return 0;
  const bool is_decided = job.settings.must_predict() && count == 1;
  const int best = is_decided ? 0 : best_of(job, axes, ways, count);
  return best < 0 ? 0 : encode_chosen(job, ways[best], payload, capacity, threads);
}

const char* predicted_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
  PredictedParts parts{};
  if (const char* fault = parts.read(element, payload, length, count)) return fault;
  const Plan plan = parts.prediction.codes_plan(element);
  const char* fault = Groups{}.fault_in(plan, lossless_codec, parts.codes, parts.header.codes_bytes);
  if (fault == nullptr && parts.mask_bytes > 0)
    fault = Groups{}.fault_in(MaskGrid(parts.prediction.axes).plan(), lossless_codec, parts.mask, parts.mask_bytes);
  if (fault != nullptr || parts.header.exact_bytes == 0) return fault;
  return Groups{}.fault_in(make_plan(element, count), lossless_codec, parts.exact, parts.header.exact_bytes);
}

bool decode_predicted(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count, void* target,
                      int threads) {
  PredictedParts parts{};
  if (parts.read(element, payload, length, count) != nullptr) return false;
  if (parts.prediction.is_by_columns()) return decode_columns(element, parts, target, threads);
  const GroupSettings settings{};
  const PredictionJob job = job_of(element, settings, parts);
  if (!decode_codes(job, parts.prediction, parts.codes, parts.header.codes_bytes, target, threads)) return false;
  if (!decode_mask(job, parts, 0, count, target, threads)) return false;
  if (parts.header.exact_bytes == 0) return true;
  const uint64_t item = element.width / 8;
  const auto exact = scratch_memory(count * item, "exact elements");
  const Plan plan = make_plan(element, count);
  if (!decode_array(plan, lossless_codec, parts.exact, parts.header.exact_bytes, exact.get(), threads)) return false;
  for_rows(count, threads, [&](uint64_t first, uint64_t last) {
    isa().prediction.put_exact(job, exact.get(), target, first, last - first);
  });
  return true;
}

}  // namespace arrcomp::cpu
