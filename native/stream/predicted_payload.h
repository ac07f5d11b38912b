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
  return !is_by_columns(header) && (header.differences & multiples_flag) != 0;
}
ARRCOMP_SHARED bool has_mask(const PredictedHeader& header) {
  return !is_by_columns(header) && (header.differences & mask_flag) != 0;
}

ARRCOMP_SHARED bool has_first_axis(const PredictedHeader& header) {
  return !is_by_columns(header) && (header.differences & first_axis_flag) != 0;
}

// Whether the header is one of columns, as far as it says more of an array that is predicted.
ARRCOMP_SHARED bool are_columns(const PredictedHeader& header) {
  const int axes = header.differences & ~columns_flag;
  const bool is_band = 0 < header.coarse_scale && header.coarse_scale <= max_band;
  return 0 < axes && axes < max_axes - 1 && is_band && header.steps == 0 && header.exact_bytes == 0;
}

// Whether the header and what it was read to are of such elements.
ARRCOMP_SHARED bool is_prediction(const Element& element, const PredictedHeader& header, const Prediction& prediction,
                                  uint64_t count) {
  const bool is_lossless = header.bound == 0;
  const auto is_scale = [](uint16_t scale) { return scale > 0 && scale <= full_scale; };
  if (!is_predictable(element) || header.mark != 0 || header.steps > max_steps) return false;
  if (is_by_columns(header) ? !are_columns(header) : !is_scale(header.coarse_scale)) return false;
  if (has_first_axis(header) != prediction.has_first_axis()) return false;
  if (has_mask(header) && !element.is_float()) return false;
  if (!prediction.axes.have(count)) return false;
  if (has_multiples(header) && !(is_lossless && are_multiples(element, prediction.multiples))) return false;
  if (!is_lossless && !(is_predictable(element, header.bound) && header.bound <= 1.7976931348623157e308)) return false;
  Grid grid(prediction.axes);
  for (int k = header.steps; k-- > 0;) {
    const Step& step = prediction.step[k];
    if (step.axis >= max_axes || !step.kind.is_known() || !is_scale(step.scale)) return false;
    const uint64_t size = grid.size(step.axis);
    if (size < 2 || (step.kind.keeps_last() && !Interpolation::may_keep_last(size))) return false;
    grid.coarsen(step);
  }
  return true;
}

// Whether it is a mask of an array of such elements.
ARRCOMP_SHARED bool is_mask(const Element& element, const Axes& axes, const MaskHeader& mask) {
  return mask.axes < axis_sets && MaskGrid(axes).has_axes(static_cast<int>(mask.axes)) &&
         (element.width == 64 || mask.fill >> element.width == 0);
}

// A payload's parts, checked but for the groups in them.
struct PredictedParts {
  PredictedHeader header;
  Prediction prediction;
  const uint8_t *codes, *mask, *exact;
  uint64_t mask_bytes;  // of the payload of the mask; 0 where there is none

  // What is corrupt, or null. Reads nothing but headers and steps.
  ARRCOMP_SHARED const char* read_head(const Element& element, const uint8_t* payload, uint64_t length,
                                       uint64_t count) {
    if (length < sizeof header) return "payload length: shorter than the header of a prediction";
    memcpy(&header, payload, sizeof header);
    if (header.steps > max_steps || places().weights > length) return "steps: more than the payload has room for";
    prediction.axes = axes(payload);
    const bool has_columns = is_by_columns(header);
    prediction.column_axes = has_columns ? header.differences & (columns_flag - 1) : 0;
    prediction.band = has_columns ? header.coarse_scale : 0;
    prediction.differences = has_columns ? 0 : header.differences & (mask_flag - 1);
    prediction.mask = {};
    prediction.has_wide_groups = false;
    prediction.coarse_scale = header.coarse_scale;
    prediction.steps = header.steps;
    if (!read_steps(payload, length)) return "weights of steps: more than the payload has room for";
    prediction.multiples = {};
    if (has_multiples(header)) {
      const uint64_t at = places(prediction.weighted_steps()).multiples;
      if (length - at < sizeof(Multiples)) return "multiples: more than the payload has room for";
      memcpy(&prediction.multiples, payload + at, sizeof(Multiples));
    }
    if (!is_prediction(element, header, prediction, count))
      return "prediction: not one of this data type and number of elements";
    codes = payload + prediction.codes_offset();
    const uint64_t left = length - prediction.codes_offset();
    if (header.codes_bytes > left) return "codes: longer than the payload";
    PayloadHeader codes_header{};
    if (header.codes_bytes >= sizeof codes_header) memcpy(&codes_header, codes, sizeof codes_header);
    prediction.has_wide_groups = codes_header.chunks_per_group == max_chunks_of_codes;
    return nullptr;
  }

  // All parts, and whether mask and exact elements are kept without loss, and columns within the bound.
  ARRCOMP_SHARED const char* read(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
    if (const char* fault = read_head(element, payload, length, count)) return fault;
    if (const char* fault = read_parts(element, length - prediction.codes_offset())) return fault;
    if (prediction.is_by_columns())
      return bound_of(codes, header.codes_bytes) == header.bound ? nullptr : "bound of the columns: not the array's";
    if (bound_of(mask, mask_bytes) != 0) return "bound of the mask: not 0";
    return bound_of(exact, header.exact_bytes) == 0 ? nullptr : "bound of the exact elements: not 0";
  }

  // What stands behind the codes.
  ARRCOMP_SHARED uint64_t bytes_behind_codes(uint64_t length) const {
    return length - prediction.codes_offset() - header.codes_bytes;
  }

 private:
  ARRCOMP_SHARED HeadPlaces places(int weighted = 0) const {
    return HeadPlaces(has_first_axis(header), header.steps, weighted);
  }

  ARRCOMP_SHARED Axes axes(const uint8_t* payload) const {
    Axes read;
    read.sizes[0] = 1;
    if (has_first_axis(header)) memcpy(&read.sizes[0], payload + sizeof header, sizeof read.sizes[0]);
    memcpy(&read.sizes[1], header.sizes, sizeof header.sizes);
    return read;
  }

  // The steps with their weights; false if there is no room for these and what is behind them up to a multiple of 8.
  ARRCOMP_SHARED bool read_steps(const uint8_t* payload, uint64_t length) {
    uint64_t at = places().weights;
    for (int k = 0; k < header.steps; ++k) {
      StoredStep stored;
      Weights weights{};
      memcpy(&stored, payload + places().steps + static_cast<uint64_t>(k) * sizeof stored, sizeof stored);
      if (Interpolation(stored.kind, weights).is_weighted()) {
        if (length - at < sizeof weights) return false;
        memcpy(&weights, payload + at, sizeof weights);
        at += sizeof weights;
      }
      prediction.step[k] = {axis_of_stored(stored.axis), {stored.kind, weights}, stored.scale};
    }
    return round_up(at, 8) <= length;
  }

  // Where parts are in the `left` bytes from the codes on.
  ARRCOMP_SHARED const char* read_parts(const Element& element, uint64_t left) {
    uint64_t end = header.codes_bytes;
    mask_bytes = 0;
    if (has_mask(header))
      if (const char* fault = read_mask(element, left, end)) return fault;
    if (header.exact_bytes == 0)
      return end == left ? nullptr : "payload length: not that of header, steps, codes and mask";
    const uint64_t before = round_up(end, 8);
    if (before > left || header.exact_bytes != left - before)
      return "payload length: not that of header, steps, codes, mask and exact elements";
    exact = codes + before;
    return nullptr;
  }

  // The mask behind `end` of the `left` bytes from the codes on; `end` moves behind it.
  ARRCOMP_SHARED const char* read_mask(const Element& element, uint64_t left, uint64_t& end) {
    MaskHeader head;
    const uint64_t at = round_up(end, 8);
    if (at > left || left - at < sizeof head) return "mask: its header is behind the payload's end";
    memcpy(&head, codes + at, sizeof head);
    if (!is_mask(element, prediction.axes, head)) return "mask: not one of this data type and axes";
    const uint64_t begin = at + sizeof head;
    if (head.bytes == 0 || head.bytes > left - begin) return "mask: longer than the payload, or empty";
    prediction.mask = {head.fill, static_cast<uint8_t>(head.axes), true};
    mask = codes + begin;
    mask_bytes = head.bytes;
    end = begin + mask_bytes;
    return nullptr;
  }

  // That of a payload; of none 0.
  ARRCOMP_SHARED static double bound_of(const uint8_t* payload, uint64_t length) {
    PayloadHeader header{};
    if (length >= sizeof header) memcpy(&header, payload, sizeof header);
    return header.bound;
  }
};

// Lengths of payloads; 0 of one that is not there.
struct PredictedBytes {
  uint64_t codes, mask, exact;
};

// Where parts of these lengths stand, and how long the payload is.
struct PredictedPlaces {
  uint64_t codes, mask, exact, length;

  ARRCOMP_SHARED PredictedPlaces(const Prediction& prediction, const PredictedBytes& bytes)
      : codes(prediction.codes_offset()) {
    uint64_t end = codes + bytes.codes;
    mask = round_up(end, 8) + sizeof(MaskHeader);
    if (bytes.mask > 0) end = mask + bytes.mask;
    exact = round_up(end, 8);
    length = bytes.exact > 0 ? exact + bytes.exact : end;
  }
};

// Writes the steps, their weights, and zeros up to a multiple of 8, whose place it returns.
ARRCOMP_SHARED uint64_t write_steps(const Prediction& prediction, uint8_t* payload) {
  const HeadPlaces places = prediction.places();
  uint64_t at = places.weights;
  for (int k = 0; k < prediction.steps; ++k) {
    const Step& step = prediction.step[k];
    const StoredStep stored{stored_axis(step.axis), step.kind.bits(), step.scale};
    memcpy(payload + places.steps + static_cast<uint64_t>(k) * sizeof stored, &stored, sizeof stored);
    if (!step.kind.is_weighted()) continue;
    const Weights weights = step.kind.weights();
    memcpy(payload + at, &weights, sizeof weights);
    at += sizeof(Weights);
  }
  for (; at % 8 != 0; ++at) payload[at] = 0;
  return at;
}

// Writes header, steps and multiples, the mask's header, and what stands between the parts.
ARRCOMP_SHARED void write_predicted_head(const Prediction& prediction, double bound, const PredictedBytes& bytes,
                                         uint8_t* payload) {
  const PredictedPlaces places(prediction, bytes);
  const bool has_columns = prediction.is_by_columns(), has_mask = bytes.mask > 0;
  const int modes = has_columns ? columns_flag | prediction.column_axes
                                : prediction.differences | (has_mask ? mask_flag : 0) |
                                      (prediction.has_first_axis() ? first_axis_flag : 0) |
                                      (prediction.multiples.is_given() ? multiples_flag : 0);
  Axes axes = prediction.axes;
  if (has_columns) axes.sizes[1] *= axes.sizes[0];
  const PredictedHeader header{bound,
                               0,
                               static_cast<uint8_t>(prediction.steps),
                               static_cast<uint8_t>(modes),
                               has_columns ? prediction.band : prediction.coarse_scale,
                               {axes.sizes[1], axes.sizes[2], axes.sizes[3], axes.sizes[4]},
                               bytes.codes,
                               bytes.exact};
  memcpy(payload, &header, sizeof header);
  if (prediction.has_first_axis()) memcpy(payload + sizeof header, &axes.sizes[0], sizeof axes.sizes[0]);
  const uint64_t multiples = write_steps(prediction, payload);
  if (prediction.multiples.is_given()) memcpy(payload + multiples, &prediction.multiples, sizeof(Multiples));
  uint64_t end = places.codes + bytes.codes;
  if (has_mask) {
    const MaskHeader mask{prediction.mask.fill, prediction.mask.axes, bytes.mask};
    const uint64_t at = places.mask - sizeof mask;
    for (; end < at; ++end) payload[end] = 0;
    memcpy(payload + at, &mask, sizeof mask);
    end = places.mask + bytes.mask;
  }
  if (bytes.exact == 0) return;
  for (; end < places.exact; ++end) payload[end] = 0;
}

}  // namespace arrcomp
