#include "cpu/predicted.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/code_groups.h"
#include "cpu/scratch.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "stream/codec.h"
#include "stream/payload.h"

namespace arrcomp::cpu {
namespace {

constexpr uint64_t least_elements = 512;  // fewer are hardly worth a header

Codec codes_codec(bool fast) { return {LosslessSettings{fast, Predictor::none}}; }

// Calls work(begin, end) with all units, of so many elements in all.
template <class Work>
void for_units(uint64_t units, uint64_t elements, int threads, Work work) {
  const uint64_t of_unit = std::max<uint64_t>(elements / std::max<uint64_t>(units, 1), 1);
  all_of(Shares::of(units, threads, std::max<uint64_t>(min_elements / of_unit, 1)), 0,
         [&](uint64_t begin, uint64_t end) {
           work(begin, end);
           return true;
         });
}

// An array's grids on their way between the finest and the coarsest.
class Predicted {
 public:
  Predicted(const PredictionJob& job, const Prediction& prediction, int threads)
      : job_(job),
        prediction_(prediction),
        threads_(threads),
        functions_(isa().prediction),
        item_(job.element.width / 8),
        code_item_(job.element.width == 64 ? 8 : 4) {}

  // Hands the codes of all elements to `encoder`; whether these are all within the bound.
  bool encode(const void* source, CodeGroupsEncoder& encoder) {
    const int steps = prediction_.steps;
    std::vector<Scratch> grids(static_cast<size_t>(steps));
    const auto grid = [&](int k) { return k == steps ? source : static_cast<const void*>(made(grids, k)); };
    for (int k = steps; k-- > 0;) {
      const uint64_t count = prediction_.grid(k).count();
      grids[static_cast<size_t>(k)] = scratch_memory(count * item_, "a grid");
      for_units(count, count, threads_, [&](uint64_t begin, uint64_t end) {
        functions_.coarsen(job_, refinement(k), grid(k + 1), made(grids, k), begin, end);
      });
    }
    std::atomic<bool> all{encode_coarsest(grid(0), made(grids, 0), encoder)};
    for (int k = 0; k < steps; ++k) {
      const Refinement step = refinement(k);
      encoder.add(step.codes(), [&](uint64_t begin, uint64_t end, uint8_t* to) {
        if (!functions_.encode_step(job_, step, grid(k), grid(k + 1), made(grids, k + 1), to, begin, end)) all = false;
      });
      grids[static_cast<size_t>(k)].reset();
    }
    return all;
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
  // A grid between the coarsest and the finest, which nobody keeps.
  static uint8_t* made(const std::vector<Scratch>& grids, int k) {
    return static_cast<size_t>(k) < grids.size() ? grids[static_cast<size_t>(k)].get() : nullptr;
  }

  // A little less than the bound, as the codes of steps are checked against such a one (codecs/predicted/code.h).
  double coarse_bound() const {
    return job_.bound * (1 - (item_ == 8 ? 0x1p-50 : 0x1p-20)) *
           (static_cast<double>(prediction_.coarse_scale) / full_scale);
  }

  Refinement refinement(int k) const {
    const Axes fine = prediction_.grid(k + 1);
    const Step& step = prediction_.step[k];
    return {fine.outer(step.axis), fine.sizes[step.axis], fine.inner(step.axis), step.kind, job_.bound, step.scale};
  }

  bool encode_coarsest(const void* source, void* decoded, CodeGroupsEncoder& encoder) {
    const Axes grid = prediction_.grid(0);
    const uint64_t size = grid.sizes[max_axes - 1];
    const Scratch codes = scratch_memory(grid.count() * code_item_, "codes");
    std::atomic<bool> all{true};
    for_units(grid.count() / size, grid.count(), threads_, [&](uint64_t begin, uint64_t end) {
      if (!functions_.encode_lines(job_, coarse_bound(), size, source, decoded, codes.get(), begin, end)) all = false;
    });
    each_difference(grid, [&](int axis) { change_differences(true, grid, axis, codes.get()); });
    encoder.add(grid.count(), [&](uint64_t begin, uint64_t end, uint8_t* to) {
      memcpy(to, codes.get() + begin * code_item_, (end - begin) * code_item_);
    });
    return all;
  }

  bool decode_coarsest(CodeGroupsDecoder& decoder, void* target) {
    const Axes grid = prediction_.grid(0);
    const uint64_t size = grid.sizes[max_axes - 1];
    const Scratch codes = scratch_memory(grid.count() * code_item_, "codes");
    const auto use = [&](uint64_t begin, uint64_t end, const uint8_t* from) {
      memcpy(codes.get() + begin * code_item_, from, (end - begin) * code_item_);
    };
    if (!decoder.take(grid.count(), use)) return false;
    each_difference(grid, [&](int axis) { change_differences(false, grid, axis, codes.get()); });
    for_units(grid.count() / size, grid.count(), threads_, [&](uint64_t begin, uint64_t end) {
      functions_.decode_lines(job_, coarse_bound(), size, codes.get(), target, begin, end);
    });
    return true;
  }

  template <class Visit>
  void each_difference(const Axes& grid, Visit visit) const {
    for (int axis = 0; axis < max_axes; ++axis)
      if ((prediction_.differences >> axis & 1) != 0 && grid.sizes[axis] > 1) visit(axis);
  }

  void change_differences(bool take, const Axes& grid, int axis, uint8_t* codes) {
    const uint64_t size = grid.sizes[axis], inner = grid.inner(axis);
    for_units(difference_units(grid.outer(axis), inner), grid.count(), threads_, [&](uint64_t begin, uint64_t end) {
      functions_.change_differences(job_, take, size, inner, codes, begin, end);
    });
  }

  const PredictionJob& job_;
  const Prediction& prediction_;
  int threads_;
  const PredictionFunctions& functions_;
  uint64_t item_, code_item_;
};

// absent_element as a number: the least one above 0 of these floats.
double absent_number(const Element& element) {
  return std::ldexp(1.0, 2 - (1 << (element.exponent_bits - 1)) - element.mantissa_bits);
}

// Decodes a payload of codes.
bool decode_codes(const PredictionJob& job, const Prediction& prediction, const uint8_t* codes, uint64_t length,
                  void* target, int threads) {
  const Codec codec = codes_codec(false);
  const Plan plan = make_codes_plan(job.element, prediction.axes.count());
  Groups groups{};
  if (!groups.read(plan, codec, codes, length)) return false;
  CodeGroupsDecoder decoder(plan, codec, groups, threads);
  return Predicted(job, prediction, threads).decode(decoder, target);
}

// Encodes the elements that must be kept exactly; returns the bytes, or 0 where they cannot be told from absent ones.
uint64_t encode_exact(const EncodeJob& job, const PredictionJob& prediction_job, const Prediction& prediction,
                      const uint8_t* codes, uint64_t length, Scratch& payload, int threads) {
  const uint64_t count = job.plan.count;
  const auto made = scratch_memory(count * (job.plan.element.width / 8), "decoded elements");
  decode_codes(prediction_job, prediction, codes, length, made.get(), threads);
  std::atomic<bool> is_ambiguous{false};
  for_units(ceil_div(count, lanes_per_row), count, threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * lanes_per_row, last = std::min(end * lanes_per_row, count);
    if (!isa().prediction.find_exact(prediction_job, job.source, made.get(), first, last - first)) is_ambiguous = true;
  });
  if (is_ambiguous) return 0;
  const Plan plan = make_plan(job.plan.element, count);
  payload = scratch_memory(capacity_of_groups(plan.element, count), "exact elements");
  const GroupSettings without_absent{BoundKind::lossless, 0, job.settings.fast, true, absent_number(plan.element),
                                     Predictor::none};
  return encode_job({plan, made.get(), 0, 0, without_absent, tables(), nullptr, 0}, payload.get(), threads);
}

uint64_t encode_chosen(const EncodeJob& job, const PredictionJob& prediction_job, const Prediction& chosen,
                       uint8_t* payload, uint64_t capacity, int threads) {
  const uint64_t count = job.plan.count;
  const Plan plan = make_codes_plan(job.plan.element, count);
  const auto coded = scratch_memory(capacity_of_groups(plan.element, count), "coded codes");
  CodeGroupsEncoder encoder(plan, group_settings(codes_codec(job.settings.fast)), coded.get() + plan.groups_offset(),
                            threads);
  const bool all = Predicted(prediction_job, chosen, threads).encode(job.source, encoder);
  PredictedHeader header{
      job.bound, 0, static_cast<uint8_t>(chosen.steps), chosen.differences, chosen.coarse_scale, chosen.axes, 0, 0};
  header.codes_bytes = encoder.finish(coded.get());
  Scratch exact;
  if (!all) {
    header.exact_bytes = encode_exact(job, prediction_job, chosen, coded.get(), header.codes_bytes, exact, threads);
    if (header.exact_bytes == 0) return 0;
  }
  const uint64_t offset = codes_offset(chosen.steps), exact_offset = offset + round_up(header.codes_bytes, 8);
  const uint64_t length = all ? offset + header.codes_bytes : exact_offset + header.exact_bytes;
  if (length > capacity) return 0;
  memset(payload, 0, offset);
  memcpy(payload, &header, sizeof header);
  memcpy(payload + sizeof header, chosen.step, static_cast<size_t>(chosen.steps) * sizeof(Step));
  memcpy(payload + offset, coded.get(), header.codes_bytes);
  if (!all) {
    memset(payload + offset + header.codes_bytes, 0, exact_offset - offset - header.codes_bytes);
    memcpy(payload + exact_offset, exact.get(), header.exact_bytes);
  }
  return length;
}

// ---- trials

constexpr int most_boxes = 4;
constexpr uint64_t least_gain = 32;                             // bytes of a box
constexpr uint64_t small_array = 1 << 16;                       // elements: all of it is tried
constexpr uint64_t least_box = 1 << 14, largest_box = 1 << 16;  // elements
constexpr uint64_t tried_part = 32;                             // of all elements, in all boxes

// The axes of a box of about so many elements.
Axes box_axes(Axes axes, uint64_t elements) {
  while (axes.count() > elements) {
    uint64_t& longest = *std::max_element(std::begin(axes.sizes), std::end(axes.sizes));
    longest = (longest + 1) / 2;
  }
  return axes;
}

// A part of an array along all of its axes.
Scratch cut_out(const Element& element, const void* source, const Axes& axes, const Axes& box, int number, int boxes) {
  const uint64_t item = element.width / 8, line = box.sizes[max_axes - 1] * item;
  Scratch cut = scratch_memory(box.count() * item, "a sample");
  uint64_t first[max_axes], at = 0;
  for (int a = 0; a < max_axes; ++a) {  // each axis takes the boxes' places in another order
    const uint64_t place = static_cast<uint64_t>((number * (2 * a + 1) + a) % boxes);
    first[a] = (axes.sizes[a] - box.sizes[a]) * (2 * place + 1) / (2 * static_cast<uint64_t>(boxes));
  }
  uint64_t i[max_axes] = {};
  for (i[0] = 0; i[0] < box.sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < box.sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < box.sizes[2]; ++i[2], at += line) {
        uint64_t index = 0;
        for (int a = 0; a < max_axes; ++a) index = index * axes.sizes[a] + first[a] + i[a];
        memcpy(cut.get() + at, static_cast<const uint8_t*>(source) + index * item, line);
      }
  return cut;
}

// The same prediction on a smaller array, which has fewer steps where an axis is too short for them.
Prediction on_axes(const Prediction& prediction, const Axes& axes) {
  Prediction smaller = prediction;
  smaller.axes = axes;
  smaller.steps = 0;
  Axes grid = axes;
  Step steps[max_steps];
  for (int k = prediction.steps; k-- > 0;) {
    uint64_t& size = grid.sizes[prediction.step[k].axis];
    if (size < 3) continue;
    size = (size + 1) / 2;
    steps[smaller.steps++] = prediction.step[k];
  }
  for (int k = 0; k < smaller.steps; ++k) smaller.step[k] = steps[smaller.steps - 1 - k];
  return smaller;
}

// Encodes samples in each way, and without prediction; the best way, or -1.
int best_of(const EncodeJob& job, const PredictionJob& prediction_job, const Axes& axes, const Prediction* ways,
            int count, bool must_predict) {
  const uint64_t elements = axes.count();
  const bool is_small = elements <= small_array;
  const int boxes = is_small ? 1 : most_boxes;
  const uint64_t wanted = std::clamp(elements / tried_part / most_boxes, least_box, largest_box);
  const Axes box = is_small ? axes : box_axes(axes, wanted);
  const Plan plan = make_plan(job.plan.element, box.count(), job.plan.chunks_per_group);
  const uint64_t capacity =
      capacity_of_groups(plan.element, plan.count) + sizeof(PredictedHeader) + sizeof(Step) * max_steps;
  const auto payload = scratch_memory(capacity, "a trial");
  // More chunks of the whole array share the coder's states than a box has.
  const uint64_t chunks = ceil_div(box.count(), chunk_size);
  const uint64_t groups = make_codes_plan(plan.element, box.count()).groups;
  const uint64_t spared_states =
      states_bytes * groups - states_bytes * chunks / make_codes_plan(plan.element, elements).chunks_per_group;
  uint64_t plain = 0, bytes[max_candidates] = {};
  for (int b = 0; b < boxes; ++b) {
    const Scratch cut = cut_out(plan.element, job.source, axes, box, b, boxes);
    const EncodeJob part{plan, cut.get(), job.bound, job.rounded_bits, job.settings, job.tables, nullptr, job.seed};
    if (!must_predict) plain += encode_job(part, payload.get(), 1);
    for (int way = 0; way < count; ++way) {
      const Prediction smaller = on_axes(ways[way], box);
      const uint64_t length = encode_chosen(part, prediction_job, smaller, payload.get(), capacity, 1);
      const uint64_t once = is_small ? 0 : codes_offset(smaller.steps) + spared_states;
      bytes[way] += length > 0 ? length - std::min(once, length) : capacity;
    }
  }
  const int best = static_cast<int>(std::min_element(bytes, bytes + count) - bytes);
  return must_predict || bytes[best] + plain / 64 + least_gain * static_cast<uint64_t>(boxes) < plain ? best : -1;
}

// A payload's parts, checked but for the groups in them.
struct PredictedParts {
  PredictedHeader header;
  Prediction prediction;
  const uint8_t *codes, *exact;

  // What is corrupt, or null.
  const char* read(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
    if (length < sizeof header) return "payload length: shorter than the header of a prediction";
    memcpy(&header, payload, sizeof header);
    if (header.steps > max_steps || codes_offset(header.steps) > length)
      return "steps: more than the payload has room for";
    prediction = {header.axes, header.differences, header.coarse_scale, header.steps, {}};
    memcpy(prediction.step, payload + sizeof header, header.steps * sizeof(Step));
    if (!is_prediction(element, header, prediction.step, count))
      return "prediction: not one of this data type and number of elements";
    codes = payload + codes_offset(header.steps);
    const uint64_t left = length - codes_offset(header.steps);
    if (header.codes_bytes > left) return "codes: longer than the payload";
    if (header.exact_bytes == 0)
      return header.codes_bytes == left ? nullptr : "payload length: not that of header, steps and codes";
    const uint64_t before = round_up(header.codes_bytes, 8);
    if (before > left || header.exact_bytes != left - before)
      return "payload length: not that of header, steps, codes and exact elements";
    exact = codes + before;
    PayloadHeader exact_header{};
    if (header.exact_bytes >= sizeof exact_header) memcpy(&exact_header, exact, sizeof exact_header);
    return exact_header.bound == 0 ? nullptr : "bound of the exact elements: not 0";
  }
};

}  // namespace

uint64_t encode_predicted(const EncodeJob& job, const Axes& axes, uint8_t* payload, uint64_t capacity, int threads) {
  const Element& element = job.plan.element;
  const bool is_lossless = job.settings.kind == BoundKind::lossless;
  if (job.settings.predictor == Predictor::none || job.settings.kind == BoundKind::pointwise) return 0;
  if (!element.is_quantizable || job.plan.count < least_elements || !axes.have(job.plan.count)) return 0;
  if (!is_lossless && !is_predictable(element, job.bound)) return 0;
  const PredictionJob prediction_job{element, job.settings, job.bound};
  Prediction ways[max_candidates];
  const int count = isa().prediction.candidates(prediction_job, axes, job.source, ways);
  const bool must_predict = job.settings.predictor != Predictor::automatic;
  const int best = must_predict && count == 1 ? 0 : best_of(job, prediction_job, axes, ways, count, must_predict);
  return best < 0 ? 0 : encode_chosen(job, prediction_job, ways[best], payload, capacity, threads);
}

bool is_predicted(const uint8_t* payload, uint64_t length, uint64_t count) {
  if (length < payload_header_bytes || count == 0) return false;
  PayloadHeader header;
  memcpy(&header, payload, sizeof header);
  return header.chunks_per_group == 0;
}

const char* predicted_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
  PredictedParts parts{};
  if (const char* fault = parts.read(element, payload, length, count)) return fault;
  const Codec codec = codes_codec(false);
  const char* fault = Groups{}.fault_in(make_codes_plan(element, count), codec, parts.codes, parts.header.codes_bytes);
  if (fault != nullptr || parts.header.exact_bytes == 0) return fault;
  return Groups{}.fault_in(make_plan(element, count), codec, parts.exact, parts.header.exact_bytes);
}

bool decode_predicted(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count, void* target,
                      int threads) {
  PredictedParts parts{};
  if (parts.read(element, payload, length, count) != nullptr) return false;
  const GroupSettings settings{};
  const PredictionJob job{element, settings, parts.header.bound};
  if (!decode_codes(job, parts.prediction, parts.codes, parts.header.codes_bytes, target, threads)) return false;
  if (parts.header.exact_bytes == 0) return true;
  const uint64_t item = element.width / 8;
  const auto exact = scratch_memory(count * item, "exact elements");
  if (!decode_array(make_plan(element, count), codes_codec(false), parts.exact, parts.header.exact_bytes, exact.get(),
                    threads))
    return false;
  for_units(ceil_div(count, lanes_per_row), count, threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * lanes_per_row, last = std::min(end * lanes_per_row, count);
    isa().prediction.put_exact(job, exact.get(), target, first, last - first);
  });
  return true;
}

}  // namespace arrcomp::cpu
