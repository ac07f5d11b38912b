#include "cpu/predicted.h"

#include <atomic>
#include <cstring>
#include <memory>

#include "cpu/select.h"
#include "cpu/threads.h"
#include "memory.h"
#include "stream/codec.h"
#include "stream/payload.h"

namespace arrcomp::cpu {
namespace {

constexpr uint64_t least_elements = 512;  // fewer are hardly worth a header

Codec codes_codec(bool fast) { return {LosslessSettings{fast, Predictor::none}}; }

// Calls work(begin, end) with all units, of so many elements each.
template <class Work>
bool for_units(uint64_t units, uint64_t elements, int threads, Work work) {
  const uint64_t of_unit = std::max<uint64_t>(elements / std::max<uint64_t>(units, 1), 1);
  return all_of(Shares::of(units, threads, std::max<uint64_t>(min_elements / of_unit, 1)), 0, work);
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
        code_item_(job.element.width == 64 ? 8 : 4) {
    uint64_t offset = prediction.grid(0).count();
    for (int k = 0; k < prediction.steps; ++k) {
      offsets_[k] = offset;
      offset += refinement(k).codes();
    }
  }

  // Writes the codes of all elements; whether these are all within the bound.
  bool encode(const void* source, uint8_t* codes) {
    const int steps = prediction_.steps;
    std::unique_ptr<std::unique_ptr<uint8_t[]>[]> grids(new std::unique_ptr<uint8_t[]>[static_cast<size_t>(steps)]);
    const auto grid = [&](int k) { return k == steps ? source : static_cast<const void*>(grids[static_cast<size_t>(k)].get()); };
    for (int k = steps; k-- > 0;) {
      grids[static_cast<size_t>(k)] = allocated<uint8_t>(prediction_.grid(k).count() * item_, "a grid");
      coarsen(k, grid(k + 1), grids[static_cast<size_t>(k)].get());
    }
    bool all = encode_coarsest(grid(0), steps > 0 ? grids[0].get() : nullptr, codes);
    for (int k = 0; k < steps; ++k) {
      void* const made = k + 1 < steps ? grids[static_cast<size_t>(k + 1)].get() : nullptr;
      all = encode_step(k, grid(k), grid(k + 1), made, codes) && all;
      grids[static_cast<size_t>(k)].reset();
    }
    return all;
  }

  // Makes the elements of codes, which it changes.
  void decode(uint8_t* codes, void* target) {
    const int steps = prediction_.steps;
    std::unique_ptr<uint8_t[]> other;
    if (steps > 0) other = allocated<uint8_t>(prediction_.grid(steps - 1).count() * item_, "a grid");
    // The last step goes to the target, the one before it to other memory, and so on.
    const auto grid = [&](int k) { return (steps - k) % 2 == 0 ? target : static_cast<void*>(other.get()); };
    decode_coarsest(codes, grid(0));
    for (int k = 0; k < steps; ++k) {
      const Refinement step = refinement(k);
      for_units(step.units(), step.codes(), threads_, [&](uint64_t begin, uint64_t end) {
        functions_.decode_step(job_, step, grid(k), codes + offsets_[k] * code_item_, grid(k + 1), begin, end);
        return true;
      });
    }
  }

 private:
  double scaled(uint8_t scale) const { return job_.bound * scale / full_scale; }

  Refinement refinement(int k) const {
    const Axes fine = prediction_.grid(k + 1);
    const Step& step = prediction_.step[k];
    return {fine.outer(step.axis), fine.sizes[step.axis], fine.inner(step.axis), step.kind, scaled(step.scale)};
  }

  void coarsen(int k, const void* fine, void* coarse) {
    const Refinement step = refinement(k);
    for_units(step.units(), step.codes(), threads_, [&](uint64_t begin, uint64_t end) {
      functions_.coarsen(job_, step, fine, coarse, begin, end);
      return true;
    });
  }

  bool encode_step(int k, const void* coarse, const void* fine, void* made, uint8_t* codes) {
    const Refinement step = refinement(k);
    std::atomic<bool> all{true};
    for_units(step.units(), step.codes(), threads_, [&](uint64_t begin, uint64_t end) {
      if (!functions_.encode_step(job_, step, coarse, fine, made, codes + offsets_[k] * code_item_, begin, end))
        all = false;
      return true;
    });
    return all;
  }

  bool encode_coarsest(const void* source, void* made, uint8_t* codes) {
    const Axes grid = prediction_.grid(0);
    const uint64_t size = grid.sizes[max_axes - 1];
    std::atomic<bool> all{true};
    for_units(grid.count() / size, grid.count(), threads_, [&](uint64_t begin, uint64_t end) {
      if (!functions_.encode_lines(job_, scaled(prediction_.coarse_scale), size, source, made, codes, begin, end))
        all = false;
      return true;
    });
    each_difference(grid, [&](int axis) { change_differences(true, grid, axis, codes); });
    return all;
  }

  void decode_coarsest(uint8_t* codes, void* target) {
    const Axes grid = prediction_.grid(0);
    const uint64_t size = grid.sizes[max_axes - 1];
    each_difference(grid, [&](int axis) { change_differences(false, grid, axis, codes); });
    for_units(grid.count() / size, grid.count(), threads_, [&](uint64_t begin, uint64_t end) {
      functions_.decode_lines(job_, scaled(prediction_.coarse_scale), size, codes, target, begin, end);
      return true;
    });
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
      return true;
    });
  }

  const PredictionJob& job_;
  const Prediction& prediction_;
  int threads_;
  const PredictionFunctions& functions_;
  uint64_t item_, code_item_;
  uint64_t offsets_[max_steps];  // of each step's codes
};

// Encodes the elements that must be kept exactly to what is behind `payload`; returns the bytes, or 0 where they cannot
// be told from absent ones.
uint64_t encode_exact(const EncodeJob& job, const PredictionJob& prediction_job, Predicted& predicted, uint8_t* codes,
                      std::unique_ptr<uint8_t[]>& payload, int threads) {
  const uint64_t count = job.plan.count;
  const auto made = allocated<uint8_t>(count * (job.plan.element.width / 8), "decoded elements");
  predicted.decode(codes, made.get());
  std::atomic<bool> is_ambiguous{false};
  const uint64_t rows = ceil_div(count, lanes_per_row);
  for_units(rows, count, threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * lanes_per_row, last = std::min(end * lanes_per_row, count);
    if (isa().prediction.find_exact(prediction_job, job.source, made.get(), first, last - first).is_ambiguous)
      is_ambiguous = true;
    return true;
  });
  if (is_ambiguous) return 0;
  const Plan plan = make_plan(job.plan.element, count);
  payload = allocated<uint8_t>(capacity_of_groups(plan.element, count) + 8, "exact elements");
  return encode_array(plan, codes_codec(job.settings.fast), made.get(), payload.get(), 0, threads);
}

uint64_t encode_chosen(const EncodeJob& job, const PredictionJob& prediction_job, const Prediction& chosen,
                       uint8_t* payload, uint64_t capacity, int threads) {
  const uint64_t count = job.plan.count;
  const Plan plan = make_codes_plan(job.plan.element, count);
  const auto codes = allocated<uint8_t>(count * (plan.element.width / 8), "codes");
  Predicted predicted(prediction_job, chosen, threads);
  const bool all = predicted.encode(job.source, codes.get());
  const auto coded = allocated<uint8_t>(capacity_of_groups(plan.element, count), "coded codes");
  PredictedHeader header{job.bound, 0, static_cast<uint8_t>(chosen.steps), chosen.differences, chosen.coarse_scale, 0,
                         chosen.axes, 0, 0};
  header.codes_bytes = encode_array(plan, codes_codec(job.settings.fast), codes.get(), coded.get(), 0, threads);
  std::unique_ptr<uint8_t[]> exact;
  if (!all) {
    header.exact_bytes = encode_exact(job, prediction_job, predicted, codes.get(), exact, threads);
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
    exact = codes + before;
    return before <= left && header.exact_bytes == left - before
               ? nullptr
               : "payload length: not that of header, steps, codes and exact elements";
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
  Prediction chosen;
  if (!isa().prediction.choose(prediction_job, axes, job.source, chosen)) return 0;
  return encode_chosen(job, prediction_job, chosen, payload, capacity, threads);
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
  const Codec codec = codes_codec(false);
  const Plan plan = make_codes_plan(element, count);
  const auto codes = allocated<uint8_t>(count * (plan.element.width / 8), "codes");
  if (!decode_array(plan, codec, parts.codes, parts.header.codes_bytes, codes.get(), threads)) return false;
  const GroupSettings settings{};
  const PredictionJob job{element, settings, parts.header.bound};
  Predicted(job, parts.prediction, threads).decode(codes.get(), target);
  if (parts.header.exact_bytes == 0) return true;
  const uint64_t item = element.width / 8;
  const auto exact = allocated<uint8_t>(count * item, "exact elements");
  if (!decode_array(make_plan(element, count), codec, parts.exact, parts.header.exact_bytes, exact.get(), threads))
    return false;
  return for_units(ceil_div(count, lanes_per_row), count, threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * lanes_per_row, last = std::min(end * lanes_per_row, count);
    isa().prediction.put_exact(job, exact.get(), target, first, last - first);
    return true;
  });
}

}  // namespace arrcomp::cpu
