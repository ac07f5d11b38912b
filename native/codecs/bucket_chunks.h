// Chunks of bucketed payloads on lanes: elements to codes and back, whatever parts of buckets lie in a chunk. Codecs are
// what bucket_coder.h says. FORMAT.md, section 5.
#pragma once
#include "codecs/bucket_coder.h"
#include "codecs/extras.h"

namespace arrcomp::ARRCOMP_MACHINE {

constexpr int most_buckets_in_chunk = chunk_size / 16 + 2;

// Which bucket each lane of a row is in, row by row. Buckets are counted from the chunk's first on.
class BucketRows {
 public:
  ARRCOMP_METHOD BucketRows(uint64_t first_element, uint64_t bucket_size, int buckets)
      : size_(bucket_size), end_(bucket_size - first_element % bucket_size), bucket_(0), last_(buckets - 1) {}

  // Whether the `count` elements from `place` on are in one bucket.
  ARRCOMP_METHOD bool in_one(uint64_t place, uint64_t count) {
    while (place >= end_) next();
    return place + count <= end_;
  }

  // For the row that begins at `place` in the chunk: what values_of(bucket, array) gives for each lane's bucket.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD void row(uint64_t place, Real (&values)[n], ValuesOf values_of) {
    typename Real::scalar of_bucket[n];
    while (place >= end_) next();
    values_of(bucket_, of_bucket);
    for (int i = 0; i < n; ++i) values[i] = splat<Real>(of_bucket[i]);
    while (end_ < place + lanes_per_row && bucket_ < last_) {
      const Mask later = mask(~low_mask(static_cast<int>(end_ - place)));
      next();
      values_of(bucket_, of_bucket);
      for (int i = 0; i < n; ++i) values[i] = select(later, splat<Real>(of_bucket[i]), values[i]);
    }
  }

 private:
  ARRCOMP_METHOD void next() {
    ++bucket_;
    end_ += size_;
  }

  uint64_t size_, end_;  // of the bucket, in elements from the chunk's first
  int bucket_, last_;
};

// Memory that encoding a chunk needs, one for each thread or warp.
template <class Coder>
struct BucketMemory {
  typename Coder::Scalar scales[Coder::encode_values][most_buckets_in_chunk];
};
template <HasExtras Coder>
struct BucketMemory<Coder> {
  typename Coder::Scalar scales[Coder::encode_values][most_buckets_in_chunk];
  ExtraBuffer extras;
};

// In place of an ExtraWriter or an ExtraReader, for codecs that have none.
struct NoExtras {};

// Of the payload of an array: where its parts are and what it is made with.
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
  const BucketValues values{source, first, left < plan.bucket_size ? left : plan.bucket_size, seed};
  const Coder coder = context.coder(payload);
  const auto numbers = coder.numbers_of(statistics, values);
  if (leader()) coder.store(payload + plan.bucket_offset(bucket), numbers);
}

template <class Coder>
class BucketChunk {
  using T = typename Coder::Type;
  using Real = typename T::Real;
  using Scalar = typename Real::scalar;
  using Numbers = typename Coder::Numbers;
  static constexpr bool takes_magnitudes = requires(const Coder& coder, Real largest) { coder.numbers_of(largest); };

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

  // Writes the chunk's codes, and the numbers of buckets that begin in it. Those of buckets larger than a piece are in
  // the payload already.
  ARRCOMP_METHOD void encode(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory) const {
    NoExtras none;
    encode_rows(source, payload, seed, memory, none);
  }

  // The same with the chunk's extra words to `out`, which has room for them (plan.chunk_extras()); returns their number.
  ARRCOMP_METHOD uint32_t encode(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory,
                                 uint32_t* out) const {
    ExtraWriter extras(memory.extras, out, plan_.extra_bits);
    encode_rows(source, payload, seed, memory, extras);
    return extras.finish();
  }

  ARRCOMP_METHOD void decode(const uint8_t* payload, void* target) const {
    NoExtras none;
    decode_rows(payload, target, none);
  }

  // The same with the chunk's extra words; false where these are too many or too few.
  ARRCOMP_METHOD bool decode(const uint8_t* payload, void* target, const uint32_t* words, uint64_t count,
                             ExtraBuffer& memory) const {
    ExtraReader extras(memory, words, count, plan_.extra_bits);
    decode_rows(payload, target, extras);
    return extras.is_at_end();
  }

 private:
  template <class Extras>
  ARRCOMP_METHOD void encode_rows(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory,
                                  Extras& extras) const {
    const bool simple = prepare(source, payload, seed, memory);
    BucketRows buckets(first_, plan_.bucket_size, buckets_);
    BitWriter writer(payload + codes_at());
    for (int r = 0; r < rows_; r += 4) {
      const int rows = rows_ - r < 4 ? rows_ - r : 4;
      if (coder_.is_stochastic()) {
        const RandomWords random = random_rows(seed, (first_ / lanes_per_row + static_cast<uint64_t>(r)) / 4);
        for (int j = 0; j < rows; ++j)
          encode_row(source, r + j, memory, simple, random.word[j], buckets, writer, payload, extras);
      } else {
        for (int j = 0; j < rows; ++j)
          encode_row(source, r + j, memory, simple, Nearest{}, buckets, writer, payload, extras);
      }
      if constexpr (HasExtras<Coder>) {
        if ((r + 4) % rows_between_flushes == 0) extras.flush();
      }
    }
    writer.finish();
  }

  template <class Extras>
  ARRCOMP_METHOD void decode_rows(const uint8_t* payload, void* target, Extras& extras) const {
    const uint8_t* const codes = payload + codes_at();
    BitReader reader(codes, codes + code_bytes(count_, plan_.code_bits));
    BucketRows buckets(first_, plan_.bucket_size, buckets_);
    const auto decoded = [&](int bucket, Scalar(&values)[Coder::decode_values]) ARRCOMP_LAMBDA {
      coder_.decoded_of(coder_.load(payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(bucket))), values);
    };
    for (int r = 0; r < rows_; ++r) {
      const uint64_t place = static_cast<uint64_t>(r) * lanes_per_row;
      Real values[Coder::decode_values];
      buckets.row(place, values, decoded);
      U32 code = plan_.byte_codes ? load_elements<Bits8>(codes, place, lanes_of(r))
                                  : reader.get(static_cast<int>(plan_.code_bits), U32{});
      if constexpr (HasExtras<Coder>) {
        if (r % rows_between_flushes == 0) extras.fill();
        code = code | extras.get(Coder::has_extra(code) & exist(lanes_of(r))) << static_cast<int>(plan_.code_bits);
      }
      store_elements<T>(target, first_ + place, lanes_of(r), coder_.decode(code, values));
    }
  }

  // What encoding takes of each bucket; whether all of them are simple.
  ARRCOMP_METHOD bool prepare(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Coder>& memory) const {
    sync();
    if constexpr (takes_magnitudes) {
      if (plan_.bucket_bytes > 0 && plan_.bucket_size <= piece_size) return prepare_rows(source, payload, memory);
    }
    bool simple = true;
    for (int b = 0; b < buckets_; ++b) {
      Scalar scale[Coder::encode_values];
      simple = coder_.scale_of(numbers_of(source, payload, seed, bucket_ + static_cast<uint64_t>(b)), scale) && simple;
      if (leader())
        for (int i = 0; i < Coder::encode_values; ++i) memory.scales[i][b] = scale[i];
    }
    sync();
    return simple;
  }

  // The same where all follows from the largest magnitudes: with a lane for each bucket.
  ARRCOMP_METHOD bool prepare_rows(const void* source, uint8_t* payload, BucketMemory<Coder>& memory) const {
    find_magnitudes(source, memory.scales[0]);
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
    const Scalar* const magnitudes = memory.scales[0] + b;
    Real scale[Coder::encode_values];
    const auto numbers = coder_.numbers_of(n == lanes_per_row ? load(magnitudes) : load_first(magnitudes, n));
    if (at != nullptr) coder_.store(at, numbers, n);
    const bool simple = coder_.scale_of(numbers, scale);
    for (int i = 0; i < Coder::encode_values; ++i) store_row(memory.scales[i] + b, scale[i], n);
    return simple;
  }

  // Of each bucket.
  ARRCOMP_METHOD void find_magnitudes(const void* source, Scalar* magnitudes) const {
    const int halves = plan_.bucket_size == lanes_per_row / 2 ? 2 : 1;
    if (plan_.bucket_size * halves == lanes_per_row) {
      for (int r = 0; r < rows_; ++r) find_magnitudes_in(source, r, halves, magnitudes + r * halves);
      return;
    }
    for (int b = 0; b < buckets_; ++b) {
      const uint64_t begin = (bucket_ + static_cast<uint64_t>(b)) * plan_.bucket_size, left = plan_.quantized - begin;
      const auto found = magnitude_of<T>(source, begin, left < plan_.bucket_size ? left : plan_.bucket_size);
      if (leader()) magnitudes[b] = found;
    }
  }

  // Of the one or two buckets in a row.
  ARRCOMP_METHOD void find_magnitudes_in(const void* source, int row, int buckets, Scalar* magnitudes) const {
    const uint64_t place = static_cast<uint64_t>(row) * lanes_per_row;
    const Real x = abs(T::widen(load_elements<T>(source, first_ + place, lanes_of(row))));
    const Mask second = mask(0xffff0000u);
    const Scalar found = number_from(as_bits(buckets == 2 ? select(second, splat<Real>(0), x) : x));
    const Scalar next = buckets == 2 ? number_from(as_bits(select(second, x, splat<Real>(0)))) : Scalar(0);
    if (!leader()) return;
    magnitudes[0] = found;
    if (buckets == 2) magnitudes[1] = next;
  }

  template <class Random, class Extras>
  ARRCOMP_METHOD void encode_row(const void* source, int row, const BucketMemory<Coder>& memory, bool simple,
                                 Random random, BucketRows& buckets, BitWriter& writer, uint8_t* payload,
                                 Extras& extras) const {
    const int n = lanes_of(row);
    const uint64_t place = static_cast<uint64_t>(row) * lanes_per_row;
    // The next chunk, which its statistics read first.
    const auto* ahead = reinterpret_cast<const uint8_t*>(element_pointer<T>(source, first_ + place + chunk_size));
    for (int line = 0; line < lanes_per_row * T::width / 8; line += 64) prefetch(ahead + line);
    Real scale[Coder::encode_values];
    buckets.row(place, scale, [&](int bucket, Scalar(&values)[Coder::encode_values]) ARRCOMP_LAMBDA {
      for (int i = 0; i < Coder::encode_values; ++i) values[i] = memory.scales[i][bucket];
    });
    U32 code = coder_.encode(load_elements<T>(source, first_ + place, n), scale, simple, random);
    if constexpr (HasExtras<Coder>) {
      extras.put(code >> static_cast<int>(plan_.code_bits), Coder::has_extra(code) & exist(n));
      code = code & splat<U32>(low_mask(static_cast<int>(plan_.code_bits)));
    }
    if (plan_.byte_codes) return store_elements<Bits8>(payload + codes_at(), place, n, code);
    writer.put(n == lanes_per_row ? code : select(exist(n), code, splat<U32>(0)), static_cast<int>(plan_.code_bits));
  }

  ARRCOMP_METHOD static Mask exist(int lanes) { return mask(low_mask(lanes)); }

  ARRCOMP_METHOD uint64_t codes_at() const { return plan_.codes_offset + first_ / 8 * plan_.code_bits; }
  ARRCOMP_METHOD int lanes_of(int row) const {
    const uint64_t left = count_ - static_cast<uint64_t>(row) * lanes_per_row;
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }

  ARRCOMP_METHOD Numbers numbers_of(const void* source, uint8_t* payload, uint64_t seed, uint64_t bucket) const {
    if (plan_.bucket_bytes == 0) return {};
    const uint64_t size = plan_.bucket_size, begin = bucket * size;
    uint8_t* const at = payload + plan_.bucket_offset(bucket);
    if (size > piece_size) return coder_.load(at);
    const uint64_t count = plan_.quantized - begin < size ? plan_.quantized - begin : size;
    const auto statistics = statistics_of<T>(plan_.element, source, begin, count, settings_.moments());
    const Numbers numbers = coder_.numbers_of(statistics, {source, begin, count, seed});
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

}  // namespace arrcomp::ARRCOMP_MACHINE
