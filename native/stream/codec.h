// All codecs as the back ends know them: what is asked for, and how large payloads get.
#pragma once
#include <span>
#include <vector>

#include "stream/base_delta.h"
#include "stream/buckets.h"
#include "stream/settings.h"

namespace arrcomp {

// Ids of codecs in streams.
enum class CodecId : int { lossless = 1, error_bounded = 2, qsgd = 3, base_delta = 7 };

struct Codec {
  CodecId id;
  Settings settings;  // lossless, error_bounded
  QsgdSettings qsgd;
  BaseDeltaSettings base_delta = {};

  bool is_bucketed() const { return id == CodecId::qsgd; }
};

// Random numbers follow from a seed and an element's index. The seed is `value`, or where `at` is not null the number
// there, in the memory space of the arrays.
struct Seed {
  uint64_t value;
  const uint64_t* at;
};

// A codec from its id and the numbers that its Python class gives (core_parameters). False where these are not of any
// codec, or where it does not take this element.
inline bool codec_of(int id, std::span<const double> p, Codec& codec) {
  const auto is_flag = [](double x) { return x == 0 || x == 1; };
  const auto is_integer = [](double x, double least, double most) {
    return x >= least && x <= most && x == static_cast<double>(static_cast<int64_t>(x));
  };
  codec = {static_cast<CodecId>(id), {BoundKind::lossless, 0.0, false}, {}, {}};
  switch (codec.id) {
    case CodecId::lossless:
      if (p.size() != 1 || !is_flag(p[0])) return false;
      codec.settings.fast = p[0] != 0;
      return true;
    case CodecId::error_bounded:
      if (p.size() != 3 || !is_integer(p[0], 1, 3) || !(p[1] > 0 && p[1] <= 1.7976931348623157e308)) return false;
      codec.settings = {static_cast<BoundKind>(static_cast<int>(p[0])), p[1], p[2] != 0};
      return is_flag(p[2]);
    case CodecId::qsgd:
      if (p.size() != 5 || !is_integer(p[0], 1, 8) || !is_integer(p[1], 16, 0x1p40) || !is_integer(p[2], 0, 2))
        return false;
      codec.qsgd = {static_cast<int>(p[0]), static_cast<uint64_t>(p[1]), static_cast<Norm>(static_cast<int>(p[2])),
                    p[3] != 0, p[4] != 0};
      return is_flag(p[3]) && is_flag(p[4]);
    case CodecId::base_delta: return BaseDeltaSettings::read(p, codec.base_delta);
  }
  return false;
}

// Whether the codec takes elements of this type.
constexpr bool takes(const Codec& codec, const Element& element) {
  if (codec.id == CodecId::base_delta) return codec.base_delta.takes(element);
  return codec.id == CodecId::lossless || element.is_quantizable;
}

// A part of the longest payload: `bytes` for every `outer` begun of the rows (every `inner` elements begun) times
// `multiplier`. No branches, so that the symbolic shapes of compilers can follow the sum.
struct CapacityTerm {
  uint64_t inner, multiplier, outer, bytes;

  constexpr uint64_t of(uint64_t count) const {
    return inner == 0 ? bytes : ceil_div(ceil_div(count, inner) * multiplier, outer) * bytes;
  }
};

// The parts of the longest payload, a multiple of 8 in all; none where it is no such sum.
inline std::vector<CapacityTerm> capacity_terms(const Codec& codec, const Element& element) {
  if (codec.is_bucketed()) {
    const QsgdSettings& s = codec.qsgd;
    if (s.skip_incomplete) return {};
    const uint64_t numbers = static_cast<uint64_t>(s.numbers()) * number_bytes(element);
    return {{s.bucket_size, numbers, 8, 8}, {lanes_per_row, static_cast<uint64_t>(s.bits), 16, 64}};
  }
  // Of a chunk: its header and widths, what packing rows of less than 32 bits rounds up, and, as if every chunk were a
  // group, the coder's states and an entry of the directory with its padding.
  const uint64_t rounding = element.width == 8 ? 32 : 0;
  const uint64_t chunk = round_up(4 + widths_bytes(rows_per_chunk) + rounding + states_bytes + 8, 8);
  return {{0, 0, 0, payload_head_bytes},
          {lanes_per_row, 1, 1, uint64_t{element.width} * lanes_per_row / 8},
          {chunk_size, 1, 1, chunk}};
}

// No payload of so many elements is longer; those of bucketed codecs have this length.
inline uint64_t capacity(const Codec& codec, const Element& element, uint64_t count) {
  if (codec.is_bucketed()) return make_bucket_plan(codec.qsgd, element, count).length;
  uint64_t bytes = 0;
  for (const CapacityTerm& term : capacity_terms(codec, element)) bytes += term.of(count);
  return bytes;
}

}  // namespace arrcomp
