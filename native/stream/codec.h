// All codecs as the back ends know them: what is asked for, and how large payloads get.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "stream/codec_table.h"

namespace arrcomp {

namespace detail {

template <class None, class... Settings>
struct VariantOf {
  using type = std::variant<Settings...>;
};

}  // namespace detail

// What a codec is asked for.
#define ARRCOMP_ADD_SETTINGS(id, name, Type, text) , Type##Settings
using AnySettings = detail::VariantOf<void ARRCOMP_CODECS(ARRCOMP_ADD_SETTINGS)>::type;
#undef ARRCOMP_ADD_SETTINGS

template <class Settings>
concept Grouped = requires(const Settings& settings) { settings.group_settings(); };
template <class Settings>
concept Bucketed = requires(const Settings& settings, const Element& element) { settings.layout(element); };

#define ARRCOMP_CHECK_GROUPED(id, name, Type, text) static_assert(Grouped<Type##Settings> && !Bucketed<Type##Settings>);
#define ARRCOMP_CHECK_BUCKETED(id, name, Type, text) \
  static_assert(Bucketed<Type##Settings> && !Grouped<Type##Settings>);
ARRCOMP_GROUPED_CODECS(ARRCOMP_CHECK_GROUPED)
ARRCOMP_BUCKETED_CODECS(ARRCOMP_CHECK_BUCKETED)
#undef ARRCOMP_CHECK_GROUPED
#undef ARRCOMP_CHECK_BUCKETED

struct Codec {
  AnySettings settings;
};

// Random numbers follow from a seed and an element's index. The seed is `value`, or where `at` is not null the number
// there, in the memory space of the arrays.
struct Seed {
  uint64_t value;
  const uint64_t* at;
};

// A codec from its id and its parameters as numbers. False where these are not of any codec.
inline bool codec_of(int id, Reals parameters, Codec& codec) {
  switch (id) {
#define ARRCOMP_READ(number, name, Type, text) \
  case number: return read_parameters(parameters, codec.settings.emplace<Type##Settings>());
    ARRCOMP_CODECS(ARRCOMP_READ)
#undef ARRCOMP_READ
  }
  return false;
}

// Null for other codecs.
inline const BaseDeltaSettings* base_delta_of(const Codec& codec) {
  return std::get_if<BaseDeltaSettings>(&codec.settings);
}

// What a codec of groups asks for.
inline GroupSettings group_settings(const Codec& codec) {
  const auto visitor = []<class Settings>(const Settings& settings) {
    if constexpr (Grouped<Settings>) return settings.group_settings();
    return GroupSettings{};
  };
  return std::visit(visitor, codec.settings);
}

// Whether the codec predicts along axes.
inline bool has_predictor(const Codec& codec) { return group_settings(codec).predicts(); }

// Whether the codec codes arrays against others.
inline bool has_reference(const Codec& codec) { return group_settings(codec).predictor == Predictor::reference; }

// Whether payloads of such elements may be those of predicted arrays.
inline bool may_hold_predicted(const Codec& codec, const Element& element) {
  return has_predictor(codec) && is_predictable(element);
}

// Whether the codec takes elements of this type.
inline bool takes(const Codec& codec, const Element& element) {
  const auto visitor = [&](const auto& settings) {
    if constexpr (requires { settings.takes(element); }) return settings.takes(element);
    return element.is_quantizable;
  };
  return std::visit(visitor, codec.settings);
}

// Writes how the codec lays out buckets. False for codecs of groups.
inline bool bucket_layout(const Codec& codec, const Element& element, BucketLayout& layout) {
  const auto visitor = [&](const auto& settings) {
    constexpr bool is_bucketed = Bucketed<std::decay_t<decltype(settings)>>;
    if constexpr (is_bucketed) layout = settings.layout(element);
    return is_bucketed;
  };
  return std::visit(visitor, codec.settings);
}

// The moments that the codec needs of buckets.
inline Moments moments_of(const Codec& codec) {
  return std::visit(
      [](const auto& settings) {
        if constexpr (requires { settings.moments(); }) return settings.moments();
        return no_moments;
      },
      codec.settings);
}

// Whether the length of payloads follows from the number of elements.
inline bool has_fixed_rate(const Codec& codec, const Element& element) {
  BucketLayout layout;
  return bucket_layout(codec, element, layout) && !layout.byte_codes && !layout.has_extras;
}

// How codes are entropy coded: as an array of this data type, by this codec.
constexpr Element code_element = integer_element(8, false);
inline Codec code_codec() { return {LosslessSettings{}}; }

// A part of the longest payload: `bytes` for every `outer` begun of the rows (every `inner` elements begun) times
// `multiplier`. No branches, so that the symbolic shapes of compilers can follow the sum.
struct CapacityTerm {
  uint64_t inner, multiplier, outer, bytes;

  constexpr uint64_t of(uint64_t count) const {
    return inner == 0 ? bytes : ceil_div(ceil_div(count, inner) * multiplier, outer) * bytes;
  }
};

// The capacity of a payload in groups.
inline std::vector<CapacityTerm> capacity_terms(const Element& element) {
  // Of a chunk: its header and widths, what packing rows of less than 32 bits rounds up, and, as if every chunk were a
  // group, the coder's states and an entry of the directory with its padding.
  const uint64_t rounding = element.width == 8 ? 32 : 0;
  const uint64_t chunk = round_up(4 + bytes_of_tiles(rows_per_chunk) + rounding + states_bytes + 8, 8);
  return {{0, 0, 0, payload_header_bytes},
          {lanes_per_row, 1, 1, uint64_t{element.width} * lanes_per_row / 8},
          {chunk_size, 1, 1, chunk}};
}

inline uint64_t sum_of(const std::vector<CapacityTerm>& terms, uint64_t count) {
  uint64_t bytes = 0;
  for (const CapacityTerm& term : terms) bytes += term.of(count);
  return bytes;
}

inline uint64_t capacity_of_groups(const Element& element, uint64_t count) {
  return sum_of(capacity_terms(element), count);
}

inline std::vector<CapacityTerm> capacity_terms(const BucketLayout& layout, const Element& element) {
  if (layout.skip_incomplete || layout.min_count > lanes_per_row) return {};
  constexpr uint64_t any_array = uint64_t{1} << 60;
  const uint64_t bucket_size = layout.bucket_size > 0 ? layout.bucket_size : any_array;
  std::vector<CapacityTerm> terms{{0, 0, 0, layout.array_bytes}, {bucket_size, layout.bucket_bytes, 8, 8}};
  if (layout.byte_codes) {
    for (const CapacityTerm& term : capacity_terms(code_element)) terms.push_back(term);
    return terms;
  }
  terms.push_back({lanes_per_row, layout.code_bits, 16, 64});
  if (layout.has_extras) {
    terms.push_back({chunk_size, 1, 1, sizeof(uint64_t)});
    terms.push_back({lanes_per_row, layout.extra_bits, 2, 8});
  }
  // Elements that are stored as they are because they are few.
  if (layout.min_count > 0) terms.push_back({any_array, layout.min_count * (element.width / 8), 8, 8});
  return terms;
}

// The parts of the longest payload, a multiple of 8 in all; none where it is no such sum.
inline std::vector<CapacityTerm> capacity_terms(const Codec& codec, const Element& element) {
  if (BucketLayout layout; bucket_layout(codec, element, layout)) return capacity_terms(layout, element);
  std::vector<CapacityTerm> terms = capacity_terms(element);
  if (has_reference(codec)) terms.push_back({0, 0, 0, reference_header_bytes});
  return terms;
}

// The length of the longest bucketed payload.
inline uint64_t longest_length(const BucketPlan& plan) {
  if (plan.byte_codes) return plan.codes_offset + capacity_of_groups(code_element, plan.quantized);
  return plan.length + round_up(ceil_div(plan.quantized, lanes_per_row) * plan.extra_bits * 4, 8);
}

// No payload of so many elements is longer; those of fixed rate have this length.
inline uint64_t capacity(const Codec& codec, const Element& element, uint64_t count) {
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout))
    return capacity_of_groups(element, count) + (has_reference(codec) ? reference_header_bytes : 0);
  // Compilers' symbolic shapes are the sum of the terms, where there are any.
  if (layout.has_extras)
    if (const auto terms = capacity_terms(layout, element); !terms.empty()) return sum_of(terms, count);
  return longest_length(make_bucket_plan(layout, element, count));
}

// No payload in groups is shorter: every chunk takes 4 bytes, every group an entry of the directory.
inline uint64_t min_length_of_groups(uint64_t count) {
  const uint64_t chunks = ceil_div(count, chunk_size), groups = ceil_div(chunks, max_chunks_of_codes);
  return payload_header_bytes + 4 * groups + 4 * chunks;
}

// The length of the shortest payload of so many elements.
inline uint64_t min_length(const Codec& codec, const Element& element, uint64_t count) {
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout))
    return has_reference(codec) ? reference_header_bytes : min_length_of_groups(count);
  const BucketPlan plan = make_bucket_plan(layout, element, count);
  return plan.byte_codes ? plan.codes_offset + min_length_of_groups(plan.quantized) : plan.length;
}

}  // namespace arrcomp
