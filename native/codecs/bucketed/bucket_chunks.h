// Chunks of bucketed payloads on lanes: elements to codes and back, whatever parts of buckets lie in a chunk. Codecs are
// what bucket_coder.h says. FORMAT.md, section 5.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/bucketed/bucket_codes.h"
#include "codecs/bucketed/bucket_rows.h"
#include "codecs/bucketed/decode_table.h"

namespace arrcomp::ARRCOMP_ISA {

// Buckets that a chunk has parts of, at most: codecs tell if theirs have more than 16 elements.
template <class Coder>
constexpr int max_buckets_in_chunk = chunk_size / 16 + 2;
template <class Coder>
  requires(Coder::least_bucket > 16)
constexpr int max_buckets_in_chunk<Coder> = chunk_size / Coder::least_bucket + 2;

// Rows that share random words, and whether they are coded side by side.
constexpr int rows_of_block = 4;
constexpr bool codes_blocks = rows_side_by_side == rows_of_block;
// Rows of codecs that encode them together, where each step of a row waits long for the one before.
constexpr int rows_together = 2 * rows_of_block;
// Whether it takes less to do something for 32 buckets at once, or 16, than for one after the other: those that look up
// by permutations have such.
constexpr bool has_long_registers = short_lookup;

// What encoding takes of each bucket of a chunk.
template <class Coder>
struct BucketScales {
  typename Coder::Scalar scales[Coder::encode_values][max_buckets_in_chunk<Coder>];
};

// Memory that encoding a chunk needs, one for each thread or warp.
template <class Coder>
struct BucketMemory : BucketScales<Coder> {};
template <HasExtras Coder>
struct BucketMemory<Coder> : BucketScales<Coder> {
  ExtraBuffer extras;
};

struct NoTable {};

// Codecs that encode rows of scaled values together.
template <class Coder>
concept EncodesTogether =
    requires(const Coder& coder, const typename Coder::Real (&rows)[1], U32 (&codes)[1]) { coder.encode(rows, codes); };

// Codecs that find most codes of four rows together, where these are in one bucket of which they keep a table.
template <class Coder>
concept GuessesRows = Coder::guesses_rows;
template <class Coder>
struct EncodeTable : NoTable {};
template <GuessesRows Coder>
struct EncodeTable<Coder> : Coder::EncodeTable {};

// Where the parts of an array's payload are, and the settings that it is made with.
template <class Coder>
struct BucketContext {
  const BucketPlan& plan;
  const typename Coder::Settings& settings;

  ARRCOMP_METHOD Coder coder(const uint8_t* payload) const { return Coder(settings, plan.element, payload); }
};

// Writes the numbers of a bucket.
template <class Coder>
ARRCOMP_PART void store_bucket(const BucketContext<Coder>& context, const BucketStatistics& statistics,
                               const void* source, uint8_t* payload, uint64_t seed, uint64_t bucket) {
  const BucketPlan& plan = context.plan;
  const uint64_t first = bucket * plan.bucket_size, left = plan.quantized - first;
  const BucketValues values{plan.element, source, first, left < plan.bucket_size ? left : plan.bucket_size, seed};
  const Coder coder = context.coder(payload);
  const auto numbers = coder.fit(statistics, values);
  if (leader()) coder.store(payload + plan.bucket_offset(bucket), numbers);
}

template <class Coder>
class BucketChunk {
  using Real = typename Coder::Real;
  using Scalar = typename Real::scalar;
  using BucketParameters = typename Coder::BucketParameters;
  static constexpr bool looks_up = short_lookup && Tabulates<Coder>;
  using Table = std::conditional_t<looks_up, DecodeTable<Coder>, NoTable>;
  static constexpr bool takes_magnitudes = requires(const Coder& coder, Real largest) { coder.fit(largest); };
  static constexpr bool takes_extremes = has_long_registers && sizeof(Scalar) == sizeof(uint32_t) &&
                                         requires(const Coder& coder, Real low, Real high) { coder.fit(low, high); };

 public:
  ARRCOMP_METHOD BucketChunk(const BucketContext<Coder>& context, uint64_t chunk, const uint8_t* payload)
      : plan_(context.plan),
        settings_(context.settings),
        coder_(context.coder(payload)),
        first_(chunk * chunk_size),
        count_(plan_.quantized - first_ < chunk_size ? plan_.quantized - first_ : chunk_size),
        rows_(static_cast<int>((count_ + lanes_per_row - 1) / lanes_per_row)),
        bucket_(first_ / plan_.bucket_size),
        buckets_(static_cast<int>((first_ + count_ - 1) / plan_.bucket_size - bucket_) + 1) {}

  // Writes the chunk's codes, and the numbers of buckets that begin in it. Those of buckets larger than a segment are
  // in the payload already.
  ARRCOMP_METHOD void encode(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory) const {
    NoExtras none;
    encode_rows(source, payload, seed, memory, none);
  }

  // The same with the chunk's extra words to `out`, which has room for them (plan.chunk_extras()); returns their number.
  ARRCOMP_METHOD uint32_t encode(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory,
                                 uint32_t* out) const {
    ExtraWriter extras(memory.extras, out, plan_.extra_bits, plan_.code_bits);
    encode_rows(source, payload, seed, memory, extras);
    return extras.finish();
  }

  // Writes the numbers of buckets that begin in the chunk.
  ARRCOMP_METHOD void fit(const void* source, uint8_t* payload, uint64_t seed) const {
    const int earlier = bucket_ * plan_.bucket_size < first_ ? 1 : 0;
    ARRCOMP_ROLLED
    for (int b = earlier; b < buckets_; ++b) fit(source, payload, seed, bucket_ + static_cast<uint64_t>(b));
  }

  ARRCOMP_METHOD void decode(const uint8_t* payload, void* target) const {
    NoExtras none;
    decode_rows(payload, target, none);
  }

  // The same with the chunk's extra words; false where these are too many or too few.
  ARRCOMP_METHOD bool decode(const uint8_t* payload, void* target, const uint32_t* words, uint64_t count,
                             ExtraQueue& memory) const {
    ExtraReader extras(memory, words, count, plan_.extra_bits);
    decode_rows(payload, target, extras);
    return extras.is_at_end();
  }

 private:
  template <class Extras>
  ARRCOMP_METHOD void encode_rows(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory,
                                  Extras& extras) const {
    const bool simple = prepare(source, payload, seed, memory);
    if constexpr (GuessesRows<Coder>) {
      if (coder_.is_stochastic()) return encode_apart<true>(source, payload, seed, simple, memory, extras);
      encode_apart<false>(source, payload, seed, simple, memory, extras);
    } else {
      encode_blocks([this]() ARRCOMP_LAMBDA { return coder_.is_stochastic(); }, source, payload, seed, simple, memory,
                    extras);
    }
  }

  // Where both ways take many registers, each is a function of its own.
  template <bool is_stochastic, class Extras>
  ARRCOMP_APART void encode_apart(const void* source, uint8_t* payload, uint64_t seed, bool simple,
                                  const BucketMemory<Coder>& memory, Extras& extras) const {
    encode_blocks(std::bool_constant<is_stochastic>{}, source, payload, seed, simple, memory, extras);
  }

  // `is_stochastic()`: what the coder says, perhaps known to the compiler.
  template <class IsStochastic, class Extras>
  ARRCOMP_METHOD void encode_blocks(IsStochastic is_stochastic, const void* source, uint8_t* payload, uint64_t seed,
                                    bool simple, const BucketMemory<Coder>& memory, Extras& extras) const {
    const uint8_t* const elements = element_at(plan_.element, source, first_);
    BucketRows buckets(first_, plan_.bucket_size, buckets_);
    CodeWriter<Coder, Extras> writer(plan_, payload + codes_at(), extras);
    EncodeTable<Coder> table;
    const auto scale_of = [&](int bucket, Scalar(&scale)[Coder::encode_values]) ARRCOMP_LAMBDA {
      for (int i = 0; i < Coder::encode_values; ++i) scale[i] = memory.scales[i][bucket];
      return simple;
    };
    for (int r = 0; r < rows_; r += rows_of_block) {
      if (has_statistics()) prefetch_block(elements, r);
      if constexpr (EncodesTogether<Coder> && codes_blocks) {
        if (simple && are_whole(r, rows_together) && are_in_one_bucket(r, rows_together, buckets)) {
          constexpr Nearest nearest[rows_together]{};
          encode_some<rows_together, true>(elements, r, lanes_per_row, true, nearest, buckets, scale_of, writer);
          r += rows_together - rows_of_block;
          if (has_statistics()) prefetch_block(elements, r);
          continue;
        }
      }
      if (is_stochastic()) {
        const RandomWords random = random_rows(seed, (first_ / lanes_per_row + static_cast<uint64_t>(r)) / 4);
        encode_block(elements, r, simple, random.word, buckets, scale_of, writer, table);
      } else {
        constexpr Nearest nearest[rows_of_block]{};
        encode_block(elements, r, simple, nearest, buckets, scale_of, writer, table);
      }
      if constexpr (HasExtras<Coder>) {
        if ((r + rows_of_block) % rows_between_flushes == 0) extras.flush();
      }
    }
    writer.finish();
  }

  // Whether chunks look at their elements before they encode them.
  ARRCOMP_METHOD bool has_statistics() const { return plan_.bucket_bytes > 0 && plan_.bucket_size <= segment_size; }

  // The next chunk, which its statistics read first. Where there are none, a processor's own prefetching is faster.
  ARRCOMP_METHOD void prefetch_block(const void* elements, int row) const {
    const uint64_t next = static_cast<uint64_t>(row) * lanes_per_row + chunk_size;
    prefetch_bytes(element_at(plan_.element, elements, next), rows_of_block * lanes_per_row * sizeof(Scalar));
  }

  // Rows [r, r + 4), as many as there are.
  template <class Random, class ScaleOf, class Writer>
  ARRCOMP_METHOD void encode_block(const void* elements, int r, bool simple, const Random (&random)[rows_of_block],
                                   BucketRows& buckets, ScaleOf scale_of, Writer& writer,
                                   EncodeTable<Coder>& table) const {
    if constexpr (GuessesRows<Coder>) {
      if (simple && is_whole_block(r) && is_in_one_bucket(r, buckets))
        return guess_block(elements, r, random, buckets, scale_of, writer, table);
    }
    if constexpr (codes_blocks) {
      if (simple && is_whole_block(r)) {
        if (is_in_one_bucket(r, buckets))
          return encode_some<rows_of_block, true>(elements, r, lanes_per_row, true, random, buckets, scale_of, writer);
        return encode_some<rows_of_block, false>(elements, r, lanes_per_row, true, random, buckets, scale_of, writer);
      }
    }
    const int rows = rows_ - r < rows_of_block ? rows_ - r : rows_of_block;
    for (int j = 0; j < rows; ++j)
      encode_some<1, false>(elements, r + j, lanes_of(r + j), simple, random + j, buckets, scale_of, writer);
  }

  // Four whole rows that are in one bucket.
  template <class Random, class ScaleOf, class Writer>
  ARRCOMP_METHOD void guess_block(const void* elements, int r, const Random (&random)[rows_of_block],
                                  const BucketRows& buckets, ScaleOf scale_of, Writer& writer,
                                  EncodeTable<Coder>& table) const {
    const uint64_t position = static_cast<uint64_t>(r) * lanes_per_row;
    Scalar scale[Coder::encode_values];
    scale_of(buckets.number(), scale);
    coder_.fill(table, buckets.number(), scale);
    U32 code[rows_of_block];
    if (guess_together(elements, position, random, table, code)) return writer.put_highest_bytes(code);
    U32 certain[rows_of_block];
    for (int j = 0; j < rows_of_block; ++j) {
      const uint64_t at = position + j * lanes_per_row;
      auto margins = table.widest(random[j]);
      guess_rows<1>(elements, at, random + j, table, certain + j, margins);
      if (table.is_in_doubt(margins)) certain[j] = encode_certainly(elements, at, scale, random[j]);
    }
    writer.put_highest_bytes(certain);
  }

  // False where a row is in doubt. Where rows have no registers together, code that is made once takes less.
  template <class Random>
  ARRCOMP_METHOD bool guess_together(const void* elements, uint64_t position, const Random (&random)[rows_of_block],
                                     const EncodeTable<Coder>& table, U32 (&codes)[rows_of_block]) const {
    // With random words registers hold half as many.
    constexpr int n = std::is_same_v<Random, Nearest> ? rows_side_by_side : (rows_side_by_side + 1) / 2;
    auto margins = table.widest(random[0]);
    ARRCOMP_ROLLED
    for (int first = 0; first < rows_of_block; first += n)
      guess_rows<n>(elements, position + first * lanes_per_row, random + first, table, codes + first, margins);
    return !table.is_in_doubt(margins);
  }

  // n whole rows from this position on.
  template <int n, class Random, class Margins>
  ARRCOMP_METHOD void guess_rows(const void* elements, uint64_t position, const Random* random,
                                 const EncodeTable<Coder>& table, U32* codes, Margins& margins) const {
    Real x[n];
    Random own_random[n];
    U32 own[n];
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      x[j] = load_real<Real>(plan_.element, elements, position + j * lanes_per_row, lanes_per_row);
      own_random[j] = random[j];
    }
    table.find(x, own_random, own, margins);
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) codes[j] = own[j];
  }

  // A row in doubt, to the highest byte of the codes.
  template <class Random>
  ARRCOMP_APART U32 encode_certainly(const void* elements, uint64_t position,
                                     const Scalar (&scale)[Coder::encode_values], Random random) const {
    Real scales[Coder::encode_values];
    for (int i = 0; i < Coder::encode_values; ++i) scales[i] = splat<Real>(scale[i]);
    const Real x = load_real<Real>(plan_.element, elements, position, lanes_per_row);
    return coder_.encode(x, scales, true, random) << 24;
  }

  // n rows from r on, with so many lanes each.
  template <int n, bool in_one_bucket, class Random, class ScaleOf, class Writer>
  ARRCOMP_METHOD void encode_some(const void* elements, int r, int lanes, bool simple, const Random* random,
                                  BucketRows& buckets, ScaleOf scale_of, Writer& writer) const {
    const uint64_t position = static_cast<uint64_t>(r) * lanes_per_row;
    Real scale[Coder::encode_values];
    if (in_one_bucket) buckets.current(scale, scale_of);
    U32 code[n];
    Real scaled[n];
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const uint64_t at = position + j * lanes_per_row;
      if (!in_one_bucket) buckets.row(at, scale, scale_of);
      const Real x = load_real<Real>(plan_.element, elements, at, lanes);
      if constexpr (EncodesTogether<Coder>) {
        scaled[j] = coder_.scaled(x, scale, simple);
      } else {
        code[j] = coder_.encode(x, scale, simple, random[j]);
      }
    }
    if constexpr (EncodesTogether<Coder>) coder_.encode(scaled, code);
    writer.put(code, position, lanes);
  }

  template <class Extras>
  ARRCOMP_METHOD void decode_rows(const uint8_t* payload, void* target, Extras& extras) const {
    BucketRows buckets(first_, plan_.bucket_size, buckets_);
    CodeReader<Coder, Extras> reader(plan_, payload + codes_at(), count_, extras);
    Table table;
    const auto decoded_of = [&](int bucket, Scalar(&values)[Coder::decode_values]) ARRCOMP_LAMBDA {
      const uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(bucket));
      return coder_.decoded_of(coder_.load(at), values);
    };
    for (int r = 0; r < rows_; r += rows_of_block) {
      if constexpr (HasExtras<Coder>) {
        if (r % rows_between_flushes == 0) extras.fill();
      }
      decode_block(target, r, buckets, decoded_of, reader, table);
    }
  }

  // Rows [r, r + 4), as many as there are.
  template <class DecodedOf, class Reader>
  ARRCOMP_METHOD void decode_block(void* target, int r, BucketRows& buckets, DecodedOf decoded_of, Reader& reader,
                                   Table& table) const {
    if constexpr (looks_up) {
      if (plan_.bucket_size >= Table::min_elements && is_whole_block(r) && is_in_one_bucket(r, buckets))
        return look_up(target, r, buckets, decoded_of, reader, table);
    }
    if constexpr (codes_blocks) {
      if (is_whole_block(r)) {
        if (!is_in_one_bucket(r, buckets))
          return decode_some<rows_of_block, false>(target, r, lanes_per_row, buckets, decoded_of, reader);
        return decode_some<rows_of_block, true>(target, r, lanes_per_row, buckets, decoded_of, reader);
      }
    }
    for (int j = r; j < r + rows_of_block && j < rows_; ++j)
      decode_some<1, false>(target, j, lanes_of(j), buckets, decoded_of, reader);
  }

  // Four whole rows that are in one bucket.
  template <class DecodedOf, class Reader>
  ARRCOMP_METHOD void look_up(void* target, int r, const BucketRows& buckets, DecodedOf decoded_of, Reader& reader,
                              Table& table) const {
    const uint64_t position = static_cast<uint64_t>(r) * lanes_per_row;
    Real values[Coder::decode_values];
    const bool simple = buckets.current(values, decoded_of);
    table.fill(buckets.number(), coder_, values, simple);
    U32 code[rows_of_block];
    reader.get(code, position, lanes_per_row);
    ARRCOMP_UNROLL for (int j = 0; j < rows_of_block; ++j)
        store_real(plan_.element, target, first_ + position + j * lanes_per_row, lanes_per_row, table.element(code[j]));
  }

  // n rows from r on, with so many lanes each.
  template <int n, bool in_one_bucket, class DecodedOf, class Reader>
  ARRCOMP_METHOD void decode_some(void* target, int r, int lanes, BucketRows& buckets, DecodedOf decoded_of,
                                  Reader& reader) const {
    const uint64_t position = static_cast<uint64_t>(r) * lanes_per_row;
    Real values[Coder::decode_values];
    bool simple = in_one_bucket && buckets.current(values, decoded_of);
    U32 code[n];
    reader.get(code, position, lanes);
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const uint64_t at = position + j * lanes_per_row;
      if (!in_one_bucket) simple = buckets.row(at, values, decoded_of);
      store_real(plan_.element, target, first_ + at, lanes, coder_.decode(code[j], values, simple));
    }
  }

  // Of the n rows from r on.
  ARRCOMP_METHOD bool are_whole(int r, int n) const { return static_cast<uint64_t>(r + n) * lanes_per_row <= count_; }
  ARRCOMP_METHOD static bool are_in_one_bucket(int r, uint64_t n, BucketRows& buckets) {
    return buckets.in_one(static_cast<uint64_t>(r) * lanes_per_row, n * lanes_per_row);
  }
  ARRCOMP_METHOD bool is_whole_block(int r) const { return are_whole(r, rows_of_block); }
  ARRCOMP_METHOD static bool is_in_one_bucket(int r, BucketRows& buckets) {
    return are_in_one_bucket(r, rows_of_block, buckets);
  }

  // What encoding takes of each bucket; whether all of them are simple.
  ARRCOMP_METHOD bool prepare(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory) const {
    sync();
    if constexpr (takes_magnitudes) {
      if (has_statistics()) return prepare_rows(source, payload, memory);
    }
    if constexpr (takes_extremes) {
      if (has_statistics() && Coder::fits_extremes(settings_)) return prepare_rows(source, payload, memory);
    }
    bool simple = true;
    for (int b = 0; b < buckets_; ++b) {
      Scalar scale[Coder::encode_values];
      simple = coder_.scale_of(fit(source, payload, seed, bucket_ + static_cast<uint64_t>(b)), scale) && simple;
      if (leader())
        for (int i = 0; i < Coder::encode_values; ++i) memory.scales[i][b] = scale[i];
    }
    sync();
    return simple;
  }

  // The same where all follows from the largest magnitudes, or the extremes: with a lane for each bucket.
  ARRCOMP_METHOD bool prepare_rows(const void* source, uint8_t* payload, BucketMemory<Coder>& memory) const {
    if constexpr (takes_magnitudes) {
      find_magnitudes(source, memory.scales[0]);
    } else {
      find_extremes(source, memory.scales[0], memory.scales[1]);
    }
    sync();
    // A bucket that began in the chunk before is that chunk's to store.
    const int earlier = bucket_ * plan_.bucket_size < first_ ? 1 : 0;
    bool simple = earlier == 0 || prepare_row(0, 1, nullptr, memory);
    for (int b = earlier; b < buckets_; b += lanes_per_row) {
      const int n = buckets_ - b < lanes_per_row ? buckets_ - b : lanes_per_row;
      uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(b));
      simple = prepare_row(b, n, at, memory) && simple;
    }
    sync();
    return simple;
  }

  // Of the n buckets from b on, whose numbers are stored at `at` if it is not null.
  ARRCOMP_METHOD bool prepare_row(int b, int n, uint8_t* at, BucketMemory<Coder>& memory) const {
    Real scale[Coder::encode_values];
    const auto found = [&](int i) ARRCOMP_LAMBDA {
      const Scalar* const of_buckets = memory.scales[i] + b;
      return n == lanes_per_row ? load(of_buckets) : load_first(of_buckets, n);
    };
    bool simple;
    if constexpr (takes_magnitudes) {
      const auto numbers = coder_.fit(found(0));
      if (at != nullptr) coder_.store(at, numbers, n);
      simple = coder_.scale_of(numbers, scale);
    } else {
      const auto numbers = coder_.fit(found(0), found(1));
      Scalar room[2 * lanes_per_row];
      if (at != nullptr) coder_.store(at, numbers, n, room);
      simple = coder_.scale_of(numbers, scale);
    }
    sync();  // lanes from n on have read the last magnitude, in whose place a scale may come
    for (int i = 0; i < Coder::encode_values; ++i) store_row(memory.scales[i] + b, scale[i], n);
    return simple;
  }

  // For each bucket.
  ARRCOMP_METHOD void find_magnitudes(const void* source, Scalar* magnitudes) const {
    const int halves = plan_.bucket_size == lanes_per_row / 2 ? 2 : 1;
    if (plan_.bucket_size * halves == lanes_per_row) {
      int r = 0;
      if constexpr (sizeof(Scalar) == sizeof(uint32_t) && has_long_registers) {
        for (; halves == 2 && static_cast<uint64_t>(r + rows_of_halves) * lanes_per_row <= count_; r += rows_of_halves)
          store(magnitudes + r * 2, magnitudes_of_halves(source, r));
      }
      for (; r < rows_; ++r) find_magnitudes_in(source, r, halves, magnitudes + r * halves);
      return;
    }
    for (int b = 0; b < buckets_; ++b) {
      const auto found = magnitude_of<Real>(values_of(source, b));
      if (leader()) magnitudes[b] = found;
    }
  }

  // For each bucket: NaN where a value is not finite.
  ARRCOMP_METHOD void find_extremes(const void* source, Scalar* smallest, Scalar* largest) const {
    for (int b = 0; b < buckets_; ++b) {
      const Extremes found = extremes_of<Real, false>(values_of(source, b));
      smallest[b] = found.finite ? static_cast<Scalar>(found.low) : ScalarLimits<Scalar>::nan();
      largest[b] = found.finite ? static_cast<Scalar>(found.high) : ScalarLimits<Scalar>::nan();
    }
  }

  // All values of one of the chunk's buckets.
  ARRCOMP_METHOD StoredElements values_of(const void* source, int bucket) const {
    const uint64_t begin = (bucket_ + static_cast<uint64_t>(bucket)) * plan_.bucket_size,
                   left = plan_.quantized - begin;
    return {plan_.element, source, begin, left < plan_.bucket_size ? left : plan_.bucket_size};
  }

  // For the buckets in whole rows from this one on.
  static constexpr int rows_of_halves = 16;
  ARRCOMP_METHOD Real magnitudes_of_halves(const void* source, int row) const {
    U32 magnitudes[rows_of_halves];
    ARRCOMP_UNROLL for (int first = 0; first < rows_of_halves; first += 8) {
      ARRCOMP_UNROLL for (int j = first; j < first + 8; ++j) {
        const uint64_t at = first_ + static_cast<uint64_t>(row + j) * lanes_per_row;
        magnitudes[j] = as_bits(abs(load_real<Real>(plan_.element, source, at, lanes_per_row)));
      }
    }
    return real_of_bits(max_of_halves(magnitudes));
  }

  // For the one or two buckets in a row.
  ARRCOMP_METHOD void find_magnitudes_in(const void* source, int row, int buckets, Scalar* magnitudes) const {
    const uint64_t position = static_cast<uint64_t>(row) * lanes_per_row;
    const Real x = abs(load_real<Real>(plan_.element, source, first_ + position, lanes_of(row)));
    if (buckets == 2) {
      const auto found = largest_magnitudes_of_halves(x);
      if (leader()) magnitudes[0] = found.lower, magnitudes[1] = found.upper;
    } else {
      const Scalar found = largest_magnitude_of(x);
      if (leader()) magnitudes[0] = found;
    }
  }

  ARRCOMP_METHOD uint64_t codes_at() const { return plan_.codes_offset + first_ / 8 * plan_.code_bits; }
  ARRCOMP_METHOD int lanes_of(int row) const {
    const uint64_t left = count_ - static_cast<uint64_t>(row) * lanes_per_row;
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }

  ARRCOMP_METHOD BucketParameters fit(const void* source, uint8_t* payload, uint64_t seed, uint64_t bucket) const {
    if (plan_.bucket_bytes == 0) return {};
    const uint64_t size = plan_.bucket_size, begin = bucket * size;
    uint8_t* const at = payload + plan_.bucket_offset(bucket);
    if (size > segment_size) return coder_.load(at);
    const uint64_t count = plan_.quantized - begin < size ? plan_.quantized - begin : size;
    const StoredElements values{plan_.element, source, begin, count};
    const auto statistics = statistics_of<Real>(values, count, settings_.moments());
    const BucketParameters numbers = coder_.fit(statistics, {plan_.element, source, begin, count, seed});
    if (begin >= first_ && leader()) coder_.store(at, numbers);
    return numbers;
  }

  const BucketPlan& plan_;
  const typename Coder::Settings& settings_;
  Coder coder_;
  uint64_t first_, count_;  // elements
  int rows_;
  uint64_t bucket_;  // the first
  int buckets_;
};

}  // namespace arrcomp::ARRCOMP_ISA
