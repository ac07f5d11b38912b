// Regular chunks of buckets on lanes that have a register for each of 16 rows: windows. A window's values stay in
// registers from where they are looked at to where they are codes. Regular are full chunks of an array that is aligned to
// 16 bytes; others are bucket_chunks.h's.
#pragma once
#include "codecs/bucketed/bucket_chunks.h"
#include "codecs/bucketed/window_buckets.h"
#include "codecs/bucketed/window_codes.h"
#include "codecs/bucketed/window_extras.h"

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
// Codecs with a way of their own for most rows, or for decoding them.
struct AnyWay {
  void operator()(auto) const {}
};
template <class Coder>
concept HasShortWay = requires(const Coder& coder) { coder.visit_short_way(AnyWay{}); };
template <class Coder>
concept HasShortDecoder = requires(const Coder& coder) { coder.visit_short_decoder(AnyWay{}); };
// Codecs of which that way tells of rare lanes. Windows that have any are coded again, as any row is.
template <class Coder>
concept HasRareLanes = requires { Coder::has_rare_lanes; };
// Codecs of which extra bits are made in fewer steps where a chunk's buckets are simple.
template <class Coder>
concept RoundsWithin = HasExtras<Coder> && !(FitsMagnitudes<Coder> || FitsExtremes<Coder>) &&
                       requires(const Coder& coder) { coder.rounds_within(); };
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

// Whether nothing is stored for buckets, or what is has been found before: that of codecs that do not fit rows of buckets
// always is.
template <HasWindows Coder>
ARRCOMP_SHARED bool are_fitted_before(const BucketPlan& plan) {
  return !FitsRows<Coder> || plan.bucket_bytes == 0 || plan.bucket_size > segment_size;
}

// Whether windows have such codes. Where these have extra bits, all of them are looked up: windows share no buckets.
template <HasWindows Coder>
ARRCOMP_SHARED bool has_windows(const BucketPlan& plan) {
  if (!HasExtras<Coder>) return has_window_codes<Coder>(plan.code_bits);
  const bool shares_buckets = plan.bucket_size % window_size != 0 && plan.bucket_size < plan.quantized;
  return plan.code_bits + plan.extra_bits <= 8 && !shares_buckets;
}

template <HasWindows Coder>
ARRCOMP_SHARED bool is_encoded_in_windows(const BucketPlan& plan, const typename Coder::Settings& settings) {
  return has_windows<Coder>(plan) && (are_fitted_before<Coder>(plan) || are_fitted_in_windows<Coder>(plan, settings));
}

// Codecs that tell quickly what most codes are, and which may be others.
template <class Coder>
concept Guesses = Coder::guesses;

// Buckets that windows of a chunk have, at most.
template <class Coder>
constexpr int max_window_buckets = HasExtras<Coder> ? chunk_size / window_size + 1 : max_buckets_in_chunk<Coder>;

// What coding takes of each bucket of a chunk, what a window leaves for the next one, and room for a window's rows where
// these may be coded twice.
template <class Coder, int n, bool has_rows = HasRareLanes<Coder>>
struct WindowMemory {
  typename Coder::Scalar values[n][max_window_buckets<Coder>];
  bool simple;  // are all of the chunk's buckets, where they are no part of a window
  uint32_t half[lanes_per_row];
};
template <class Coder, int n>
struct WindowMemory<Coder, n, true> : WindowMemory<Coder, n, false> {
  uint32_t rows[rows_per_window][lanes_per_row];
};

// With a table of the elements that a bucket's codes become, or none.
template <class Coder>
struct WindowDecodeMemory : WindowMemory<Coder, Coder::decode_values> {};
template <TabulatesNear Coder>
struct WindowDecodeMemory<Coder> : WindowMemory<Coder, Coder::decode_values> {
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
  using Codes = U32[rows_per_window];
  static_assert(chunk_size % (2 * window_size) == 0);  // codes of any number of bits end with a word

 public:
  using EncodeMemory = WindowMemory<Coder, Coder::encode_values>;
  using DecodeMemory = WindowDecodeMemory<Coder>;

  // The chunk whose elements are there. All that the rows take of the plan is here, and not looked for again.
  ARRCOMP_METHOD ChunkWindows(const BucketPlan& plan, const Coder& coder, uint64_t chunk, const void* elements,
                              const uint8_t* payload, uint64_t seed = 0)
      : plan_(plan),
        coder_(coder),
        first_(chunk * chunk_size),
        bucket_(first_ / plan.bucket_size),
        seed_(seed),
        places_(plan.bucket_size, first_ - bucket_ * plan.bucket_size),
        elements_(reinterpret_cast<uintptr_t>(element_at(plan.element, elements, first_))),
        numbers_(reinterpret_cast<uintptr_t>(payload + plan.bucket_offset(bucket_))),
        codes_(payload + plan.codes_offset + first_ / 8 * (plan.byte_codes ? 8 : plan.code_bits)),
        shift_(bit_length(static_cast<uint32_t>(plan.bucket_size)) - 1),
        bucket_bytes_(plan.bucket_bytes),
        has_several_(!places_.is_one_a_window()),
        fits_windows_(!are_fitted_before<Coder>(plan) && plan.bucket_size <= window_size),
        width_(plan.element.width),
        is_bfloat16_(plan.element.exponent_bits == 8),
        code_bits_(plan.code_bits),
        extra_bits_(plan.extra_bits),
        are_bytes_(plan.byte_codes) {}

  // Writes the chunk's codes, and the numbers of buckets but those that were fitted before, to the payload.
  // Extra bits go to `extras`.
  template <class Extras>
  ARRCOMP_METHOD void encode(EncodeMemory& memory, Extras& extras) const {
    if (!fits_windows()) {
      const bool simple = prepare(memory);
      if (leader()) memory.simple = simple;
      sync();
    }
    if constexpr (RoundsWithin<Coder>) {
      if (memory.simple && width_ == 32 && extra_bits_ > 0 && coder_.rounds_within())
        return encode_within(memory, extras);
    }
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: encode codes, 16 rows
      Real x[rows_per_window];
      load_window(at, x);
      const bool simple = fits_windows() ? fit_window(x, numbers_from(at), memory) : memory.simple;
      Codes codes;
      const bool has_rare = encode_window(x, at, memory, simple, codes, extras);
      if constexpr (HasRareLanes<Coder>) {
        if (has_rare) [[unlikely]]
          encode_rare_window(at, memory, codes);
      }
      const WindowWriter<Coder> writer(const_cast<uint8_t*>(codes_), code_bits_, are_bytes_, memory.half);
      if constexpr (HasExtras<Coder>) {
        if (extra_bits_ > 0) {
          writer.put_low_bits(codes, at / window_size);
          continue;
        }
      }
      writer.put(codes, at / window_size);
    }
  }

  template <class Extras>
  ARRCOMP_METHOD void decode(DecodeMemory& memory, Extras& extras) const {
    const bool simple = load_buckets(memory);
    WindowReader<Coder> reader(plan_, codes_);
    uint32_t filled = ~uint32_t{0};  // the bucket that the table is of
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: decode codes, 16 rows
      Codes codes;
      reader.get(codes, at + window_size < chunk_size);
      if constexpr (HasExtras<Coder>) get_extras(codes, extras);
      Real y[rows_per_window];
      bool has_rare = false;
      if (looks_up()) {
        look_up(codes, places_.of(at), simple, memory, filled, y);
      } else {
        has_rare = decode_window(codes, at, memory, simple, y);
      }
      store_window(at, y);
      if constexpr (HasRareLanes<Coder>) {
        if (has_rare) [[unlikely]]
          decode_rare_window(at, memory, simple);
      }
    }
  }

 private:
  ARRCOMP_METHOD uint8_t* elements_from(uint32_t at) const {
    return in_device_memory(reinterpret_cast<uint8_t*>(elements_) + at * width_ / 8);
  }
  // What is stored for the buckets from element `at` on, which begins one.
  ARRCOMP_METHOD uint8_t* numbers_from(uint32_t at) const {
    return in_device_memory(reinterpret_cast<uint8_t*>(numbers_) + (at >> shift_) * bucket_bytes_);
  }
  ARRCOMP_METHOD const uint8_t* numbers_of(int bucket) const {
    return in_device_memory(reinterpret_cast<const uint8_t*>(numbers_) + static_cast<uint32_t>(bucket) * bucket_bytes_);
  }
  ARRCOMP_METHOD bool fits_windows() const { return FitsRows<Coder> && fits_windows_; }
  ARRCOMP_METHOD int last_bucket() const {
    return static_cast<int>((first_ + chunk_size - 1) / plan_.bucket_size - bucket_);
  }

  // --- elements

  // Four loads are on their way at once, or two; other warps work until they arrive.
  ARRCOMP_METHOD void load_window(uint32_t at, WindowRows& x) const {
    const uint8_t* const elements = elements_from(at);
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

  ARRCOMP_METHOD void store_window(uint32_t at, const WindowRows& y) const {
    uint8_t* const elements = elements_from(at);
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

  // Rows are encoded, and codes of lanes that have extra bits wait in the writer, too.
  // The coder of most rows is in registers, as the writer's memory might be the coder's for all the compiler knows.
  template <class AnyCoder>
  struct WithExtras {
    AnyCoder coder;
    bool simple;
    WindowExtraWriter::Places& places;

    template <class Random>
    ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[Coder::encode_values], Random random, Mask&) const {
      Mask has_extra;
      const U32 code = coder.encode(x, scale, simple, random, has_extra);
      places.compress(code, has_extra);
      return code;
    }
  };
  template <class Visit>
  ARRCOMP_METHOD void visit_way_of_extras(bool simple, WindowExtraWriter& extras, Visit visit) const {
    WindowExtraWriter::Places places = extras.places();
    if (simple) {
      visit(WithExtras<const Coder>{coder_, true, places});
    } else {
      visit(WithExtras<const Coder&>{coder_, false, places});
    }
    extras.end_at(places);
    extras.flush(extra_bits_, code_bits_);
  }

  // A chunk of float32 in simple buckets, rounded to nearest: nothing is asked for in a window that is known of the
  // chunk. Rows are loaded one by one, as instructions count for more than accesses.
  ARRCOMP_METHOD void encode_within(EncodeMemory& memory, WindowExtraWriter& extras) const {
    const Coder coder = coder_;
    const BucketPlaces bucket = places_;
    const auto* rows = reinterpret_cast<const uint32_t*>(elements_from(0));
    const WindowWriter<Coder> writer(const_cast<uint8_t*>(codes_), code_bits_, are_bytes_, memory.half);
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: encode within, 16 rows
      U32 x[rows_per_window];
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) x[j] = load(rows + j * lanes_per_row);
      rows += window_size;
      const OfOne<Coder::encode_values> scale(memory.values, bucket.of(at));
      Codes codes;
      WindowExtraWriter::Places places = extras.places();
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
        Mask has_extra;
        codes[j] = coder.encode(as_float(x[j]), scale.numbers, true, typename Coder::ToNearestWithin{}, has_extra);
        places.compress(codes[j], has_extra);
      }
      extras.end_at(places);
      extras.flush(extra_bits_, code_bits_);
      writer.put_low_bits(codes, at / window_size);
    }
  }

  ARRCOMP_METHOD void get_extras(Codes& codes, ExtraReader& extras) const {
    if (extra_bits_ == 0) return;
    extras.fill();
    const U32 above = splat<U32>(low_mask(static_cast<int>(extra_bits_)) << code_bits_);
    const U32 flag = in_registers(splat<U32>(Coder::extra_flag));  // what is unknown is tested by one instruction
    RowPlaces<const uint32_t> places = extras.places();
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      const Mask has_extra = ne(codes[j] & flag, splat<U32>(0));
      U32 extra;
      places.expand(extra, has_extra);
      codes[j] = codes[j] | (extra & select(has_extra, above, splat<U32>(0)));
    }
    extras.start_at(places);
  }

  // --- what encoding takes of buckets

  // Of buckets that are no part of a window; whether all are simple. Those that were not fitted before have the chunk's
  // first window alone, or several of them.
  ARRCOMP_METHOD bool prepare(EncodeMemory& memory) const {
    sync();
    if (are_fitted_before<Coder>(plan_)) return load_scales(memory);
    Found all;
    ARRCOMP_ROLLED
    for (uint32_t at = 0; at < chunk_size; at += window_size) {  // counted: fit buckets, 16 rows
      Real x[rows_per_window];
      load_window(at, x);
      Found found;
      found.template find<rows_per_window>(x);
      all.add(found, at >> shift_);
    }
    return fit(all, chunk_size >> shift_, numbers_from(0), memory);
  }

  ARRCOMP_METHOD bool load_scales(EncodeMemory& memory) const {
    const int buckets = last_bucket() + 1;
    bool simple = true;
    ARRCOMP_ROLLED
    for (int b = 0; b < buckets; ++b) {
      Scalar scale[Coder::encode_values];
      simple = coder_.scale_of(coder_.load(numbers_of(b)), scale) && simple;
      if (leader())
        for (int i = 0; i < Coder::encode_values; ++i) memory.values[i][b] = scale[i];
    }
    sync();
    return simple;
  }

  // What a row of buckets is fitted from, in a lane for each.
  using Found = std::conditional_t<FitsExtremes<Coder>, ExtremesOfBuckets<Real>, MagnitudesOfBuckets<Real>>;

  // Of those in a window, of which the numbers go to `at`; whether all are simple.
  ARRCOMP_METHOD bool fit_window(const WindowRows& x, uint8_t* at, EncodeMemory& memory) const {
    Found found;
    const int buckets = window_size >> shift_;
    switch (buckets) {
      case 1: found.template find<16>(x); break;  // counted as: one bucket
      case 2: found.template find<8>(x); break;   // counted as: two buckets
      case 4: found.template find<4>(x); break;
      case 8: found.template find<2>(x); break;  // counted as: eight buckets
      default: found.template find<1>(x); break;
      case 32: found.find_in_halves(x);
    }
    return fit(found, buckets, at, memory);
  }

  ARRCOMP_METHOD bool fit(const Found& found, int buckets, uint8_t* at, EncodeMemory& memory) const {
    if constexpr (!FitsRows<Coder>) {
      return true;
    } else {
      const auto numbers = found.fitted(coder_);
      if constexpr (requires { coder_.store(at, numbers, buckets, memory.values[0]); }) {
        coder_.store(at, numbers, buckets, memory.values[0]);
        sync();
      } else {
        coder_.store(at, numbers, buckets);
      }
      Real scale[Coder::encode_values];
      const bool simple = coder_.scale_of(numbers, scale);
      ARRCOMP_UNROLL for (int i = 0; i < Coder::encode_values; ++i) store(memory.values[i], scale[i]);
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

  // Calls visit with what gives the numbers of rows, of which the first is the bucket's of element `at`.
  template <int n, int m, class Visit>
  ARRCOMP_METHOD void visit_scales(const Scalar (&values)[n][m], uint32_t at, Visit visit) const {
    if (!HasExtras<Coder> && has_several_)
      return visit(OfSeveral<n, m>{values, places_, lane_numbers() + splat<U32>(at)});
    visit(OfOne<n>(values, places_.of(at)));
  }

  // --- rows

  // As any row is coded.
  struct LongWay {
    const Coder& coder;
    bool simple;

    template <class Random>
    ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[Coder::encode_values], Random random, Mask&) const {
      return coder.encode(x, scale, simple, random);
    }
    ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[Coder::decode_values], Mask&) const {
      return coder.decode(code, decoded, simple);
    }
  };
  // As most rows are, if their buckets are simple.
  template <class Visit>
  ARRCOMP_METHOD void visit_usual_way(Visit visit) const {
    if constexpr (HasShortWay<Coder>) {
      coder_.visit_short_way(visit);
    } else {
      visit(LongWay{coder_, true});
    }
  }

  template <class Visit>
  ARRCOMP_METHOD void visit_usual_decoder(Visit visit) const {
    if constexpr (HasShortDecoder<Coder>) {
      coder_.visit_short_decoder(visit);
    } else {
      visit_usual_way(visit);
    }
  }

  // Of which element the bucket's scales are the first in memory, while the window from element `at` on is encoded.
  ARRCOMP_METHOD uint32_t scales_from(uint32_t at) const { return fits_windows() ? 0 : at; }

  // The window from element `at` on. True where lanes are rare: they have codes of no meaning.
  template <class Extras>
  ARRCOMP_METHOD bool encode_window(WindowRows& x, uint32_t at, const EncodeMemory& memory, bool simple, Codes& codes,
                                    Extras& extras) const {
    Mask rare = mask(0);
    visit_scales(memory.values, scales_from(at), [&](const auto& scales) ARRCOMP_LAMBDA {
      if constexpr (HasExtras<Coder>) {
        if (extra_bits_ > 0) {
          return visit_way_of_extras(
              simple, extras, [&](const auto& way) ARRCOMP_LAMBDA { encode_rows(x, at, scales, way, codes, rare); });
        }
      }
      if constexpr (Prescales<Coder>) {
        if (!simple) [[unlikely]]
          prescale(x, scales);
      } else {
        if (!simple) [[unlikely]]
          return encode_rows(x, at, scales, LongWay{coder_, false}, codes, rare);
      }
      visit_usual_way([&](const auto& way) ARRCOMP_LAMBDA { encode_rows(x, at, scales, way, codes, rare); });
    });
    return HasRareLanes<Coder> && any(rare);
  }

  // The same the long way, row by row, as this is rare.
  ARRCOMP_METHOD void encode_rare_window(uint32_t at, EncodeMemory& memory, Codes& codes) const {
    const LongWay way{coder_, false};
    Mask none = mask(0);
    visit_scales(memory.values, scales_from(at), [&](const auto& scales) ARRCOMP_LAMBDA {
      ARRCOMP_ROLLED
      for (int j = 0; j < rows_per_window; ++j) {
        Real scale[Coder::encode_values];
        scales.get(j, scale);
        const Real x =
            load_real<Real>(plan_.element, elements_from(at), static_cast<uint64_t>(j) * lanes_per_row, lanes_per_row);
        U32 code;
        if (coder_.is_stochastic()) {
          const uint64_t row = (first_ + at) / lanes_per_row + static_cast<uint64_t>(j);
          code = way.encode(x, scale, random_rows(seed_, row / rows_of_words).of_row(row), none);
        } else {
          code = way.encode(x, scale, Nearest{}, none);
        }
        store(memory.rows[j], code);
      }
    });
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) codes[j] = load(memory.rows[j]);
  }

  template <class Scales>
  ARRCOMP_METHOD void prescale(WindowRows& x, const Scales& scales) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      Real scale[Coder::encode_values];
      scales.get(j, scale);
      x[j] = coder_.prescaled(x[j], scale);
    }
  }

  template <class Scales, class Way>
  ARRCOMP_METHOD void encode_rows(const WindowRows& x, uint32_t at, const Scales& scales, const Way& way, Codes& codes,
                                  Mask& rare) const {
    if (!coder_.is_stochastic()) return encode_nearest(x, at, scales, way, codes, rare);  // counted as: nearest
    encode_stochastic(x, at, scales, way, codes, rare);                                   // counted as: stochastic
  }

  template <class Scales, class Way>
  ARRCOMP_METHOD void encode_nearest(const WindowRows& x, uint32_t at, const Scales& scales, const Way& way,
                                     Codes& codes, Mask& rare) const {
    if constexpr (Guesses<Coder>) {
      if (way.simple) return guess_rows(x, at, scales, codes);  // counted as: guesses
    }
    if constexpr (requires { coder_.truncates(); }) {
      if (coder_.truncates()) return encode_alike<typename Coder::Truncated>(x, scales, way, codes, rare);
      encode_alike<typename Coder::ToNearest>(x, scales, way, codes, rare);  // counted as: not truncated
    } else {
      encode_alike<Nearest>(x, scales, way, codes, rare);
    }
  }

  template <class Scales, class Way>
  ARRCOMP_METHOD void encode_stochastic(const WindowRows& x, uint32_t at, const Scales& scales, const Way& way,
                                        Codes& codes, Mask& rare) const {
    const uint64_t words = (first_ + at) / lanes_per_row / rows_of_words;
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
        encode_some(x + j, j, scales, random_rows(seed_, words + j / rows_of_words), way, codes + j, rare);
  }

  // Without random words.
  template <class Rounding, class Scales, class Way>
  ARRCOMP_METHOD void encode_alike(const WindowRows& x, const Scales& scales, const Way& way, Codes& codes,
                                   Mask& rare) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; j += rows_of_words)
        encode_some(x + j, j, scales, NoWords<Rounding>{}, way, codes + j, rare);
  }

  // Rows in which a guess is in doubt are loaded and encoded again.
  template <class Scales>
  ARRCOMP_METHOD void guess_rows(const WindowRows& x, uint32_t at, const Scales& scales, Codes& codes) const {
    Real scale[Coder::encode_values];
    U32 doubtful = splat<U32>(0);
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      scales.get(j, scale);
      Mask doubt;
      codes[j] = coder_.guess(x[j], scale, doubt);
      doubtful = doubtful | select(doubt, splat<U32>(1u << j), splat<U32>(0));
    }
    ARRCOMP_ROLLED
    for (uint32_t rows = or_all(doubtful); rows != 0; rows &= rows - 1) {
      const int row = bit_length(rows & (~rows + 1)) - 1;
      scales.get(row, scale);
      const Real again =
          load_real<Real>(plan_.element, elements_from(at), static_cast<uint64_t>(row) * lanes_per_row, lanes_per_row);
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
  template <class Scales, class Words, class Way>
  ARRCOMP_METHOD void encode_some(const Real* x, int row, const Scales& scales, const Words& words, const Way& way,
                                  U32* codes, Mask& rare) const {
    Real scale[Coder::encode_values];
    if constexpr (EncodesTogether<Coder>) {
      Real scaled[rows_of_words];
      U32 found[rows_of_words];
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) {
        scales.get(row + j, scale);
        scaled[j] = coder_.scaled(x[j], scale, way.simple);
      }
      coder_.encode(scaled, found);
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) codes[j] = found[j];
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < rows_of_words; ++j) {
        scales.get(row + j, scale);
        codes[j] = way.encode(x[j], scale, words.word[j], rare);
      }
    }
  }

  // The window from element `at` on. True where lanes are rare: they have values of no meaning.
  ARRCOMP_METHOD bool decode_window(const Codes& codes, uint32_t at, const DecodeMemory& memory, bool simple,
                                    WindowRows& y) const {
    Mask rare = mask(0);
    visit_scales(memory.values, at, [&](const auto& numbers) ARRCOMP_LAMBDA {
      if constexpr (!Settles<Coder>) {
        if (!simple) [[unlikely]]
          return decode_rows(codes, numbers, LongWay{coder_, false}, y, rare);
      }
      visit_usual_decoder([&](const auto& way) ARRCOMP_LAMBDA { decode_rows(codes, numbers, way, y, rare); });
      if constexpr (Settles<Coder>) {
        if (!simple) [[unlikely]]
          settle(y, numbers);
      }
    });
    return HasRareLanes<Coder> && any(rare);
  }

  // The same the long way, row by row, as this is rare.
  ARRCOMP_METHOD void decode_rare_window(uint32_t at, DecodeMemory& memory, bool simple) const {
    const LongWay way{coder_, simple};
    Mask none = mask(0);
    sync();  // what has been stored, by other lanes, is stored again
    Codes codes;
    WindowReader<Coder>(plan_, codes_, at / window_size).get(codes, false);
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) store(memory.rows[j], codes[j]);
    visit_scales(memory.values, at, [&](const auto& numbers) ARRCOMP_LAMBDA {
      ARRCOMP_ROLLED
      for (int j = 0; j < rows_per_window; ++j) {
        Real decoded[Coder::decode_values];
        numbers.get(j, decoded);
        const Real y = way.decode(load(memory.rows[j]), decoded, none);
        store_real(plan_.element, elements_from(at), static_cast<uint64_t>(j) * lanes_per_row, lanes_per_row, y);
      }
    });
  }

  // Whether a window's codes are looked up.
  ARRCOMP_METHOD bool looks_up() const { return TabulatesNear<Coder> && (HasExtras<Coder> || !has_several_); }
  // A window of one bucket.
  ARRCOMP_METHOD void look_up(const Codes& codes, uint32_t bucket, bool simple, DecodeMemory& memory, uint32_t& filled,
                              WindowRows& y) const {
    if constexpr (TabulatesNear<Coder>) {
      if (bucket != filled) [[unlikely]] {
        const OfOne<Coder::decode_values> decoded(memory.values, bucket);
        memory.table.fill(coder_, decoded.numbers, simple);
        filled = bucket;
      }
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) y[j] = memory.table.element(codes[j]);
    }
  }

  template <class Numbers>
  ARRCOMP_METHOD void settle(WindowRows& y, const Numbers& numbers) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      Real decoded[Coder::decode_values];
      numbers.get(j, decoded);
      y[j] = coder_.settled(y[j], decoded);
    }
  }

  template <class Numbers, class Way>
  ARRCOMP_METHOD void decode_rows(const Codes& codes, const Numbers& numbers, const Way& way, WindowRows& y,
                                  Mask& rare) const {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      Real decoded[Coder::decode_values];
      numbers.get(j, decoded);
      y[j] = way.decode(codes[j], decoded, rare);
    }
  }

  // --- what decoding takes of buckets

  // Of all in the chunk; whether all are simple.
  ARRCOMP_METHOD bool load_buckets(DecodeMemory& memory) const {
    const int buckets = last_bucket() + 1;
    bool simple = true;
    sync();
    if constexpr (LoadsRows<Coder>) {
      ARRCOMP_ROLLED
      for (int b = 0; b < buckets; b += lanes_per_row) {
        const int n = buckets - b < lanes_per_row ? buckets - b : lanes_per_row;
        Real decoded[Coder::decode_values];
        simple = coder_.decoded_of(coder_.load(numbers_of(b), n), decoded) && simple;
        for (int i = 0; i < Coder::decode_values; ++i) store(memory.values[i] + b, decoded[i]);
      }
    } else {
      ARRCOMP_ROLLED
      for (int b = 0; b < buckets; ++b) {
        Scalar decoded[Coder::decode_values];
        simple = coder_.decoded_of(coder_.load(numbers_of(b)), decoded) && simple;
        if (leader())
          for (int i = 0; i < Coder::decode_values; ++i) memory.values[i][b] = decoded[i];
      }
    }
    sync();
    return simple;
  }

  const BucketPlan& plan_;
  Coder coder_;
  uint64_t first_, bucket_, seed_;
  BucketPlaces places_;
  uintptr_t elements_, numbers_;
  const uint8_t* codes_;
  int shift_;  // of buckets' sizes where these are fitted in windows: they are powers of two
  uint32_t bucket_bytes_;
  bool has_several_, fits_windows_;
  uint32_t width_;  // of elements
  bool is_bfloat16_;
  uint32_t code_bits_, extra_bits_;
  bool are_bytes_;
};

}  // namespace arrcomp::ARRCOMP_ISA
