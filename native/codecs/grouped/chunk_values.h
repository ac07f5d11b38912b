// What is coded of a chunk: its elements become values (quantized, or their bits, or these split at their exponents).
// FORMAT.md, sections 3 and 4.
//
// How values become words is chosen by a sample of them. Where memory is near they are all kept until then; elsewhere
// those of the sample are made first, and all of them where their words are.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/chunk_multiples.h"
#include "codecs/grouped/chunk_words.h"
#include "codecs/grouped/dictionary.h"
#include "codecs/grouped/dictionary_order.h"
#include "codecs/grouped/integer_multiples.h"
#include "codecs/grouped/left_out.h"
#include "codecs/grouped/quantize.h"

namespace arrcomp::ARRCOMP_ISA {

// What encoding knows of the whole array.
template <class T>
struct EncodeContext {
  const void* array;
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  int rounded;   // mantissa bits rounded off before lossless coding
  bool fast;
  bool may_have_classes;
  bool has_fill;
  double fill;  // stands for no value
  const Tables* tables;
  Quantizer<T> quantizer;

  ARRCOMP_METHOD EncodeContext(const void* its_array, const Element& its_element, double its_bound, int its_rounded,
                               const GroupSettings& settings, const Tables* its_tables)
      : array(its_array),
        element(its_element),
        bound(its_bound),
        rounded(its_rounded),
        fast(settings.fast),
        may_have_classes(!settings.fast && !settings.is_part),
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

  ARRCOMP_METHOD ChunkValues(const EncodeContext<T>& context, Memory& memory, NearMemory* near)
      : context_(context), memory_(memory), words_(words_in(memory, near)) {}

  // `next` is what is read next.
  ARRCOMP_METHOD void open_chunk(uint64_t first, uint32_t count, uint64_t next) {
    leaves_out_ = false;
    numbering_ = no_numbers;
    set_elements({element_pointer<T>(context_.array, first), static_cast<int>(count)});
    next_ = element_pointer<T>(context_.array, next);
  }

  ARRCOMP_METHOD int lanes_of(int row) const {
    const int left = count_ - row * lanes_per_row;
    return left < lanes_per_row ? left : lanes_per_row;
  }
  ARRCOMP_METHOD const typename T::storage* elements_of(int row) const { return elements_ + row * lanes_per_row; }
  ARRCOMP_METHOD Word element_bits(int row) const { return load_row(elements_of(row), lanes_of(row)); }

  ARRCOMP_METHOD void start(Transform transform) {
    head_ = ChunkHead{};
    head_.transform = transform;
    if (!has_multiples()) exceptions_ = 0;  // those of multiples are no such
    index_bits_ = multiples_ = 0;
  }

  // ---- elements that are left out

  // Leaves out the elements that are like some exception that is like the one after it.
  ARRCOMP_METHOD bool leave_out_exceptions() {
    const int exceptions = exceptions_;
    if (has_numbers()) use(no_numbers);
    sync();  // the positions are written
    for (int e = 1; e < exceptions; ++e) {
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
    const int present = leave_out_elements<T>(&memory_.missing, {elements_, count_}, memory_.values, fill, least);
    if (present < 0) return false;
    set_elements({memory_.missing.elements, present});
    leaves_out_ = true;
    return true;
  }

  // All of the chunk's elements again.
  ARRCOMP_METHOD void leave_nothing_out() {
    if (has_numbers()) use(no_numbers);
    if (!leaves_out_) return;
    set_elements(memory_.missing.chunk);
    leaves_out_ = false;
  }

  // ---- elements that have numbers: places in a dictionary, or what counts multiples

  // Of multiples it is their kind. Ranks are places in a dictionary whose more frequent entries come first.
  static constexpr int no_numbers = 0, places = -1, ranks = -2;

  ARRCOMP_METHOD bool has_numbers() const { return may_have_dictionary && numbering_ != no_numbers; }
  ARRCOMP_METHOD bool has_sure_multiples() const {
    return multiples_ > 0 && (context_.element.is_float() || memory_.numbered.are_sure);
  }
  ARRCOMP_METHOD bool has_multiples() const { return may_have_multiples && numbering_ > no_numbers; }

  // The elements themselves, of those that are present.
  ARRCOMP_METHOD ElementRange own_elements() const {
    return has_numbers() ? memory_.numbered.elements : ElementRange{elements_, count_};
  }

  // Puts numbers in the place of elements, or these again; false where too many have none.
  ARRCOMP_PART bool use(int numbering) {
    const ElementRange own = own_elements();
    set_elements(own);
    numbering_ = numbering;
    exceptions_ = 0;
    if (numbering == no_numbers) return true;
    auto* const numbers = reinterpret_cast<typename T::storage*>(memory_.numbered.numbers);
    bool are_few_exceptions = true;
    if (has_multiples()) {
      if constexpr (may_have_multiples) are_few_exceptions = number_multiples(own, numbers);
    } else {
      index_elements<T>(&memory_.dictionary, context_.element, own, numbering == ranks, numbers);
    }
    if (leader()) memory_.numbered.elements = own;
    sync();
    set_elements({numbers, own.count});
    return are_few_exceptions;
  }

  ARRCOMP_METHOD void forget_dictionary() {
    if (!leader()) return;
    memory_.dictionary.entries = 0;
    memory_.dictionary.is_ranked = memory_.dictionary.is_hopeless = false;
  }

  // Of the chunk's elements, and of those before it in its group, which may be as few.
  ARRCOMP_METHOD DictionaryFound find_own_dictionary(uint64_t group_first, uint32_t entries_that_pay) {
    const ElementRange own = own_elements();
    const auto* const group = element_pointer<T>(context_.array, group_first);
    const auto* const chunk = element_pointer<T>(leaves_out_ ? memory_.missing.chunk.begin : own.begin, 0);
    return find_dictionary<T>(&memory_.dictionary, context_.element, own, {group, static_cast<int>(chunk - group)},
                              entries_that_pay);
  }

  // In bits, of the chunk's places in a dictionary.
  ARRCOMP_METHOD uint32_t entropy_of_places() {
    const auto* const numbers = reinterpret_cast<const typename T::storage*>(memory_.numbered.numbers);
    return entropy_of_indices<T>(&memory_.dictionary, numbers, count_);
  }

  // Notes which chunks of a group may have multiples that tell elements in fewer bits than the bound does. (For all chunks
  // before the first, as a GPU's registers are free then.)
  ARRCOMP_PART void look_for_wider_multiples([[maybe_unused]] uint64_t first, [[maybe_unused]] uint32_t count) {
    if constexpr (may_have_wider_multiples) {
      if (context_.fast || context_.bound == 0) return;
      const auto* const elements = element_pointer<T>(context_.array, first);
      for (uint32_t begin = 0; begin < count; begin += chunk_size) {
        const uint32_t left = count - begin;
        const int rows = static_cast<int>(left < chunk_size ? left : chunk_size) / lanes_per_row;
        int others = -1;
        if (rows > 0)
          others =
              others_of_wider_multiples<T>({elements + begin, sample_stride(rows) * lanes_per_row, samples_of(rows)},
                                           context_.tables, context_.element, context_.bound);
        if (leader()) memory_.most_others[begin / chunk_size] = static_cast<int16_t>(others);
      }
      sync();
    }
  }

  // ---- elements to values, and how these will become words

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
    choose_prediction<Word>(head_, samples(), T::word_bits, sample_stride(rows_));
    repeated_ = find_repeated(true);
    return true;
  }

  ARRCOMP_PART void load_lossless() {
    start(has_numbers() ? Transform::numbered : Transform::integer);
    Word all;
    dropped_ = context_.rounded;
    if (!load_rounded(all)) {
      exceptions_ = 0;
      dropped_ = 0;
      load_rounded(all);
    }
    sync();
    if (!keeps_rows) take_samples();
    if constexpr (may_have_dictionary) {
      if (!has_numbers() && context_.rounded == 0) look_for_numbers(or_all(all));
    }
    repeated_ = find_repeated(false);
    if (context_.element.is_float() && !has_numbers()) {
      exponent_shift_ = choose_exponent<T::width>(head_, samples(), or_all(all), context_.element);
      if (exponent_shift_ >= 0) return;
      head_.difference = true;
      head_.base = or_all(order_floats(splat<Word>(samples().rows[0]), T::width));
      head_.has_base = head_.base != 0;
      reorder_kept([&](Word x) ARRCOMP_LAMBDA { return order_floats(x, T::width); });
    } else {
      choose_prediction<Word>(head_, samples(), T::width, sample_stride(rows_));
    }
  }

  // `all`: the bits that any value has.
  ARRCOMP_METHOD void look_for_numbers([[maybe_unused]] Scalar all) {
    if constexpr (T::width == 8) {
      if (all > 3 && !memory_.dictionary.is_hopeless)
        index_bits_ = bits_of_bytes<T>(&memory_.dictionary, samples(), context_.fast);
    } else {
      index_bits_ = bits_of_indices<T>(samples(), context_.fast);
    }
    if constexpr (may_have_multiples)
      if (!context_.element.is_float()) look_for_integer_multiples();
    if constexpr (may_have_wider_multiples)
      if (context_.element.is_float())
        multiples_ = find_multiples<T>(samples(), context_.tables, context_.element.mantissa_bits);
  }

  ARRCOMP_METHOD void look_for_integer_multiples() {
    const FoundIntegers<Scalar> found = find_integer_multiples<T>(samples(), context_.element.is_signed);
    if (found.multiples.unit == 0) return;
    if (leader()) {
      memory_.numbered.integers = found.multiples;
      memory_.numbered.are_sure = found.told_by == enough_integers;
    }
    sync();
    multiples_ = integer_multiples;
  }

  // Multiples; false where too many elements are none.
  ARRCOMP_METHOD bool number_multiples(const ElementRange& own, typename T::storage* numbers) {
    uint32_t* const failed = memory_.numbered.failed;
    if (count_any_multiples(own, numbers, failed)) return true;
    for (int r = 0; r < rows_; ++r)
      if (failed[r] != 0 && !except(r, mask(failed[r]))) return false;
    return true;
  }

  ARRCOMP_METHOD bool count_any_multiples(const ElementRange& own, typename T::storage* numbers, uint32_t* failed) {
    if constexpr (may_have_wider_multiples)
      if (context_.element.is_float()) return count_multiples<T>(context_.element, numbering_, own, numbers, failed);
    return count_integers<T>(memory_.numbered.integers, context_.element.is_signed, own, numbers, failed);
  }

  // ---- what is mapped to words

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

  // What elements are when quantized, at first sight: right in those of the lanes `served` that are left.
  ARRCOMP_METHOD Word quantized_at_sight(Word bits, [[maybe_unused]] Mask& served) const {
    if constexpr (T::quantizes) {
      Mask own;
      bits = context_.quantizer.nearest(bits, own);
      served = served & own;
    }
    return bits;
  }

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

  // Rows of whole tiles that stand as fetch_rows has them.
  ARRCOMP_METHOD int rows_of_tiles() const {
    if (reinterpret_cast<uintptr_t>(elements_of(0)) % 16 != 0) return 0;
    return count_ / (rows_per_tile * lanes_per_row) * rows_per_tile;
  }

  // Not bfloat16: its values are alike by chance.
  static constexpr bool may_have_dictionary = !std::is_same_v<T, BFloat16>;
  static constexpr bool may_have_multiples = may_have_dictionary && T::width >= least_width_of_integer_multiples;
  static constexpr bool may_have_wider_multiples = T::quantizes && T::width >= least_width_of_multiples;  // of floats
  static constexpr bool has_unsorted_tiles = splits_words<Word> && T::width >= 16;

  const EncodeContext<T>& context_;
  Memory& memory_;
  ChunkWords<Word> words_;
  const typename T::storage* elements_;
  const typename T::storage* next_;
  int count_, rows_;
  bool leaves_out_;  // elements that are missing: these are the others
  int numbering_;    // by which the elements are numbers
  int repeated_;     // the place of an element that may be worth leaving out, with all equal ones; or -1
  int index_bits_;   // of 16 indices, where elements may be few different ones, else 0
  int multiples_;    // the kind of which elements may be multiples, else 0
  ChunkHead head_;
  int exponent_shift_;  // low bits of the words of exponents, which their symbols leave
  int dropped_;         // bits of the mantissa that are rounded off
  int exceptions_;

 private:
  ARRCOMP_METHOD void set_elements(const ElementRange& elements) {
    elements_ = element_pointer<T>(elements.begin, 0);
    count_ = elements.count;
    rows_ = (count_ + lanes_per_row - 1) / lanes_per_row;
  }

  ARRCOMP_METHOD static ChunkWords<Word> words_in(Memory& memory, [[maybe_unused]] NearMemory* near) {
    if constexpr (splits_words<Word>) {
      return SplitWords(*near, memory.upper);
    } else {
      return WholeWords<Word>(memory);
    }
  }

  // ---- values

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

  ARRCOMP_METHOD Word bits_at_sight(Word bits) const {
    return is_signed_integer() ? sign_extend(bits, T::width) : bits;
  }
  ARRCOMP_METHOD bool is_signed_integer() const { return context_.element.is_signed && !context_.element.is_float(); }

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

  // The place of an element that may be worth leaving out, with all that have its value: one that a part of the sample
  // repeats, in long runs, or far from all others. Else -1.
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
    const Repeats found{repeats, looked, index_bits_ > 0 || has_sure_multiples(), quantized};
    if (!found.may_be_apart()) return -1;
    const int lane = bit_length(lanes) - 1;
    const Scalar value = sample.rows[row * sample.distance + lane];
    return is_apart<Word, T::word_bits>(value, sample, found) ? row * distance * lanes_per_row + lane : -1;
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
    const int full = (count_ / lanes_per_row + stride - 1) / stride, distance = stride * lanes_per_row;
    const auto* row = elements_of(0);
    int s = 0;
    ARRCOMP_ROLLED for (; s + sample_batch <= full; s += sample_batch) {  // counted: sample values, 16 rows
      Word x[sample_batch];
      Mask served = mask(~0u);
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) x[i] = load(row + i * distance);
      ARRCOMP_UNROLL for (Word& v : x) v = value(v, served);
      if (any(~served)) break;
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) store(sampled_row(s + i), x[i]);
      row += sample_batch * distance;
    }
    return s;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
