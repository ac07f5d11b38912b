// Chunks of buckets on lanes that have a register for each of 16 rows: windows. A window's values stay in registers from
// where they are looked at to where they are codes. What is the same for a chunk is found before its rows, and whatever a
// chunk is like that is not whole, or not aligned to 16 bytes, it differs at the window's ends alone.
#pragma once
#include "codecs/bucketed/bucket_codes.h"
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/bucketed/window_buckets.h"
#include "codecs/bucketed/window_codes.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int window_size = rows_per_window * lanes_per_row;
constexpr int max_buckets_in_chunk = chunk_size / 16 + 2;

// What encoding takes of each bucket of a chunk.
template <class Coder>
struct BucketScales {
  typename Coder::Scalar scales[Coder::encode_values][max_buckets_in_chunk];
};

// Where lanes have a register for each row of a window, and no memory that is as fast.
template <class Coder>
concept HasWindows = rows_at_once == 1 && sizeof(typename Coder::Scalar) == sizeof(float) && !HasExtras<Coder>;

// Of buckets, side by side.
template <class Coder>
concept FitsMagnitudes = requires(const Coder& coder, typename Coder::Real largest) { coder.fit(largest); };
template <class Coder>
concept FitsExtremes = requires(const Coder& coder, typename Coder::Real number) { coder.fit(number, number); };
// Codecs that encode rows of scaled values together.
template <class Coder>
concept EncodesTogether =
    requires(const Coder& coder, const typename Coder::Real (&rows)[1], U32 (&codes)[1]) { coder.encode(rows, codes); };
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

// What decoding takes of each bucket of a chunk, where chunks have windows.
template <class Coder>
struct DecodeMemory {};
template <HasWindows Coder>
struct DecodeMemory<Coder> {
  typename Coder::Scalar values[Coder::decode_values][max_buckets_in_chunk];
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
  ARRCOMP_METHOD U32 of(U32 elements) const {
    return mulhi(elements + splat<U32>(place_), splat<U32>(per_element_));
  }
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

 public:
  // The chunk of `count` elements from `first` on, which begins in this bucket. All that the rows take of the plan is
  // here, and not looked for again.
  ARRCOMP_METHOD ChunkWindows(const BucketPlan& plan, const Coder& coder, uint64_t first, uint32_t count,
                              uint64_t bucket, int buckets)
      : plan_(plan),
        coder_(coder),
        first_(first),
        bucket_(bucket),
        places_(plan.bucket_size, first - bucket * plan.bucket_size),
        count_(count),
        buckets_(buckets),
        shift_(bit_length(static_cast<uint32_t>(plan.bucket_size)) - 1),
        has_several_(!places_.is_one_a_window()),
        fits_windows_(count == chunk_size && has_buckets_of_windows()),
        width_(plan.element.width),
        is_bfloat16_(plan.element.exponent_bits == 8),
        are_bytes_(plan.byte_codes) {}

  // Whether `encode` finds what is stored for buckets: those in whole windows that are fitted side by side.
  ARRCOMP_METHOD bool fits_windows() const { return fits_windows_; }

  // Writes the chunk's codes, and the numbers of buckets that are in a window. `memory` has what encoding takes of other
  // buckets, which then are all simple, or not.
  ARRCOMP_METHOD void encode(const void* source, uint8_t* payload, uint64_t seed, BucketScales<Coder>& memory,
                             bool simple) const {
    const uint8_t* elements = element_at(plan_.element, source, first_);
    uint8_t* numbers = payload + plan_.bucket_offset(bucket_);
    const uint32_t window_bytes = window_size / 8 * width_, numbers_bytes = window_size * plan_.bucket_bytes >> shift_;
    const bool is_regular = is_regular_at(elements);
    WindowWriter<Coder> writer(plan_, payload + codes_at());
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < count_; at += window_size) {  // counted: encode codes, 16 rows
      Real x[rows_per_window];
      load_window(elements, at, is_regular, x);
      elements += window_bytes;
      uint32_t from = at;
      if (fits_windows_) {
        simple = fit_window(x, numbers, memory);
        numbers += numbers_bytes;
        from = 0;
      }
      U32 codes[rows_per_window];
      encode_window(x, at, from, seed, memory, simple, codes);
      put(codes, at, is_regular, payload, writer);
    }
  }

  ARRCOMP_METHOD void decode(const uint8_t* payload, void* target, DecodeMemory<Coder>& memory) const {
    const bool simple = load_buckets(payload, memory);
    uint8_t* elements = const_cast<uint8_t*>(element_at(plan_.element, target, first_));
    const uint32_t window_bytes = window_size / 8 * width_;
    const bool is_regular = is_regular_at(elements);
    WindowReader<Coder> reader(plan_, payload + codes_at(), plan_.byte_codes ? 0 : count_);
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < count_; at += window_size) {  // counted: decode codes, 16 rows
      U32 codes[rows_per_window];
      get(codes, at, payload, reader);
      Real y[rows_per_window];
      if (has_several_) {
        decode_with(codes, of_several(memory.values, at), simple, y);
      } else {
        decode_with(codes, OfOne<Coder::decode_values>(memory.values, places_.of(at)), simple, y);
      }
      store_window(elements, at, is_regular, y);
      elements += window_bytes;
    }
  }

 private:
  ARRCOMP_METHOD uint64_t codes_at() const { return plan_.codes_offset + first_ / 8 * plan_.code_bits; }
  ARRCOMP_METHOD int buckets_in_window() const { return window_size >> shift_; }
  ARRCOMP_METHOD bool is_regular_at(const void* elements) const {
    return count_ == chunk_size && reinterpret_cast<uintptr_t>(elements) % 16 == 0;
  }

  // Whether windows are made of whole buckets, which are fitted side by side.
  ARRCOMP_METHOD bool has_buckets_of_windows() const {
    constexpr uint64_t least = FitsExtremes<Coder> ? lanes_per_row : lanes_per_row / 2;
    const uint64_t size = plan_.bucket_size;
    if constexpr (FitsExtremes<Coder>) {
      if (!coder_.fits_extremes()) return false;
    }
    return FitsRows<Coder> && plan_.bucket_bytes > 0 && least <= size && size <= window_size && (size & (size - 1)) == 0;
  }

  // Elements from `at` on that there are, of a window's.
  ARRCOMP_METHOD int count_from(uint32_t at) const {
    return static_cast<int>(count_ - at < window_size ? count_ - at : window_size);
  }

  // --- elements and codes

  template <class T>
  ARRCOMP_METHOD void load_words(const uint8_t* elements, uint32_t at, bool is_regular,
                                 U32 (&words)[rows_per_window]) const {
    const T* const from = reinterpret_cast<const T*>(elements);
    if (is_regular) [[likely]]
      return load_rows(from, words);
    load_rows(from, words, count_from(at));
  }
  template <class T>
  ARRCOMP_METHOD void store_words(uint8_t* elements, uint32_t at, bool is_regular,
                                  U32 (&words)[rows_per_window]) const {
    T* const to = reinterpret_cast<T*>(elements);
    if (is_regular) [[likely]]
      return store_rows(to, words);
    store_rows(to, words, count_from(at));
  }

  // Four loads are on their way at once, or two; other warps work until they arrive.
  ARRCOMP_METHOD void load_window(const uint8_t* elements, uint32_t at, bool is_regular, WindowRows& x) const {
    U32 words[rows_per_window];
    if (width_ == 32) {
      load_words<uint32_t>(elements, at, is_regular, words);
      return widen<Float32>(words, x);
    }
    load_words<uint16_t>(elements, at, is_regular, words);
    if (is_bfloat16_) return widen<BFloat16>(words, x);
    widen<Float16>(words, x);
  }
  template <class T>
  ARRCOMP_METHOD static void widen(const U32 (&words)[rows_per_window], WindowRows& x) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) x[j] = T::widen(words[j]);
  }

  ARRCOMP_METHOD void store_window(uint8_t* elements, uint32_t at, bool is_regular, const WindowRows& y) const {
    U32 words[rows_per_window];
    if (width_ == 32) {
      narrow<Float32>(y, words);
      return store_words<uint32_t>(elements, at, is_regular, words);
    }
    if (is_bfloat16_) {
      narrow<BFloat16>(y, words);
    } else {
      narrow<Float16>(y, words);
    }
    store_words<uint16_t>(elements, at, is_regular, words);
  }
  template <class T>
  ARRCOMP_METHOD static void narrow(const WindowRows& y, U32 (&words)[rows_per_window]) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) words[j] = T::narrow(y[j]);
  }

  // Packed, or as bytes.
  ARRCOMP_METHOD void put(U32 (&codes)[rows_per_window], uint32_t at, bool is_regular, uint8_t* payload,
                          WindowWriter<Coder>& writer) const {
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return store_rows(payload + codes_at() + at, codes, count_from(at));
    }
    if (is_regular || at + window_size < count_) [[likely]]
      return writer.put(codes);
    writer.put_last(codes, count_from(at));
  }
  ARRCOMP_METHOD void get(U32 (&codes)[rows_per_window], uint32_t at, const uint8_t* payload,
                          WindowReader<Coder>& reader) const {
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return load_rows(payload + codes_at() + at, codes, count_from(at));
    }
    reader.get(codes);
  }

  // --- what encoding takes of buckets

  // Of those in a window, of which the numbers go to `at`; whether all are simple.
  ARRCOMP_METHOD bool fit_window(const WindowRows& x, uint8_t* at, BucketScales<Coder>& memory) const {
    bool simple = true;
    if constexpr (FitsRows<Coder>) {
      const auto found = found_in_window(x);
      const auto numbers = found.fitted(coder_);
      const int n = buckets_in_window();
      if constexpr (requires { coder_.store(at, numbers, n, memory.scales[0]); }) {
        coder_.store(at, numbers, n, memory.scales[0]);
        sync();
      } else {
        coder_.store(at, numbers, n);
      }
      Real scale[Coder::encode_values];
      simple = coder_.scale_of(numbers, scale);
      ARRCOMP_UNROLL for (int i = 0; i < Coder::encode_values; ++i) store(memory.scales[i], scale[i]);
      sync();
    }
    return simple;
  }

  // What a row of buckets is fitted from, in a lane for each.
  ARRCOMP_METHOD auto found_in_window(const WindowRows& x) const {
    std::conditional_t<FitsExtremes<Coder>, ExtremesOfBuckets<Real>, MagnitudesOfBuckets<Real>> found;
    switch (buckets_in_window()) {
      case 1: found.template find<16>(x); break;
      case 2: found.template find<8>(x); break;
      case 4: found.template find<4>(x); break;
      case 8: found.template find<2>(x); break;
      default: found.template find<1>(x); break;
      case 32: found.find_in_halves(x);
    }
    return found;
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
    const uint64_t row = (first_ + at) / lanes_per_row;
    if (has_several_) {
      encode_with(x, row, seed, of_several(memory.scales, from), simple, codes);
    } else {
      encode_with(x, row, seed, OfOne<Coder::encode_values>(memory.scales, places_.of(from)), simple, codes);
    }
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_with(WindowRows& x, uint64_t row, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!simple) [[unlikely]] {
      if constexpr (Prescales<Coder>) {
        ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
          Real scale[Coder::encode_values];
          scales.get(j, scale);
          x[j] = coder_.prescaled(x[j], scale);
        }
      } else {
        return encode_rows(x, row, seed, scales, false, codes);
      }
    }
    encode_rows(x, row, seed, scales, true, codes);
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_rows(const WindowRows& x, uint64_t row, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!coder_.is_stochastic()) {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
          encode_some(x + j, j, scales, simple, NoWords{}, codes + j);
      return;
    }
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
        encode_some(x + j, j, scales, simple, random_rows(seed, (row + static_cast<uint64_t>(j)) / rows_of_words), codes + j);
  }

  // Four rows, with random words or none.
  static constexpr int rows_of_words = 4;
  struct NoWords {
    Nearest word[rows_of_words];
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

  // --- what decoding takes of buckets

  // Of all in the chunk; whether all are simple.
  ARRCOMP_METHOD bool load_buckets(const uint8_t* payload, DecodeMemory<Coder>& memory) const {
    bool simple = true;
    sync();
    if constexpr (LoadsRows<Coder>) {
      for (int b = 0; b < buckets_; b += lanes_per_row) {
        const int n = buckets_ - b < lanes_per_row ? buckets_ - b : lanes_per_row;
        Real decoded[Coder::decode_values];
        const uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(b));
        simple = coder_.decoded_of(coder_.load(at, n), decoded) && simple;
        for (int i = 0; i < Coder::decode_values; ++i) store(memory.values[i] + b, decoded[i]);
      }
    } else {
      for (int b = 0; b < buckets_; ++b) {
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
  uint32_t count_;
  int buckets_;
  int shift_;  // of buckets' sizes where these are fitted in windows: they are powers of two
  bool has_several_, fits_windows_;
  uint32_t width_;  // of elements
  bool is_bfloat16_, are_bytes_;
};

}  // namespace arrcomp::ARRCOMP_ISA
