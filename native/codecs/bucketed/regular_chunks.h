// Regular chunks on lanes: whole ones of an array that is aligned to 16 bytes, cut into windows of 16 rows, with buckets
// that divide a window or consist of several. A window's values stay in registers from where they are looked at to where
// they are codes, and what is the same for a chunk is found before its rows. All other chunks, and all of a CPU's, are
// coded as bucket_chunks.h says; the bytes are the same.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/bucketed/window_buckets.h"
#include "codecs/bucketed/window_codes.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int window_size = rows_per_window * lanes_per_row;
constexpr int windows_per_chunk = rows_per_chunk / rows_per_window;
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

// Which bucket of the chunk each window is in, window by window, where none has several.
class WindowBuckets {
 public:
  ARRCOMP_METHOD WindowBuckets(uint64_t bucket_size, uint64_t place_in_bucket)
      : windows_(at_most_a_chunk(bucket_size)), left_(at_most_a_chunk(bucket_size - place_in_bucket)), bucket_(0) {}

  ARRCOMP_METHOD int next() {
    if (left_ == 0) {
      ++bucket_;
      left_ = windows_;
    }
    --left_;
    return bucket_;
  }

 private:
  ARRCOMP_METHOD static int at_most_a_chunk(uint64_t elements) {
    return elements < chunk_size ? static_cast<int>(elements) / window_size : windows_per_chunk;
  }

  int windows_, left_;  // of a bucket, of the current one
  int bucket_;
};

template <HasWindows Coder>
class RegularChunk {
  using Real = typename Coder::Real;
  using Scalar = typename Real::scalar;
  using WindowRows = Real[rows_per_window];

 public:
  // The chunk from element `first` on, which begins in this bucket, and the payload's part of its own. All that the
  // rows take of the plan is here, and not looked for again.
  ARRCOMP_METHOD RegularChunk(const BucketPlan& plan, const Coder& coder, uint64_t first, uint64_t bucket)
      : plan_(plan),
        coder_(coder),
        first_(first),
        bucket_(bucket),
        place_(first - bucket * plan.bucket_size),
        shift_(bit_length(static_cast<uint32_t>(plan.bucket_size)) - 1),
        has_several_(plan.bucket_size < window_size),
        fits_windows_(plan.bucket_bytes > 0 && plan.bucket_size <= window_size && fits_rows()),
        width_(plan.element.width),
        is_bfloat16_(plan.element.exponent_bits == 8) {}

  // Whether the chunk is: of so many elements, which are here.
  ARRCOMP_METHOD bool is_regular(uint64_t count, const void* elements) const {
    return count == chunk_size && !plan_.byte_codes && has_window_codes<Coder>(plan_.code_bits) &&
           reinterpret_cast<uintptr_t>(elements) % 16 == 0 && has_regular_buckets();
  }

  // Whether `encode` finds what is stored for buckets: those in a window that are fitted side by side.
  ARRCOMP_METHOD bool fits_windows() const { return fits_windows_; }

  // Writes the chunk's codes, and the numbers of buckets that are in a window. `memory` has what encoding takes of other
  // buckets, which then are all simple, or not.
  ARRCOMP_METHOD void encode(const void* source, uint8_t* payload, uint64_t seed, BucketScales<Coder>& memory,
                             bool simple) const {
    WindowWriter<Coder> writer(payload + codes_at(), code_bits());
    WindowBuckets buckets(plan_.bucket_size, place_);
    const uint8_t* elements = element_at(plan_.element, source, first_);
    uint8_t* numbers = payload + plan_.bucket_offset(bucket_);
    const uint32_t window_bytes = window_size / 8 * width_, numbers_bytes = window_size * plan_.bucket_bytes >> shift_;
    ARRCOMP_ROLLED
    for (int w = 0; w < windows_per_chunk; ++w) {  // counted: encode codes, 16 rows
      Real x[rows_per_window];
      load_window(elements, x);
      elements += window_bytes;
      int bucket = 0;
      if (fits_windows_) {
        simple = fit_window(x, numbers, memory);
        numbers += numbers_bytes;
      } else {
        bucket = has_several_ ? w * buckets_in_window() : buckets.next();
      }
      U32 codes[rows_per_window];
      encode_window(x, w, seed, memory, bucket, simple, codes);
      writer.put(codes);
    }
  }

  ARRCOMP_METHOD void decode(const uint8_t* payload, void* target, DecodeMemory<Coder>& memory) const {
    const bool simple = load_buckets(payload, memory);
    WindowReader<Coder> reader(payload + codes_at(), code_bits());
    WindowBuckets buckets(plan_.bucket_size, place_);
    uint8_t* elements = const_cast<uint8_t*>(element_at(plan_.element, target, first_));
    const uint32_t window_bytes = window_size / 8 * width_;
    ARRCOMP_ROLLED
    for (int w = 0; w < windows_per_chunk; ++w) {  // counted: decode codes, 16 rows
      U32 codes[rows_per_window];
      reader.get(codes);
      Real y[rows_per_window];
      if (has_several_) {
        decode_with(codes, of_several(memory.values, w * buckets_in_window()), simple, y);
      } else {
        decode_with(codes, OfOne<Coder::decode_values>(memory.values, buckets.next()), simple, y);
      }
      store_window(elements, y);
      elements += window_bytes;
    }
  }

 private:
  ARRCOMP_METHOD int code_bits() const { return static_cast<int>(plan_.code_bits); }
  ARRCOMP_METHOD uint64_t codes_at() const { return plan_.codes_offset + first_ / 8 * plan_.code_bits; }
  ARRCOMP_METHOD int buckets_in_window() const { return window_size >> shift_; }

  ARRCOMP_METHOD bool has_regular_buckets() const {
    const uint64_t size = plan_.bucket_size;
    if (has_several_) return size >= 16 && (size & (size - 1)) == 0;
    return (size | place_) % window_size == 0 || place_ + chunk_size <= size;
  }

  // Whether buckets in windows are fitted side by side.
  ARRCOMP_METHOD bool fits_rows() const {
    if constexpr (FitsExtremes<Coder>) return coder_.fits_extremes() && plan_.bucket_size >= lanes_per_row;
    return FitsMagnitudes<Coder>;
  }

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
    ARRCOMP_METHOD OfOne(const Scalar (&values)[n][m], int bucket) {
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) numbers[i] = splat<Real>(values[i][bucket]);
    }
    ARRCOMP_METHOD void get(int, Real (&of_row)[n]) const {
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) of_row[i] = numbers[i];
    }
  };

  // From the buckets of a window, which begin at `values`.
  template <int n, int m>
  struct OfSeveral {
    const Scalar (&values)[n][m];
    int first, shift;
    U32 lanes;

    ARRCOMP_METHOD void get(int row, Real (&of_row)[n]) const {
      const U32 bucket = (lanes + splat<U32>(static_cast<uint32_t>(row * lanes_per_row))) >> shift;
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) of_row[i] =
          as_float(gather(reinterpret_cast<const uint32_t*>(values[i] + first), bucket));
    }
  };
  template <int n, int m>
  ARRCOMP_METHOD OfSeveral<n, m> of_several(const Scalar (&values)[n][m], int first) const {
    return {values, first, shift_, lane_numbers()};
  }

  // --- rows

  ARRCOMP_METHOD void encode_window(WindowRows& x, int window, uint64_t seed, const BucketScales<Coder>& memory,
                                    int bucket, bool simple, U32 (&codes)[rows_per_window]) const {
    if (has_several_) {
      encode_with(x, window, seed, of_several(memory.scales, bucket), simple, codes);
    } else {
      encode_with(x, window, seed, OfOne<Coder::encode_values>(memory.scales, bucket), simple, codes);
    }
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_with(WindowRows& x, int window, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!simple) [[unlikely]] {
      if constexpr (Prescales<Coder>) {
        ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
          Real scale[Coder::encode_values];
          scales.get(j, scale);
          x[j] = coder_.prescaled(x[j], scale);
        }
      } else {
        return encode_rows(x, window, seed, scales, false, codes);
      }
    }
    encode_rows(x, window, seed, scales, true, codes);
  }

  template <class Scales>
  ARRCOMP_METHOD void encode_rows(const WindowRows& x, int window, uint64_t seed, const Scales& scales, bool simple,
                                  U32 (&codes)[rows_per_window]) const {
    if (!coder_.is_stochastic()) {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
          encode_some(x + j, j, scales, simple, NoWords{}, codes + j);
      return;
    }
    const uint64_t first = (first_ / lanes_per_row + static_cast<uint64_t>(window * rows_per_window)) / rows_of_words;
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
        encode_some(x + j, j, scales, simple, random_rows(seed, first + j / rows_of_words), codes + j);
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
    const int buckets =
        has_several_ ? chunk_size >> shift_ : static_cast<int>((place_ + chunk_size - 1) / plan_.bucket_size) + 1;
    bool simple = true;
    sync();
    if constexpr (LoadsRows<Coder>) {
      for (int b = 0; b < buckets; b += lanes_per_row) {
        const int n = buckets - b < lanes_per_row ? buckets - b : lanes_per_row;
        Real decoded[Coder::decode_values];
        const uint8_t* const at = payload + plan_.bucket_offset(bucket_ + static_cast<uint64_t>(b));
        simple = coder_.decoded_of(coder_.load(at, n), decoded) && simple;
        for (int i = 0; i < Coder::decode_values; ++i) store(memory.values[i] + b, decoded[i]);
      }
    } else {
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
  uint64_t first_, bucket_, place_;  // of elements: in the array and in the first bucket
  int shift_;                        // of buckets' sizes where a window has several: they are powers of two
  bool has_several_, fits_windows_;
  uint32_t width_;  // of elements
  bool is_bfloat16_;
};

}  // namespace arrcomp::ARRCOMP_ISA
