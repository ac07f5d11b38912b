// Chunks of bucketed payloads on lanes: elements to codes and back, whatever parts of buckets lie in a chunk. FORMAT.md,
// section 5.
#pragma once
#include "codecs/qsgd.h"

namespace arrcomp::ARRCOMP_MACHINE {

constexpr int most_buckets_in_chunk = chunk_size / 16 + 2;

// Which bucket each lane of a row is in, row by row. Buckets are counted from the chunk's first on.
class BucketRows {
 public:
  ARRCOMP_METHOD BucketRows(uint64_t first_element, uint64_t bucket_size, int buckets)
      : size_(bucket_size), end_(bucket_size - first_element % bucket_size), bucket_(0), last_(buckets - 1) {}

  // For the row that begins at `place` in the chunk: number(bucket, i) of each lane's bucket as values[i].
  template <class Real, int numbers, class Number>
  ARRCOMP_METHOD void row(uint64_t place, Real (&values)[numbers], Number number) {
    while (place >= end_) next();
    for (int i = 0; i < numbers; ++i) values[i] = splat<Real>(number(bucket_, i));
    while (end_ < place + lanes_per_row && bucket_ < last_) {
      const Mask later = mask(~low_mask(static_cast<int>(end_ - place)));
      next();
      for (int i = 0; i < numbers; ++i) values[i] = select(later, splat<Real>(number(bucket_, i)), values[i]);
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

// What encoding and decoding know of the whole array.
struct BucketContext {
  BucketPlan plan;
  QsgdSettings settings;
};

// Memory that encoding a chunk needs, one for each thread or warp.
template <class Scalar>
struct BucketMemory {
  BucketScale<Scalar> scales[most_buckets_in_chunk];
};

template <class T>
class BucketChunk {
  using Real = typename T::Real;
  using Word = typename T::Word;
  using Scalar = typename Real::scalar;
  using Numbers = BucketNumbers<Scalar>;

 public:
  ARRCOMP_METHOD BucketChunk(const BucketContext& context, uint64_t chunk)
      : context_(context),
        coder_(context.settings),
        first_(chunk * chunk_size),
        count_(context.plan.quantized - first_ < chunk_size ? context.plan.quantized - first_ : chunk_size),
        rows_(static_cast<int>((count_ + lanes_per_row - 1) / lanes_per_row)),
        bucket_(first_ / context.settings.bucket_size),
        buckets_(static_cast<int>((first_ + count_ - 1) / context.settings.bucket_size - bucket_) + 1) {}

  // Writes the chunk's codes, and the numbers of buckets that begin in it. Those of buckets larger than a piece are in
  // the payload already.
  ARRCOMP_METHOD void encode(const void* source, uint8_t* payload, uint64_t seed, BucketMemory<Scalar>& memory) const {
    sync();
    bool prescaled = false;
    for (int b = 0; b < buckets_; ++b) {
      const auto scale = coder_.scale_of(numbers_of(source, payload, bucket_ + static_cast<uint64_t>(b)));
      prescaled = prescaled || scale.prescale != 1;
      if (leader()) memory.scales[b] = scale;
    }
    sync();
    BucketRows buckets(first_, context_.settings.bucket_size, buckets_);
    BitWriter writer(payload + codes_at());
    for (int r = 0; r < rows_; r += 4) {
      const int rows = rows_ - r < 4 ? rows_ - r : 4;
      if (context_.settings.stochastic) {
        const RandomWords random = random_rows(seed, (first_ / lanes_per_row + static_cast<uint64_t>(r)) / 4);
        for (int j = 0; j < rows; ++j)
          encode_row(source, r + j, memory, prescaled, centered(random.word[j], Real{}), buckets, writer);
      } else {
        for (int j = 0; j < rows; ++j) encode_row(source, r + j, memory, prescaled, splat<Real>(0), buckets, writer);
      }
    }
    writer.finish();
  }

  ARRCOMP_METHOD void decode(const uint8_t* payload, void* target) const {
    const uint8_t* const codes = payload + codes_at();
    BitReader reader(codes, codes + code_bytes(count_, context_.settings.bits));
    BucketRows buckets(first_, context_.settings.bucket_size, buckets_);
    const auto number = [&](int bucket, int i) ARRCOMP_LAMBDA {
      const Numbers numbers = load_numbers(payload, bucket_ + static_cast<uint64_t>(bucket));
      const bool halved = coder_.is_halved(numbers.unit);
      if (i == 2) return Scalar(halved ? 2 : 1);
      return (i == 0 ? numbers.unit : numbers.low) * Scalar(halved ? 0.5 : 1);
    };
    for (int r = 0; r < rows_; ++r) {
      const uint64_t place = static_cast<uint64_t>(r) * lanes_per_row;
      Real numbers[3];
      buckets.row(place, numbers, number);
      const U32 code = reader.get(context_.settings.bits, U32{});
      const Real limit = splat<Real>(T::largest);
      const Real y = coder_.decode(code, numbers[0], numbers[1], numbers[2]);
      const Real limited = min(max(y, splat<Real>(0) - limit), limit);
      const Word bits = select(le(abs(limited), limit), T::narrow(limited), splat<Word>(quiet_nan()));
      store_elements<T>(target, first_ + place, lanes_of(r), bits);
    }
  }

 private:
  ARRCOMP_METHOD void encode_row(const void* source, int row, const BucketMemory<Scalar>& memory, bool prescaled,
                                 Real dither, BucketRows& buckets, BitWriter& writer) const {
    const int n = lanes_of(row);
    const uint64_t place = static_cast<uint64_t>(row) * lanes_per_row;
    // The next chunk, which its statistics read first.
    const auto* ahead = reinterpret_cast<const uint8_t*>(element_pointer<T>(source, first_ + place + chunk_size));
    for (int line = 0; line < lanes_per_row * T::width / 8; line += 64) prefetch(ahead + line);
    Real scale[3];
    buckets.row(place, scale, [&](int bucket, int i) ARRCOMP_LAMBDA {
      const BucketScale<Scalar>& s = memory.scales[bucket];
      return i == 0 ? s.low : i == 1 ? s.inverse : s.prescale;
    });
    Real x = T::widen(load_elements<T>(source, first_ + place, n));
    if (prescaled) x = x * scale[2];
    const U32 code = coder_.encode((x - scale[0]) * scale[1], splat<Real>(coder_.offset()) + dither);
    writer.put(n == lanes_per_row ? code : select(mask(low_mask(n)), code, splat<U32>(0)), context_.settings.bits);
  }

  ARRCOMP_METHOD uint64_t codes_at() const {
    return context_.plan.codes_offset + first_ / 8 * static_cast<uint64_t>(context_.settings.bits);
  }
  ARRCOMP_METHOD int lanes_of(int row) const {
    const uint64_t left = count_ - static_cast<uint64_t>(row) * lanes_per_row;
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }
  ARRCOMP_METHOD typename Word::scalar quiet_nan() const {
    const int mantissa = context_.plan.element.mantissa_bits, exponent = context_.plan.element.exponent_bits;
    return static_cast<typename Word::scalar>(((uint64_t{2} << exponent) - 1) << (mantissa - 1));
  }
  ARRCOMP_METHOD uint64_t numbers_at(uint64_t bucket) const {
    return bucket * static_cast<uint64_t>(context_.settings.numbers()) * sizeof(Scalar);
  }
  ARRCOMP_METHOD Numbers load_numbers(const uint8_t* payload, uint64_t bucket) const {
    return Qsgd<T>::load_numbers(payload + numbers_at(bucket), context_.settings.numbers());
  }

  ARRCOMP_METHOD Numbers numbers_of(const void* source, uint8_t* payload, uint64_t bucket) const {
    const uint64_t size = context_.settings.bucket_size, begin = bucket * size;
    if (size > piece_size) return load_numbers(payload, bucket);
    const uint64_t count = context_.plan.quantized - begin < size ? context_.plan.quantized - begin : size;
    const Numbers numbers = coder_.numbers_of(
        statistics_of<T>(context_.plan.element, source, begin, count, context_.settings.norm == Norm::l2));
    if (begin >= first_ && leader())
      Qsgd<T>::store_numbers(payload + numbers_at(bucket), numbers, context_.settings.numbers());
    return numbers;
  }

  const BucketContext& context_;
  Qsgd<T> coder_;
  uint64_t first_, count_;  // elements
  int rows_;
  uint64_t bucket_;  // the first
  int buckets_;
};

// A bucket larger than a piece, from the statistics of its pieces: writes its numbers.
template <class T>
ARRCOMP_PART void store_bucket(const BucketContext& context, const BucketStatistics& statistics, uint8_t* payload,
                               uint64_t bucket) {
  using Scalar = typename T::Real::scalar;
  const int numbers = context.settings.numbers();
  const Qsgd<T> coder(context.settings);
  Qsgd<T>::store_numbers(payload + bucket * static_cast<uint64_t>(numbers) * sizeof(Scalar),
                         coder.numbers_of(statistics), numbers);
}

}  // namespace arrcomp::ARRCOMP_MACHINE
