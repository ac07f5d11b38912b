// Predicted arrays on the CPU (FORMAT.md, section 9).
#pragma once
#include "cpu/driver.h"
#include "stream/predicted_payload.h"

namespace arrcomp::cpu {

// Of the payloads in a predicted one; decoding asks for nothing else.
inline const Codec lossless_codec{LosslessSettings{false, Predictor::none}};

// Encodes to `payload`, of `capacity` bytes; returns the payload's length, or 0 where prediction is not worth it.
uint64_t encode_predicted(const EncodeJob& job, const Axes& axes, uint8_t* payload, uint64_t capacity, int threads);

// Names what is corrupt in header, steps or directories; null if nothing is.
const char* predicted_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_predicted(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count, void* target,
                      int threads);

// Leaves out exact elements that key slices have too, or puts them back: of `count` elements from `first` on, whole slices
// of which the first is a key slice.
void change_repeats(bool leave_out, const PredictionJob& job, const Prediction& prediction, uint64_t first,
                    uint64_t count, uint8_t* exact, int threads);

}  // namespace arrcomp::cpu
