// The payload of a predicted array: written and checked here alone (FORMAT.md, section 9.1). Shared by host and device.
#pragma once
#include "stream/codec.h"
#include "stream/payload.h"
#include "stream/prediction.h"

namespace arrcomp {

// Whether a payload is that of a predicted array: no other has 0 chunks in a group.
ARRCOMP_SHARED bool is_predicted(const uint8_t* payload, uint64_t length, uint64_t count) {
  if (length < payload_header_bytes || count == 0) return false;
  PayloadHeader header;
  memcpy(&header, payload, sizeof header);
  return header.chunks_per_group == 0;
}
inline bool is_predicted(const Codec& codec, const uint8_t* payload, uint64_t length, uint64_t count) {
  return has_predictor(codec) && is_predicted(payload, length, count);
}

ARRCOMP_SHARED bool is_by_columns(const PredictedHeader& header) { return (header.differences & columns_flag) != 0; }

ARRCOMP_SHARED bool has_multiples(const PredictedHeader& header) {
  return !is_by_columns(header) && (header.differences >> multiples_shift & 1) != 0;
}

// Whether the header is one of columns, as far as it says more of an array that is predicted.
ARRCOMP_SHARED bool are_columns(const PredictedHeader& header) {
  const int axes = header.differences & ~columns_flag;
  const bool is_band = 0 < header.coarse_scale && header.coarse_scale <= max_band;
  return 0 < axes && axes < max_axes && is_band && header.steps == 0 && header.exact_bytes == 0;
}

// Whether the header, its steps and multiples are ones of such elements.
ARRCOMP_SHARED bool is_prediction(const Element& element, const PredictedHeader& header, const Step* steps,
                                  const Multiples& multiples, uint64_t count) {
  const bool is_lossless = header.bound == 0;
  const auto is_scale = [](uint16_t scale) { return scale > 0 && scale <= full_scale; };
  if (!is_predictable(element) || header.mark != 0 || header.steps > max_steps) return false;
  if (is_by_columns(header) ? !are_columns(header) : !is_scale(header.coarse_scale)) return false;
  if (!header.axes.have(count)) return false;
  if (has_multiples(header) && !(is_lossless && are_multiples(element, multiples))) return false;
  if (!is_lossless && !(is_predictable(element, header.bound) && header.bound <= 1.7976931348623157e308)) return false;
  Axes grid = header.axes;
  for (int k = header.steps; k-- > 0;) {
    const Step& step = steps[k];
    if (step.axis >= max_axes || !step.kind.is_known() || !is_scale(step.scale)) return false;
    uint64_t& size = grid.sizes[step.axis];
    if (size < 2) return false;
    size = (size + 1) / 2;
  }
  return true;
}

// A payload's parts, checked but for the groups in them.
struct PredictedParts {
  PredictedHeader header;
  Prediction prediction;
  const uint8_t *codes, *exact;

  // What is corrupt, or null. Reads nothing but headers and steps.
  ARRCOMP_SHARED const char* read_head(const Element& element, const uint8_t* payload, uint64_t length,
                                       uint64_t count) {
    if (length < sizeof header) return "payload length: shorter than the header of a prediction";
    memcpy(&header, payload, sizeof header);
    if (header.steps > max_steps || codes_offset(header.steps, has_multiples(header)) > length)
      return "steps: more than the payload has room for";
    prediction.axes = header.axes;
    const bool has_columns = is_by_columns(header);
    prediction.column_axes = has_columns ? header.differences & (columns_flag - 1) : 0;
    prediction.band = has_columns ? header.coarse_scale : 0;
    prediction.differences = has_columns ? 0 : header.differences & ((1 << repeats_shift) - 1);
    prediction.repeats = has_columns ? 0 : header.differences >> repeats_shift & (max_axes - 1);
    prediction.has_wide_groups = false;
    prediction.coarse_scale = header.coarse_scale;
    prediction.steps = header.steps;
    memcpy(prediction.step, payload + sizeof header, header.steps * sizeof(Step));
    prediction.multiples = {};
    if (has_multiples(header))
      memcpy(&prediction.multiples, payload + multiples_offset(header.steps), sizeof(Multiples));
    if (!is_prediction(element, header, prediction.step, prediction.multiples, count))
      return "prediction: not one of this data type and number of elements";
    codes = payload + prediction.codes_offset();
    const uint64_t left = length - prediction.codes_offset();
    if (header.codes_bytes > left) return "codes: longer than the payload";
    PayloadHeader codes_header{};
    if (header.codes_bytes >= sizeof codes_header) memcpy(&codes_header, codes, sizeof codes_header);
    prediction.has_wide_groups = codes_header.chunks_per_group == max_chunks_of_codes;
    if (header.exact_bytes == 0)
      return header.codes_bytes == left ? nullptr : "payload length: not that of header, steps and codes";
    const uint64_t before = round_up(header.codes_bytes, 8);
    if (before > left || header.exact_bytes != left - before)
      return "payload length: not that of header, steps, codes and exact elements";
    exact = codes + before;
    return nullptr;
  }

  // The same, and whether exact elements are kept without loss, and columns within the bound.
  ARRCOMP_SHARED const char* read(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
    if (const char* fault = read_head(element, payload, length, count)) return fault;
    if (prediction.is_by_columns())
      return bound_of(codes, header.codes_bytes) == header.bound ? nullptr : "bound of the columns: not the array's";
    return bound_of(exact, header.exact_bytes) == 0 ? nullptr : "bound of the exact elements: not 0";
  }

 private:
  // That of a payload; of none 0.
  ARRCOMP_SHARED static double bound_of(const uint8_t* payload, uint64_t length) {
    PayloadHeader header{};
    if (length >= sizeof header) memcpy(&header, payload, sizeof header);
    return header.bound;
  }
};

// Where parts of these lengths stand, and how long the payload is.
struct PredictedPlaces {
  uint64_t codes, exact, length;

  ARRCOMP_SHARED PredictedPlaces(const Prediction& prediction, uint64_t codes_bytes, uint64_t exact_bytes)
      : codes(prediction.codes_offset()),
        exact(codes + round_up(codes_bytes, 8)),
        length(exact_bytes == 0 ? codes + codes_bytes : exact + exact_bytes) {}
};

// Writes header, steps and multiples, and what stands between the parts.
ARRCOMP_SHARED void write_predicted_head(const Prediction& prediction, double bound, uint64_t codes_bytes,
                                         uint64_t exact_bytes, uint8_t* payload) {
  const PredictedPlaces places(prediction, codes_bytes, exact_bytes);
  const bool has_columns = prediction.is_by_columns();
  const int modes = has_columns ? columns_flag | prediction.column_axes
                                : prediction.differences | prediction.repeats << repeats_shift |
                                      (prediction.multiples.is_given() ? 1 : 0) << multiples_shift;
  const PredictedHeader header{bound,
                               0,
                               static_cast<uint8_t>(prediction.steps),
                               static_cast<uint8_t>(modes),
                               has_columns ? prediction.band : prediction.coarse_scale,
                               prediction.axes,
                               codes_bytes,
                               exact_bytes};
  const auto steps = static_cast<uint64_t>(prediction.steps) * sizeof(Step),
             multiples = multiples_offset(prediction.steps);
  memcpy(payload, &header, sizeof header);
  memcpy(payload + sizeof header, prediction.step, steps);
  for (uint64_t at = sizeof header + steps; at < multiples; ++at) payload[at] = 0;
  if (prediction.multiples.is_given()) memcpy(payload + multiples, &prediction.multiples, sizeof(Multiples));
  if (exact_bytes == 0) return;
  for (uint64_t at = places.codes + codes_bytes; at < places.exact; ++at) payload[at] = 0;
}

}  // namespace arrcomp
