// What is coded of a chunk: its elements become values (quantized, or their bits, or these split at their exponents),
// and values become words, of which a mask may leave only some. FORMAT.md, sections 3 and 4.
//
// How values become words is chosen by a sample of them. Where memory is near they are all kept until then; elsewhere
// those of the sample are made first, and all of them where their words are.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/chunk_words.h"
#include "codecs/grouped/left_out.h"
#include "codecs/grouped/quantize.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, bool quantizes = T::quantizes>
struct QuantizerOf : Quantizer<T> {
  using Quantizer<T>::Quantizer;
};
template <class T>
struct QuantizerOf<T, false> {
  ARRCOMP_METHOD explicit QuantizerOf(double) {}
};

// What encoding knows of the whole array.
template <class T>
struct EncodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  int rounded;   // mantissa bits rounded off before lossless coding
  bool fast;
  bool has_fill;
  double fill;  // stands for no value
  const Tables* tables;
  QuantizerOf<T> quantizer;

  ARRCOMP_METHOD EncodeContext(const Element& its_element, double its_bound, int its_rounded,
                               const GroupSettings& settings, const Tables* its_tables)
      : element(its_element),
        bound(its_bound),
        rounded(its_rounded),
        fast(settings.fast),
        has_fill(settings.has_fill),
        fill(settings.fill),
        tables(its_tables),
        quantizer(its_bound > 0 ? its_bound : 1) {}
};

template <class T, int chunk_limit>
class ChunkValues {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Memory = EncoderMemory<Scalar, chunk_limit>;

  ARRCOMP_METHOD ChunkValues(const EncodeContext<T>& context, const void* array, Memory& memory, NearMemory* near)
      : context_(context), array_(array), memory_(memory), words_(words_in(memory, near)), leaves_out_(false) {}

  // `next` is what is read next.
  ARRCOMP_METHOD void open_chunk(uint64_t first, uint32_t count, uint64_t next) {
    leave_nothing_out();
    set_elements(array_, first, static_cast<int>(count));
    next_ = element_pointer<T>(array_, next);
  }

  ARRCOMP_METHOD int lanes_of(int row) const {
    const int left = count_ - row * lanes_per_row;
    return left < lanes_per_row ? left : lanes_per_row;
  }
  ARRCOMP_METHOD const typename T::storage* elements_of(int row) const {
    return element_pointer<T>(array_, first_) + row * lanes_per_row;
  }
  ARRCOMP_METHOD Word element_bits(int row) const {
    return load_elements<T>(array_, first_ + static_cast<uint64_t>(row) * lanes_per_row, lanes_of(row));
  }

  ARRCOMP_METHOD void start(Transform transform) {
    head_ = ChunkHead{};
    head_.transform = transform;
    exceptions_ = 0;
  }

  // ---- elements that are left out

  // Leaves out the elements that are like some exception that is like the one after it.
  ARRCOMP_METHOD bool leave_out_exceptions() {
    sync();  // the positions are written
    for (int e = 1; e < exceptions_; ++e) {
      const auto fill = elements_of(0)[memory_.positions[e - 1]];
      if (fill == elements_of(0)[memory_.positions[e]]) return leave_out(fill, least_missing);
    }
    return false;
  }

  // Leaves out what stands for no value, where a chunk has it.
  ARRCOMP_METHOD bool leave_out_fill() {
    if constexpr (T::quantizes) {
      if (!context_.has_fill) return false;
      using Real = typename T::Real;
      const auto number = static_cast<typename Real::scalar>(context_.fill);
      return leave_out(or_all(T::narrow(splat<Real>(number))), 1);
    } else {
      return false;
    }
  }

  // Leaves out those whose bits are `fill`; false where they are fewer than `least`.
  ARRCOMP_METHOD bool leave_out(Scalar fill, int least) {
    const int present = leave_out_elements<T>(&memory_.missing, array_, first_, count_, memory_.values, fill, least);
    if (present < 0) return false;
    set_elements(memory_.missing.elements, 0, present);
    leaves_out_ = true;
    return true;
  }

  // All of the chunk's elements again.
  ARRCOMP_METHOD void leave_nothing_out() {
    if (!leaves_out_) return;
    set_elements(memory_.missing.array, memory_.missing.first, memory_.missing.count);
    leaves_out_ = false;
  }

  // ---- elements to values, and how these become words

  // False where too many elements cannot be quantized.
  ARRCOMP_PART bool quantize() {
    start(Transform::quantized);
    if constexpr (keeps_rows) {
      for (int r = 0; r < rows_; ++r) {
        Mask failed;
        store(memory_.values + r * lanes_per_row, value_of(element_bits(r), failed));
        if (any(failed) && !except(r, failed)) return false;
      }
      sync();
    } else {
      take_samples();
    }
    choose_prediction<Word>(head_, samples(), T::word_bits);
    repeated_ = find_repeated(true);
    return true;
  }

  ARRCOMP_PART void load_lossless() {
    start(Transform::integer);
    Word all;
    dropped_ = context_.rounded;
    if (!load_rounded(all)) {
      exceptions_ = 0;
      dropped_ = 0;
      load_rounded(all);
    }
    sync();
    if (!keeps_rows) take_samples();
    repeated_ = find_repeated(false);
    if (context_.element.is_float()) {
      exponent_shift_ = choose_exponent<T::width>(head_, samples(), or_all(all), context_.element);
      if (exponent_shift_ >= 0) return;
      head_.difference = true;
      head_.base = or_all(order_floats(splat<Word>(samples().rows[0]), T::width));
      head_.has_base = head_.base != 0;
      reorder_kept([&](Word x) ARRCOMP_LAMBDA { return order_floats(x, T::width); });
    } else {
      choose_prediction<Word>(head_, samples(), T::width);
    }
  }

  // Values become words, of which those that are coded are left, in full rows. False where there are too many
  // exceptions.
  ARRCOMP_PART bool make_words() {
    sync();  // the first value has been read before its lane overwrites it
    if (!map_values()) return false;
    sync();
    choose_mask();
    if (head_.mask != MaskKind::none) {
      compact();
      measure_widths();
      if (head_.mask == MaskKind::values && !leaves_out_) choose_marks();
    }
    return true;
  }

  ARRCOMP_METHOD int live_blocks() const {
    return count(mask(static_cast<uint32_t>(live_))) + count(mask(static_cast<uint32_t>(live_ >> 32)));
  }

  // A bit for each place of a live block.
  ARRCOMP_METHOD uint32_t bits_of_row_masks() const {
    return static_cast<uint32_t>(live_blocks() * rows_per_block * lanes_per_row);
  }

  const EncodeContext<T>& context_;
  const void* array_;
  Memory& memory_;
  ChunkWords<Word> words_;
  uint64_t first_;
  const typename T::storage* next_;
  int count_, rows_;
  bool leaves_out_;  // elements that are missing: these are the others
  int repeated_;     // the place of an element that may be worth leaving out, with all equal ones; or -1
  ChunkHead head_;
  int exponent_shift_;  // low bits of the words of exponents, which their symbols leave
  int dropped_;         // bits of the mantissa that are rounded off
  int exceptions_;
  int nonzero_;     // words that are not zero, or as many at most: 0 where there are none
  uint64_t live_;   // blocks with such words
  int coded_rows_;  // rows of words left to the coder

 private:
  ARRCOMP_METHOD void set_elements(const void* array, uint64_t first, int count) {
    array_ = array;
    first_ = first;
    count_ = count;
    rows_ = (count_ + lanes_per_row - 1) / lanes_per_row;
  }

  static constexpr bool has_unsorted_tiles = splits_words<Word> && T::width >= 16;

  ARRCOMP_METHOD static ChunkWords<Word> words_in(Memory& memory, [[maybe_unused]] NearMemory* near) {
    if constexpr (splits_words<Word>) {
      return SplitWords(*near, memory.upper);
    } else {
      return WholeWords<Word>(memory);
    }
  }

  // ---- values

  // Notes the lanes of a row as exceptions; false where there are too many. Places beyond the array's end repeat its
  // last element: they are no exceptions.
  ARRCOMP_METHOD bool except(int row, Mask lanes) {
    const int in_array = lanes_of(row);
    if (in_array < lanes_per_row) lanes = lanes & mask(low_mask(in_array));
    const U32 position = prefix_sum(splat<U32>(1)) + splat<U32>(static_cast<uint32_t>(row * lanes_per_row - 1));
    append(memory_.positions + exceptions_, position, lanes);
    exceptions_ += count(lanes);
    return exceptions_ <= max_exceptions;
  }

  // What a row of elements is at first: quantized, or bits with mantissas rounded, integers with their sign. `failed`
  // gets those that have none.
  ARRCOMP_METHOD Word value_of(Word bits, Mask& failed) const {
    failed = mask(0);
    if constexpr (T::quantizes) {
      if (head_.transform == Transform::quantized) return context_.quantizer.quantize(bits, failed);
      if (dropped_ > 0) bits = rounded(bits, failed);
    }
    return bits_at_sight(bits);
  }

  ARRCOMP_METHOD Word rounded(Word bits, Mask& failed) const {
    const Word low = splat<Word>((Scalar{1} << dropped_) - 1);
    bits = round_mantissa<T>(bits, dropped_, context_.element);
    failed = ne(bits & low, splat<Word>(0));
    return bits ^ (bits & low);
  }

  // The same at first sight: right in those of the lanes `served` that are left.
  ARRCOMP_METHOD Word quantized_at_sight(Word bits, [[maybe_unused]] Mask& served) const {
    if constexpr (T::quantizes) {
      Mask own;
      bits = context_.quantizer.nearest(bits, own);
      served = served & own;
    }
    return bits;
  }
  ARRCOMP_METHOD Word bits_at_sight(Word bits) const {
    return is_signed_integer() ? sign_extend(bits, T::width) : bits;
  }
  ARRCOMP_METHOD bool is_signed_integer() const { return context_.element.is_signed && !context_.element.is_float(); }

  // What is mapped to words.
  ARRCOMP_METHOD Word final_value(int row, Mask& failed) const {
    if constexpr (keeps_rows) {
      failed = mask(0);
      return load(memory_.values + row * lanes_per_row);
    } else {
      const Word x = value_of(element_bits(row), failed);
      const bool is_ordered = head_.transform == Transform::integer && context_.element.is_float();
      return is_ordered ? order_floats(x, T::width) : x;
    }
  }

  template <class Change>
  ARRCOMP_METHOD void reorder_kept(Change change) {
    if constexpr (keeps_rows)
      for (int r = 0; r < rows_; ++r) {
        Scalar* const row = memory_.values + r * lanes_per_row;
        store(row, change(load(row)));
      }
  }

  // The values of elements that are not quantized, where they are kept. False where too many cannot be rounded. `all`
  // gets the bits that any has.
  ARRCOMP_PART bool load_rounded(Word& all) {
    all = splat<Word>(0);
    int r = 0;
    if constexpr (has_unsorted_tiles)
      if (dropped_ == 0) r = or_of_tiles(all);
    const bool are_rounded = T::quantizes && dropped_ > 0, are_signed = is_signed_integer();
    Word own = splat<Word>(0);  // `all` would be written and read in memory for each row
    for (; r < rows_; ++r) {
      Word x = element_bits(r);
      if (are_signed) x = sign_extend(x, T::width);
      if constexpr (T::quantizes)
        if (are_rounded) {
          Mask failed;
          x = rounded(x, failed);
          if (any(failed) && !except(r, failed)) return false;
        }
      own = own | x;
      if constexpr (keeps_rows) store(memory_.values + r * lanes_per_row, x);
    }
    all = all | own;
    return true;
  }

  // Rows of whole tiles that stand as fetch_rows has them.
  ARRCOMP_METHOD int rows_of_tiles() const {
    if (reinterpret_cast<uintptr_t>(elements_of(0)) % 16 != 0) return 0;
    return count_ / (rows_per_tile * lanes_per_row) * rows_per_tile;
  }

  // Returns the row behind those tiles.
  ARRCOMP_METHOD int or_of_tiles(Word& all) const {
    constexpr int words = rows_per_tile * T::width / 32;  // of 32 bits, of each lane
    const int end = rows_of_tiles();
    int r = 0;
    ARRCOMP_ROLLED for (; r + 2 * rows_per_tile <= end; r += 2 * rows_per_tile) {  // counted: bits of elements, 16 rows
      U32 parts[2 * words];
      arrive_unsorted(fetch_rows<2 * words>(reinterpret_cast<const uint32_t*>(elements_of(r))), parts);
      ARRCOMP_UNROLL for (const U32& part : parts) all = all | part;
    }
    if constexpr (T::width == 16) all = (all | all >> 16) & splat<Word>(0xffff);
    return r;
  }

  // ---- the sample

  ARRCOMP_METHOD SampledValues<Word> samples() const {
    const int count = samples_of(rows_), distance = sample_stride(rows_) * lanes_per_row;
    if constexpr (keeps_rows) return {{memory_.values, distance, count}};
    return {{sampled_row(0), sample_distance, count}};
  }

  // The place of an element that may be worth leaving out, with all that have its value: one that an eighth of the sample
  // repeats, in long runs, or (of quantized values) far from all others. Else -1.
  ARRCOMP_PART int find_repeated(bool quantized) const {
    const SampledValues<Word> sample = samples();
    const int distance = sample_stride(rows_);
    int repeats = 0, looked = 0, most = 0, row = 0;
    uint32_t lanes = 0;
    ARRCOMP_ROLLED for (int s = 0; s < sample.count; s += repeated_step) {  // counted: sample repeats, 32 rows
      looked += lanes_per_row;
      const Word x = sample.at(s);
      const Mask own = eq(x, sample.before(s, x)) & mask(low_mask(lanes_of(s * distance)));
      const int n = count(own);
      repeats += n;
      if (n <= most) continue;
      most = n;
      row = s;
      lanes = bits(own);
    }
    if (repeats * 8 < looked) return -1;
    const int lane = bit_length(lanes) - 1;
    const Scalar value = sample.rows[row * sample.distance + lane];
    return is_apart<Word, T::word_bits>(value, sample, quantized) ? row * distance * lanes_per_row + lane : -1;
  }

  // With a place for the value before it.
  static constexpr int sample_distance = lanes_per_row + 1;
  ARRCOMP_METHOD Scalar* sampled_row(int s) const { return words_.memory() + 1 + s * sample_distance; }

  // Makes the values of the sampled rows, and those before each; before the first value there is the last of its row.
  ARRCOMP_PART void take_samples() {
    const int count = samples_of(rows_), stride = sample_stride(rows_);
    int s = 0;
    sync();  // the words that stood there have been read
    if (T::quantizes && head_.transform == Transform::quantized) {
      const auto value = [&](Word bits, Mask& served) { return quantized_at_sight(bits, served); };
      s = take_at_sight(stride, value);  // counted as: quantized
    } else if (dropped_ == 0) {
      constexpr int unused = static_cast<int>(sizeof(Scalar)) * 8 - T::width;
      const int sign = is_signed_integer() ? unused : 0;  // no branch
      const auto value = [&](Word bits, Mask&) { return sar(bits << sign, sign); };
      s = take_at_sight(stride, value);  // counted as: lossless
    }
    Mask failed;
    for (; s < count; ++s) store(sampled_row(s), value_of(element_bits(s * stride), failed));
    const auto* const first = elements_of(0);
    const Word last_of_row = splat<Word>(static_cast<Scalar>(first[lanes_of(0) - 1]));
    store_apart(sampled_row(0) - 1, sample_distance, 1, value_of(last_of_row, failed));
    if (count > 1) {
      const Word before = load_apart(first + stride * lanes_per_row - 1, stride * lanes_per_row, count - 1);
      store_apart(sampled_row(1) - 1, sample_distance, count - 1, value_of(before, failed));
    }
    sync();
  }

  // Returns how many are made.
  template <class Value>
  ARRCOMP_METHOD int take_at_sight(int stride, Value value) const {
    const int full = (count_ / lanes_per_row + stride - 1) / stride;
    int s = 0;
    ARRCOMP_ROLLED for (; s + sample_batch <= full; s += sample_batch) {  // counted: sample values, 16 rows
      Word x[sample_batch];
      Mask served = mask(~0u);
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) x[i] = load(elements_of((s + i) * stride));
      ARRCOMP_UNROLL for (Word& v : x) v = value(v, served);
      if (any(~served)) break;
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) store(sampled_row(s + i), x[i]);
    }
    return s;
  }

  // ---- values to words

  ARRCOMP_METHOD int word_bits() const { return head_.transform == Transform::quantized ? T::word_bits : T::width; }

  // Values become words. Notes what is not zero, and the tiles' widths. False where there are too many exceptions.
  ARRCOMP_PART bool map_values() {
    const ExponentFields<Word> fields(context_.element, head_);
    const Word base = splat<Word>(static_cast<Scalar>(head_.base));
    Word before = base;  // the first element's difference is to the base
    nonzero_ = 0;
    live_ = 0;
    words_.begin();
    for (int r = 0; r < rows_; r += rows_per_tile) {
      if constexpr (has_unsorted_tiles) {
        r = map_unsorted_tiles(r, fields, static_cast<Scalar>(head_.base));
        if (r >= rows_) break;
      }
      if (!keeps_rows && head_.difference && r > 0) {
        Mask failed;
        before = final_value(r - 1, failed);
      }
      if (!map_tile(r, fields, base, before)) return false;
    }
    return true;
  }

  ARRCOMP_METHOD bool map_tile(int first, const ExponentFields<Word>& fields, Word base, Word& before) {
    const int end = first + rows_per_tile < rows_ ? first + rows_per_tile : rows_;
    Word all = splat<Word>(0);
    int nonzero = 0;  // of the tile, as registers
    uint64_t live = 0;
    for (int r = first; r < end; ++r) {
      prefetch_bytes(next_ + r * lanes_per_row, lanes_per_row * T::width / 8);
      Mask failed;
      const Word x = final_value(r, failed);
      if constexpr (T::quantizes && !keeps_rows)
        if (head_.transform == Transform::quantized && any(failed) && !except(r, failed)) return false;
      Word u;
      if (head_.transform == Transform::exponent) {
        u = fields.split(x);
      } else {
        u = fold(x - (head_.difference ? shift_in(before, x) : base), head_.plain, word_bits());
        before = x;
      }
      const Mask own = ne(head_.transform == Transform::exponent ? x : u, splat<Word>(0));
      if constexpr (keeps_rows) memory_.coded[r] = bits(own);
      nonzero += count(own);
      live |= static_cast<uint64_t>(bits(own) != 0) << r / rows_per_block;
      words_.store(r, u);
      all = all | u;
    }
    nonzero_ += nonzero;
    live_ |= live;
    note_width(first / rows_per_tile, or_all(all));
    return true;
  }

  // Maps tiles from row `first` on, as long as all of their elements have simple values and all of their blocks are
  // live. Returns the row behind them.
  ARRCOMP_METHOD int map_unsorted_tiles(int first, const ExponentFields<Word>& fields, Scalar base) {
    int r = first;
    if (head_.transform == Transform::quantized && !head_.difference) {
      const Folding<Word> folding(head_.plain);
      const auto map = [&](Word bits, Mask& served) {
        return folding.fold(quantized_at_sight(bits, served) - splat<Word>(base));
      };
      if (counts_zeros())
        r = map_unsorted_tiles<Zeros::of_words>(first, map);  // counted as: quantized
      else
        r = map_unsorted_tiles<Zeros::uncounted>(first, map);  // counted as: fast
    } else if (head_.transform == Transform::exponent && dropped_ == 0) {
      const auto map = [&](Word bits, Mask&) { return fields.split(bits); };
      r = map_unsorted_tiles<Zeros::of_elements>(first, map);  // counted as: exponent
    }
    const auto blocks = [](int row) { return row >= 128 ? ~uint64_t{0} : (uint64_t{1} << row / rows_per_block) - 1; };
    live_ |= blocks(r) & ~blocks(first);
    return r;
  }

  // Which zeros are counted of what is mapped.
  enum class Zeros : uint8_t { of_elements, of_words, uncounted };

  template <Zeros zeros, class Map>
  ARRCOMP_METHOD int map_unsorted_tiles(int r, Map map) {
    using Stored = typename T::storage;
    const int end = rows_of_tiles();
    if (r >= end) return r;
    U32 nonzero = splat<U32>(0);
    const Word one = in_registers(splat<Word>(1));  // else min is a comparison and a choice
    const Stored* at = elements_of(r);
    auto next = fetch_rows<rows_per_tile>(at);
    ARRCOMP_ROLLED for (; r < end; r += rows_per_tile) {  // counted: words, 8 rows
      Word u[rows_per_tile];
      arrive_unsorted(next, u);
      at += r + rows_per_tile < end ? rows_per_tile * lanes_per_row : 0;
      next = fetch_rows<rows_per_tile>(at);
      U32 own = splat<U32>(0);
      Mask is_simple = mask(~0u);
      const auto look = [&]() {
        is_simple = is_simple & nonzero_unsorted<Stored>(u);
        ARRCOMP_UNROLL for (const Word& x : u) own = own + min(x, one);
      };
      if (zeros == Zeros::of_elements) look();
      ARRCOMP_UNROLL for (Word& x : u) x = map(x, is_simple);
      if (zeros == Zeros::of_words) look();
      if (any(~is_simple)) break;
      nonzero = nonzero + own;
      Word all = splat<Word>(0);
      ARRCOMP_UNROLL for (const Word& x : u) all = all | x;
      const Scalar in_any = or_all(all);
      if (zeros == Zeros::uncounted) nonzero_ |= in_any != 0;
      words_.template store_tile<Stored>(r, u, in_any);
      note_width_in_memory(r / rows_per_tile, in_any);
    }
    if (zeros != Zeros::uncounted) nonzero_ += static_cast<int>(sum(nonzero));
    return r;
  }

  // Else a mask is out of the question: it only matters whether all words are zero.
  ARRCOMP_METHOD bool counts_zeros() const { return !context_.fast || head_.transform == Transform::exponent; }

  // `in_any`: the bits that any word of the tile has.
  ARRCOMP_METHOD void note_width(int tile, Scalar in_any) {
    words_.set_width(tile, note_width_in_memory(tile, in_any));
  }
  ARRCOMP_METHOD int note_width_in_memory(int tile, Scalar in_any) {
    const int width = bit_length(in_any);
    if (leader()) memory_.widths[tile] = static_cast<uint8_t>(width);
    return width;
  }

  // ---- the mask

  // A mask by value pays where the zeros would cost raw bits (their shift, or an escape), one by block where many
  // blocks are zero.
  ARRCOMP_PART void choose_mask() {
    coded_rows_ = rows_;
    if (nonzero_ == 0 && head_.transform != Transform::exponent) {
      coded_rows_ = 0;
      return;
    }
    const bool exponent = head_.transform == Transform::exponent;
    if (!counts_zeros()) return;  // zeros are short: a tile's width tells
    const int all = rows_ * lanes_per_row;
    const int dead = (rows_ + rows_per_block - 1) / rows_per_block - live_blocks();
    const int positions = all - dead * rows_per_block * lanes_per_row;
    const int zeros = positions - nonzero_;
    const int zero_cost = exponent ? zero_escape_cost(context_.element, head_) : zero_cost_of_shift();
    if (zeros > 0 && pays_masked(zeros * zero_cost, zeros, positions)) {
      head_.mask = MaskKind::values;
    } else if (dead >= 16 || (dead > 0 && exponent)) {
      head_.mask = MaskKind::blocks;
    }
  }

  // Whether twice the bits that zeros cost pay for their mask: a bit for each place, or marks. These must leave a quarter
  // of a bit a place, as masked words take longer.
  ARRCOMP_METHOD static bool pays_masked(int cost, int zeros, int positions) {
    if (cost > 2 * positions + 128) return true;
    const int shift = bit_length(static_cast<uint32_t>(positions / zeros)) - 1;
    return cost > 2 * static_cast<int>(bits_of_marks(zeros, shift, positions)) + positions / 2;
  }

  ARRCOMP_METHOD int zero_cost_of_shift() {
    const bool few_zeros = nonzero_ * 8 > rows_ * lanes_per_row * 7;
    return few_zeros ? 0 : zero_shift_cost(words_.sample(rows_));
  }

  // Marks instead of a bit for each place, where they are so much shorter that their time pays. Words of floats are long.
  ARRCOMP_METHOD void choose_marks() {
    const uint32_t least_gain = head_.transform == Transform::exponent ? 1024 : 256;  // bits
    const uint32_t bits = bits_of_row_masks(), below = bits > least_gain ? bits - least_gain : 0;
    if (mark_masked(&memory_.missing, memory_.coded, live_, rows_, below)) head_.mask = MaskKind::marks;
  }

  // Leaves only the coded words, in full rows.
  ARRCOMP_PART void compact() {
    const bool by_value = head_.mask == MaskKind::values, exponent = head_.transform == Transform::exponent;
    const Word one = splat<Word>(by_value && !exponent ? 1 : 0);
    Word zero = splat<Word>(0);  // what a zero became; no other element did
    if (exponent) zero = ExponentFields<Word>(context_.element, head_).split(zero);
    int values = 0;
    for (int r = 0; r < rows_; ++r) {
      if ((live_ >> r / rows_per_block & 1) == 0) continue;
      const Word u = words_.load(r);
      Mask lanes = mask(~0u);
      if constexpr (keeps_rows) {
        lanes = mask(by_value ? memory_.coded[r] : ~0u);
      } else if (by_value) {
        lanes = ne(u, zero);
        const uint32_t all_lanes_of_row = bits(lanes);
        if (leader()) memory_.coded[r] = all_lanes_of_row;
      }
      sync();  // all lanes have read before any overwrites
      values = words_.compress(values, u - one, lanes);
    }
    sync();
    words_.all_are_wide();
    coded_rows_ = (values + lanes_per_row - 1) / lanes_per_row;
    if (values % lanes_per_row != 0) {
      const Scalar last = words_.at(values - 1);
      words_.store_at(values, splat<Word>(last));
      sync();
    }
  }

  ARRCOMP_PART void measure_widths() {
    for (int r = 0; r < coded_rows_; r += rows_per_tile) {
      const int end = r + rows_per_tile < coded_rows_ ? r + rows_per_tile : coded_rows_;
      Word all = splat<Word>(0);
      for (int i = r; i < end; ++i) all = all | words_.load(i);
      note_width(r / rows_per_tile, or_all(all));
    }
    sync();
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
