// Predicted arrays on the CPU (FORMAT.md, section 9).
#pragma once
#include "cpu/driver.h"
#include "stream/predicted_payload.h"

namespace arrcomp::cpu {

// Of the payloads in a predicted one; decoding asks for nothing else.
inline const Codec lossless_codec{LosslessSettings{false, Predictor::none}};

// What decodes these parts.
inline PredictionJob job_of(const Element& element, const GroupSettings& settings, const PredictedParts& parts) {
  return {element, settings, parts.header.bound, parts.prediction.multiples, parts.prediction.mask};
}

// Encodes to `payload`, of `capacity` bytes; returns the payload's length, or 0 where prediction is not worth it.
uint64_t encode_predicted(const EncodeJob& job, const Axes& axes, uint8_t* payload, uint64_t capacity, int threads);

// Names what is corrupt in header, steps or directories; null if nothing is.
const char* predicted_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_predicted(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count, void* target,
                      int threads);

}  // namespace arrcomp::cpu
