// Regular chunks of buckets on lanes that have a register for each of 16 rows: windows. A window's values stay in
// registers from where they are looked at to where they are codes. Regular are full chunks of an array that is aligned to
// 16 bytes; others are bucket_chunks.h's.
#pragma once
#include "codecs/bucketed/bucket_chunks.h"
#include "codecs/bucketed/window_buckets.h"
#include "codecs/bucketed/window_codes.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int window_size = rows_per_window * lanes_per_row;

// Where lanes have a register for each row of a window, and no memory that is as fast.
template <class Coder>
concept HasWindows = rows_at_once == 1 && sizeof(typename Coder::Scalar) == sizeof(float);

// Of buckets, side by side.
template <class Coder>
concept FitsMagnitudes = requires(const Coder& coder, typename Coder::Real largest) { coder.fit(largest); };
template <class Coder>
concept FitsExtremes = requires(const Coder& coder, typename Coder::Real number) { coder.fit(number, number); };
// Codecs that encode and decode elements of buckets that are not simple like others, but for a step before, or behind it.
template <class Coder>
concept Prescales = requires(const Coder& coder, typename Coder::Real x,
                             const typename Coder::Real (&scale)[Coder::encode_values]) { coder.prescaled(x, scale); };
template <class Coder>
concept Settles = requires(const Coder& coder, typename Coder::Real y,
                           const typename Coder::Real (&decoded)[Coder::decode_values]) { coder.settled(y, decoded); };
template <class Coder>
concept FitsRows = FitsMagnitudes<Coder> || FitsExtremes<Coder>;
template <class Coder>
concept LoadsRows = requires(const Coder& coder, const uint8_t* at, int n) { coder.load(at, n); };

// Chunks of an array that are whole and aligned to 16 bytes: its first ones, so many.
ARRCOMP_SHARED uint64_t regular_chunks(const BucketPlan& plan, const void* elements) {
  return reinterpret_cast<uintptr_t>(elements) % 16 == 0 ? plan.quantized / chunk_size : 0;
}

// Whether a regular chunk is made of whole buckets that its windows' lanes can fit.
template <HasWindows Coder>
ARRCOMP_SHARED bool are_fitted_in_windows(const BucketPlan& plan, const typename Coder::Settings& settings) {
  constexpr uint64_t least = FitsExtremes<Coder> ? lanes_per_row : lanes_per_row / 2;
  const uint64_t size = plan.bucket_size;
  if constexpr (FitsExtremes<Coder>) {
    if (!Coder::fits_extremes(settings)) return false;
  }
  return FitsRows<Coder> && least <= size && size <= chunk_size && (size & (size - 1)) == 0;
}

// Whether nothing is stored for buckets, or what is has been found before. That of codecs that do not fit rows of buckets
// has been, by fit_chunk.
template <HasWindows Coder>
ARRCOMP_SHARED bool are_fitted_before(const BucketPlan& plan) {
  return !FitsRows<Coder> || plan.bucket_bytes == 0 || plan.bucket_size > segment_size;
}

// Whether windows have such codes. Where they have extra bits, they are looked up, all of them: windows share no buckets.
template <HasWindows Coder>
ARRCOMP_SHARED bool has_windows(const BucketPlan& plan) {
  if (!HasExtras<Coder>) return has_window_codes<Coder>(plan.code_bits);
  const bool shares_buckets = plan.bucket_size % window_size != 0 && plan.bucket_size < plan.quantized;
  return plan.code_bits + plan.extra_bits <= 8 && !shares_buckets;
}

template <HasWindows Coder>
ARRCOMP_SHARED bool is_encoded_in_windows(const BucketPlan& plan, const typename Coder::Settings& settings) {
  return has_windows<Coder>(plan) &&
         (are_fitted_before<Coder>(plan) || are_fitted_in_windows<Coder>(plan, settings));
}

// Codecs that tell quickly what most codes are, and which may be others.
template <class Coder>
concept Guesses = Coder::guesses;

// What decoding takes of each bucket of a chunk.
template <class Coder>
struct DecodeMemory {
  typename Coder::Scalar values[Coder::decode_values][max_buckets_in_chunk<Coder>];
};
template <TabulatesNear Coder>
struct DecodeMemory<Coder> {
  typename Coder::Scalar values[Coder::decode_values][max_buckets_in_chunk<Coder>];
  NearTable<Coder> table;
};

// Which bucket of a chunk its elements are in. Buckets may begin anywhere.
class BucketPlaces {
 public:
  // Of the chunk whose first element is at `place` of its bucket.
  ARRCOMP_METHOD BucketPlaces(uint64_t bucket_size, uint64_t place)
      : size_(bucket_size < most ? static_cast<uint32_t>(bucket_size) : most),
        place_(bucket_size - place < size_ ? size_ - static_cast<uint32_t>(bucket_size - place) : 0),
        per_element_(size_ > 1 ? ~uint32_t{0} / size_ + 1 : 0) {}

  // Whether each window has one alone.
  ARRCOMP_METHOD bool is_one_a_window() const {
    return size_ - place_ >= chunk_size || (size_ | place_) % window_size == 0;
  }

  // Exact: elements and sizes have 14 bits at most.
  ARRCOMP_METHOD U32 of(U32 elements) const { return mulhi(elements + splat<U32>(place_), splat<U32>(per_element_)); }
  ARRCOMP_METHOD uint32_t of(uint32_t element) const {
    return static_cast<uint32_t>(uint64_t{element + place_} * per_element_ >> 32);
  }

 private:
  static constexpr uint32_t most = 2 * chunk_size;  // as good as any that is larger
  uint32_t size_, place_;
  uint32_t per_element_;  // 2^32 / size, rounded up
};

template <HasWindows Coder>
class ChunkWindows {
  using Real = typename Coder::Real;
  using Scalar = typename Real::scalar;
  using WindowRows = Real[rows_per_window];
  static_assert(chunk_size % (2 * window_size) == 0);  // codes of any number of bits end with a word

 public:
  // The chunk whose elements are there. All that the rows take of the plan is here, and not looked for again.
  ARRCOMP_METHOD ChunkWindows(const BucketPlan& plan, const Coder& coder, uint64_t chunk, const void* elements)
      : plan_(plan),
        coder_(coder),
        first_(chunk * chunk_size),
        bucket_(first_ / plan.bucket_size),
        places_(plan.bucket_size, first_ - bucket_ * plan.bucket_size),
        elements_(reinterpret_cast<uintptr_t>(element_at(plan.element, elements, first_))),
        shift_(bit_length(static_cast<uint32_t>(plan.bucket_size)) - 1),
        has_several_(!places_.is_one_a_window()),
        width_(plan.element.width),
        is_bfloat16_(plan.element.exponent_bits == 8) {}

  // Writes the chunk's codes, and the numbers of buckets but those that were fitted before.
  // Extra bits go to `extras`.
  template <class Extras>
  ARRCOMP_METHOD void encode(uint8_t* payload, uint64_t seed, BucketScales<Coder>& memory, Extras& extras) const {
    const auto* elements = reinterpret_cast<const uint8_t*>(elements_);
    uint8_t* numbers = payload + plan_.bucket_offset(bucket_);
    const bool fits_windows = !are_fitted_before<Coder>(plan_) && plan_.bucket_size <= window_size;
    bool simple = fits_windows || prepare(numbers, memory);
    const uint32_t window_bytes = bytes_of_window(), numbers_bytes = window_size * plan_.bucket_bytes >> shift_;
    WindowWriter<Coder> writer(plan_, payload + codes_at());
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: encode codes, 16 rows
      Real x[rows_per_window];
      load_window(elements, x);
      elements += window_bytes;
      uint32_t from = at;
      if (fits_windows) {
        simple = fit_window(x, numbers, memory);
        numbers += numbers_bytes;
        from = 0;
      }
      U32 codes[rows_per_window];
      encode_window(x, at, from, seed, memory, simple, codes);
      if constexpr (HasExtras<Coder>) put_extras(codes, extras);
      writer.put(codes);
    }
  }

  template <class Extras>
  ARRCOMP_METHOD void decode(const uint8_t* payload, DecodeMemory<Coder>& memory, Extras& extras) const {
    const bool simple = load_buckets(payload, memory);
    auto* elements = reinterpret_cast<uint8_t*>(elements_);
    const uint32_t window_bytes = bytes_of_window();
    WindowReader<Coder> reader(plan_, payload + codes_at());
    uint32_t filled = ~uint32_t{0};  // the bucket that the table is of
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: decode codes, 16 rows
      U32 codes[rows_per_window];
      reader.get(codes, at + window_size < chunk_size);
      if constexpr (HasExtras<Coder>) get_extras(codes, extras);
      Real y[rows_per_window];
      if (!HasExtras<Coder> && has_several_) {
        decode_with(codes, of_several(memory.values, at), simple, y);
      } else if constexpr (TabulatesNear<Coder>) {
        look_up(codes, places_.of(at), simple, memory, filled, y);
      } else {
        decode_with(codes, OfOne<Coder::decode_values>(memory.values, places_.of(at)), simple, y);
      }
      store_window(elements, y);
      elements += window_bytes;
    }
  }

 private:
  ARRCOMP_METHOD uint64_t codes_at() const {
    return plan_.codes_offset + first_ / 8 * (plan_.byte_codes ? 8 : plan_.code_bits);
  }
  ARRCOMP_METHOD int last_bucket() const {
    return static_cast<int>((first_ + chunk_size - 1) / plan_.bucket_size - bucket_);
  }
  ARRCOMP_METHOD uint32_t bytes_of_window() const { return window_size / 8 * width_; }

  // --- elements

  // Four loads are on their way at once, or two; other warps work until they arrive.
  ARRCOMP_METHOD void load_window(const uint8_t* elements, WindowRows& x) const {
    U32 words[rows_per_window];
    if (width_ == 32) {
      load_rows(reinterpret_cast<const uint32_t*>(elements), words);
      return widen<Float32>(words, x);
    }
    load_rows(reinterpret_cast<const uint16_t*>(elements), words);
    if (is_bfloat16_) return widen<BFloat16>(words, x);
    widen<Float16>(words, x);
  }
  template <class T>
  ARRCOMP_METHOD static void widen(const U32 (&words)[rows_per_window], WindowRows& x) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) x[j] = T::widen(words[j]);
  }

  ARRCOMP_METHOD void store_window(uint8_t* elements, const WindowRows& y) const {
    U32 words[rows_per_window];
    if (width_ == 32) {
      narrow<Float32>(y, words);
      return store_rows(reinterpret_cast<uint32_t*>(elements), words);
    }
    if (is_bfloat16_) {
      narrow<BFloat16>(y, words);
    } else {
      narrow<Float16>(y, words);
    }
    store_rows(reinterpret_cast<uint16_t*>(elements), words);
  }
  template <class T>
  ARRCOMP_METHOD static void narrow(const WindowRows& y, U32 (&words)[rows_per_window]) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) words[j] = T::narrow(y[j]);
  }

  // --- extra bits, which stand above the others

  ARRCOMP_METHOD void put_extras(U32 (&codes)[rows_per_window], ExtraWriter& extras) const {
    static_assert(rows_between_flushes >= rows_per_window);
    if (plan_.extra_bits == 0) return;
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      extras.put(codes[j], Coder::has_extra(codes[j]));
      codes[j] = codes[j] & splat<U32>(low_mask(static_cast<int>(plan_.code_bits)));
    }
    extras.flush();
  }
  ARRCOMP_METHOD void get_extras(U32 (&codes)[rows_per_window], ExtraReader& extras) const {
    if (plan_.extra_bits == 0) return;
    extras.fill();
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j)
        codes[j] = codes[j] | extras.get_some(Coder::has_extra(codes[j])) << static_cast<int>(plan_.code_bits);
  }

  // --- what encoding takes of buckets

  // Of buckets that are no part of a window; whether all are simple. Those that were not fitted before have the chunk's
  // first window alone, or several of them.
  ARRCOMP_METHOD bool prepare(uint8_t* numbers, BucketScales<Coder>& memory) const {
    sync();
    if (are_fitted_before<Coder>(plan_)) return load_scales(numbers, memory);
    Found all;
    const auto* elements = reinterpret_cast<const uint8_t*>(elements_);
    const uint32_t window_bytes = bytes_of_window();
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: fit buckets, 16 rows
      Real x[rows_per_window];
      load_window(elements, x);
      elements += window_bytes;
      Found found;
      found.template find<rows_per_window>(x);
      all.add(found, at >> shift_);
    }
    return fit(all, chunk_size >> shift_, numbers, memory);
  }

  ARRCOMP_METHOD bool load_scales(const uint8_t* numbers, BucketScales<Coder>& memory) const {
    const int buckets = last_bucket() + 1;
    bool simple = true;
    ARRCOMP_ROLLED
    for (int b = 0; b < buckets; ++b) {
      Scalar scale[Coder::encode_values];
      simple = coder_.scale_of(coder_.load(numbers + b * static_cast<int>(plan_.bucket_bytes)), scale) && simple;
      if (leader())
        for (int i = 0; i < Coder::encode_values; ++i) memory.scales[i][b] = scale[i];
    }
    sync();
    return simple;
  }

  // What a row of buckets is fitted from, in a lane for each.
  using Found = std::conditional_t<FitsExtremes<Coder>, ExtremesOfBuckets<Real>, MagnitudesOfBuckets<Real>>;

  // Of those in a window, of which the numbers go to `at`; whether all are simple.
  ARRCOMP_METHOD bool fit_window(const WindowRows& x, uint8_t* at, BucketScales<Coder>& memory) const {
    Found found;
    const int buckets = window_size >> shift_;
    switch (buckets) {
      case 1: found.template find<16>(x); break;
      case 2: found.template find<8>(x); break;
      case 4: found.template find<4>(x); break;
      case 8: found.template find<2>(x); break;
      default: found.template find<1>(x); break;
      case 32: found.find_in_halves(x);
    }
    return fit(found, buckets, at, memory);
  }

  ARRCOMP_METHOD bool fit(const Found& found, int buckets, uint8_t* at, BucketScales<Coder>& memory) const {
    if constexpr (!FitsRows<Coder>) {
      return true;
    } else {
      const auto numbers = found.fitted(coder_);
      if constexpr (requires { coder_.store(at, numbers, buckets, memory.scales[0]); }) {
        coder_.store(at, numbers, buckets, memory.scales[0]);
        sync();
      } else {
        coder_.store(at, numbers, buckets);
      }
      Real scale[Coder::encode_values];
      const bool simple = coder_.scale_of(numbers, scale);
      ARRCOMP_UNROLL for (int i = 0; i < Coder::encode_values; ++i) store(memory.scales[i], scale[i]);
      sync();
      return simple;
    }
  }

  // --- what a row takes of its bucket, or of its buckets

  template <int n>
  struct OfOne {
    Real numbers[n];

    template <int m>
    ARRCOMP_METHOD OfOne(const Scalar (&values)[n][m], uint32_t bucket) {
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) numbers[i] = splat<Real>(values[i][bucket]);
    }
    ARRCOMP_METHOD void get(int, Real (&of_row)[n]) const {
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) of_row[i] = numbers[i];
    }
  };

  template <int n, int m>
  struct OfSeveral {
    const Scalar (&values)[n][m];
    const BucketPlaces& places;
    U32 lanes;  // the window's first row

    ARRCOMP_METHOD void get(int row, Real (&of_row)[n]) const {
      const U32 bucket = places.of(lanes + splat<U32>(static_cast<uint32_t>(row * lanes_per_row)));
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) of_row[i] =
          as_float(gather(reinterpret_cast<const uint32_t*>(values[i]), bucket));
    }
  };
  template <int n, int m>
  ARRCOMP_METHOD OfSeveral<n, m> of_several(const Scalar (&values)[n][m], uint32_t at) const {
    return {values, places_, lane_numbers() + splat<U32>(at)};
  }

  // --- rows

  // The window from element `at` on; the buckets in `memory` are those from `from` on.
  ARRCOMP_METHOD void encode_window(WindowRows& x, uint32_t at, uint32_t from, uint64_t seed,
                                    const BucketScales<Coder>& memory, bool simple,
                                    U32 (&codes)[rows_per_window]) const {
    if (!HasExtras<Coder> && has_several_) {
      encode_with(x, at, seed, of_several(memory.scales, from), simple, codes);
    } else {
      encode_with(x, at, seed, OfOne<Coder::encode_values>(memory.scales, places_.of(from)), simple, codes);
    }
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_with(WindowRows& x, uint32_t at, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!simple) [[unlikely]] {
      if constexpr (Prescales<Coder>) {
        ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
          Real scale[Coder::encode_values];
          scales.get(j, scale);
          x[j] = coder_.prescaled(x[j], scale);
        }
      } else {
        return encode_rows(x, at, seed, scales, false, codes);
      }
    }
    encode_rows(x, at, seed, scales, true, codes);
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_rows(const WindowRows& x, uint32_t at, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!coder_.is_stochastic()) {
      if constexpr (Guesses<Coder>) {
        if (simple) return guess_rows(x, at, scales, codes);
      }
      if constexpr (requires { coder_.truncates(); }) {
        if (coder_.truncates()) return encode_alike<typename Coder::Truncated>(x, scales, simple, codes);
        return encode_alike<typename Coder::ToNearest>(x, scales, simple, codes);
      } else {
        return encode_alike<Nearest>(x, scales, simple, codes);
      }
    }
    const uint64_t row = (first_ + at) / lanes_per_row;
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words) encode_some(
        x + j, j, scales, simple, random_rows(seed, (row + static_cast<uint64_t>(j)) / rows_of_words), codes + j);
  }

  // Without random words.
  template <class Rounding, class Scales>
  ARRCOMP_METHOD void encode_alike(const WindowRows& x, const Scales& scales, bool simple,
                                   U32 (&codes)[rows_per_window]) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
        encode_some(x + j, j, scales, simple, NoWords<Rounding>{}, codes + j);
  }

  // Rows in which a guess is in doubt are loaded and encoded again.
  template <class Scales>
  ARRCOMP_METHOD void guess_rows(const WindowRows& x, uint32_t at, const Scales& scales,
                                 U32 (&codes)[rows_per_window]) const {
    Real scale[Coder::encode_values];
    U32 doubtful = splat<U32>(0);
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      scales.get(j, scale);
      Mask doubt;
      codes[j] = coder_.guess(x[j], scale, doubt);
      doubtful = doubtful | select(doubt, splat<U32>(1u << j), splat<U32>(0));
    }
    const auto* const elements = reinterpret_cast<const uint8_t*>(elements_);
    ARRCOMP_ROLLED
    for (uint32_t rows = or_all(doubtful); rows != 0; rows &= rows - 1) {
      const int row = bit_length(rows & (~rows + 1)) - 1;
      scales.get(row, scale);
      const uint64_t place = at + static_cast<uint32_t>(row) * lanes_per_row;
      const Real again = load_real<Real>(plan_.element, elements, place, lanes_per_row);
      const U32 code = coder_.encode_exactly(again, scale, true, Nearest{});
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) if (j == row) codes[j] = code;
    }
  }

  // Four rows, with random words or none.
  static constexpr int rows_of_words = 4;
  template <class Rounding>
  struct NoWords {
    Rounding word[rows_of_words];
  };
  template <class Scales, class Words>
  ARRCOMP_METHOD void encode_some(const Real* x, int row, const Scales& scales, bool simple, const Words& words,
                                  U32* codes) const {
    Real scale[Coder::encode_values];
    if constexpr (EncodesTogether<Coder>) {
      Real scaled[rows_of_words];
      U32 found[rows_of_words];
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) {
        scales.get(row + j, scale);
        scaled[j] = coder_.scaled(x[j], scale, simple);
      }
      coder_.encode(scaled, found);
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) codes[j] = found[j];
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) {
        scales.get(row + j, scale);
        codes[j] = coder_.encode(x[j], scale, simple, words.word[j]);
      }
    }
  }

  template <class Numbers>
  ARRCOMP_METHOD void decode_with(const U32 (&codes)[rows_per_window], const Numbers& numbers, bool simple,
                                  WindowRows& y) const {
    if constexpr (!Settles<Coder>) {
      if (!simple) [[unlikely]]
        return decode_rows(codes, numbers, false, y);
    }
    decode_rows(codes, numbers, true, y);
    if constexpr (Settles<Coder>) {
      if (simple) [[likely]]
        return;
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
        Real decoded[Coder::decode_values];
        numbers.get(j, decoded);
        y[j] = coder_.settled(y[j], decoded);
      }
    }
  }

  template <class Numbers>
  ARRCOMP_METHOD void decode_rows(const U32 (&codes)[rows_per_window], const Numbers& numbers, bool simple,
                                  WindowRows& y) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      Real decoded[Coder::decode_values];
      numbers.get(j, decoded);
      y[j] = coder_.decode(codes[j], decoded, simple);
    }
  }

  // A window of one bucket.
  ARRCOMP_METHOD void look_up(const U32 (&codes)[rows_per_window], uint32_t bucket, bool simple,
                              DecodeMemory<Coder>& memory, uint32_t& filled, WindowRows& y) const {
    if (bucket != filled) [[unlikely]] {
      const OfOne<Coder::decode_values> decoded(memory.values, bucket);
      memory.table.fill(coder_, decoded.numbers, simple);
      filled = bucket;
    }
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) y[j] = memory.table.element(codes[j]);
  }

  // --- what decoding takes of buckets

  // Of all in the chunk; whether all are simple.
  ARRCOMP_METHOD bool load_buckets(const uint8_t* payload, DecodeMemory<Coder>& memory) const {
    const int buckets = last_bucket() + 1;
    bool simple = true;
    sync();
    if constexpr (LoadsRows<Coder>) {
      ARRCOMP_ROLLED
      for (int b = 0; b < buckets; b += lanes_per_row) {
        const int n = buckets - b < lanes_per_row ? buckets - b : lanes_per_row;
        Real decoded[Coder::decode_values];
        const uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(b));
        simple = coder_.decoded_of(coder_.load(at, n), decoded) && simple;
        for (int i = 0; i < Coder::decode_values; ++i) store(memory.values[i] + b, decoded[i]);
      }
    } else {
      ARRCOMP_ROLLED
      for (int b = 0; b < buckets; ++b) {
        Scalar decoded[Coder::decode_values];
        const uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(b));
        simple = coder_.decoded_of(coder_.load(at), decoded) && simple;
        if (leader())
          for (int i = 0; i < Coder::decode_values; ++i) memory.values[i][b] = decoded[i];
      }
    }
    sync();
    return simple;
  }

  const BucketPlan& plan_;
  const Coder& coder_;
  uint64_t first_, bucket_;
  BucketPlaces places_;
  uintptr_t elements_;
  int shift_;  // of buckets' sizes where these are fitted in windows: they are powers of two
  bool has_several_;
  uint32_t width_;  // of elements
  bool is_bfloat16_;
};

}  // namespace arrcomp::ARRCOMP_ISA
