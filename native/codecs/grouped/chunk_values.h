// What is coded of a chunk: its elements become values (quantized, or their bits, or these split at their exponents),
// and values become words, of which a mask may leave only some. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/encoder_memory.h"
#include "codecs/grouped/quantize.h"

namespace arrcomp::ARRCOMP_ISA {

// What encoding knows of the whole array.
struct EncodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  int rounded;   // mantissa bits rounded off before lossless coding
  bool fast;
  const Tables* tables;
};

template <class T>
class ChunkValues {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Memory = EncoderMemory<Scalar>;

  ARRCOMP_METHOD ChunkValues(const EncodeContext& context, const void* array, Memory& memory)
      : context_(context), array_(array), memory_(memory) {}

  // `next` is what is read next.
  ARRCOMP_METHOD void open_chunk(uint64_t first, uint32_t count, uint64_t next) {
    first_ = first;
    count_ = static_cast<int>(count);
    rows_ = (count_ + lanes_per_row - 1) / lanes_per_row;
    next_ = element_pointer<T>(array_, next);
  }

  ARRCOMP_METHOD int lanes_of(int row) const {
    const int left = count_ - row * lanes_per_row;
    return left < lanes_per_row ? left : lanes_per_row;
  }
  ARRCOMP_METHOD Word element_bits(int row) const {
    return load_elements<T>(array_, first_ + static_cast<uint64_t>(row) * lanes_per_row, lanes_of(row));
  }
  ARRCOMP_METHOD Scalar* row_of(int row) const { return memory_.values + row * lanes_per_row; }

  ARRCOMP_METHOD void start(Transform transform) {
    head_ = ChunkHead{};
    head_.transform = transform;
    exceptions_ = 0;
  }

  // Notes the lanes of a row as exceptions; false where there are too many.
  ARRCOMP_METHOD bool except(int row, Mask lanes) {
    const U32 position = prefix_sum(splat<U32>(1)) + splat<U32>(static_cast<uint32_t>(row * lanes_per_row - 1));
    append(memory_.positions + exceptions_, position, lanes);
    exceptions_ += count(lanes);
    return exceptions_ <= max_exceptions;
  }

  ARRCOMP_PART bool quantize() {
    start(Transform::quantized);
    const Quantizer<T> quantizer(context_.bound);
    for (int r = 0; r < rows_; ++r) {
      Mask failed;
      const Word q = quantizer.quantize(element_bits(r), failed);
      store(row_of(r), q);
      if (any(failed)) {
        // Places beyond the array's end repeat its last element: they are no exceptions.
        const int lanes = lanes_of(r);
        if (!except(r, failed & mask(low_mask(lanes)))) return false;
      }
    }
    sync();
    choose_prediction<Word>(head_, memory_.values, rows_, T::word_bits);
    return true;
  }

  ARRCOMP_PART void load_lossless() {
    start(Transform::integer);
    Word all;
    if (!load_rounded(context_.rounded, all)) {
      exceptions_ = 0;
      load_rounded(0, all);
    }
    sync();
    if (context_.element.is_float()) {
      if (choose_exponent<Word>(head_, memory_.values, rows_, or_all(all), context_.element)) return;
      for (int r = 0; r < rows_; ++r) store(row_of(r), order_floats(load(row_of(r)), T::width));
      sync();
      head_.difference = true;
      head_.base = memory_.values[0];
      head_.has_base = head_.base != 0;
    } else {
      if (context_.element.is_signed)
        for (int r = 0; r < rows_; ++r) store(row_of(r), sign_extend(load(row_of(r)), T::width));
      sync();
      choose_prediction<Word>(head_, memory_.values, rows_, T::width);
    }
  }

  // The elements' bits, with mantissas rounded; those that cannot be are exceptions. False where they are too many.
  // `all` gets the bits that any has.
  ARRCOMP_PART bool load_rounded(int dropped, Word& all) {
    all = splat<Word>(0);
    const Word low = splat<Word>((Scalar{1} << dropped) - 1);
    for (int r = 0; r < rows_; ++r) {
      Word bits = element_bits(r);
      if constexpr (T::quantizes) {
        if (dropped > 0) {
          bits = round_mantissa<T>(bits, dropped, context_.element);
          const Mask irregular = ne(bits & low, splat<Word>(0));
          if (any(irregular) && !except(r, irregular & mask(low_mask(lanes_of(r))))) return false;
          bits = bits ^ (bits & low);
        }
      }
      all = all | bits;
      store(row_of(r), bits);
    }
    return true;
  }

  // Values become words, of which those that are coded are left, in full rows.
  ARRCOMP_PART void make_words(int bits) {
    sync();  // the first value has been read before its lane overwrites it
    map_values(bits);
    sync();
    choose_mask();
    if (head_.mask != MaskKind::none) compact();
  }

  const EncodeContext& context_;
  const void* array_;
  Memory& memory_;
  uint64_t first_;
  const typename T::storage* next_;
  int count_, rows_;
  ChunkHead head_;
  int exceptions_;
  int nonzero_;     // words that are not zero
  uint64_t live_;   // blocks with such words
  int coded_rows_;  // rows of words left to the coder

 private:
  // Values become words in place. Notes what is not zero.
  ARRCOMP_PART void map_values(int bits) {
    const ExponentFields<Word> fields(context_.element, head_);
    const Word base = splat<Word>(static_cast<Scalar>(head_.base));
    Word before = base;  // the first element's difference is to the base
    nonzero_ = 0;
    live_ = 0;
    for (int r = 0; r < rows_; ++r) {
      const auto* next = reinterpret_cast<const uint8_t*>(next_ + r * lanes_per_row);
      for (int line = 0; line < lanes_per_row * T::width / 8; line += 64) prefetch(next + line);
      const Word x = load(row_of(r));
      Word u;
      if (head_.transform == Transform::exponent) {
        u = fields.split(x);
      } else {
        u = fold(x - (head_.difference ? shift_in(before, x) : base), head_.plain, bits);
        before = x;
      }
      note_zeros(r, ne(head_.transform == Transform::exponent ? x : u, splat<Word>(0)));
      store(row_of(r), u);
    }
  }

  ARRCOMP_METHOD void note_zeros(int row, Mask nonzero) {
    const uint32_t lanes = ARRCOMP_ISA::bits(nonzero);
    if (leader()) memory_.coded[row] = lanes;
    nonzero_ += count(nonzero);
    live_ |= static_cast<uint64_t>(lanes != 0) << row / rows_per_block;
  }

  ARRCOMP_METHOD int live_blocks() const {
    return count(mask(static_cast<uint32_t>(live_))) + count(mask(static_cast<uint32_t>(live_ >> 32)));
  }

  // A mask by value pays where the zeros would cost raw bits (their shift, or an escape), one by block where many
  // blocks are zero.
  ARRCOMP_PART void choose_mask() {
    coded_rows_ = rows_;
    if (nonzero_ == 0 && head_.transform != Transform::exponent) {
      coded_rows_ = 0;
      return;
    }
    const bool exponent = head_.transform == Transform::exponent;
    if (context_.fast && !exponent) return;  // zeros are short: a tile's width tells
    const int all = rows_ * lanes_per_row;
    const int dead = (rows_ + rows_per_block - 1) / rows_per_block - live_blocks();
    const int positions = all - dead * rows_per_block * lanes_per_row;
    const int zeros = positions - nonzero_;
    const int zero_cost = exponent ? zero_escape_cost(context_.element, head_) : zero_cost_of_shift();
    if (zeros > 0 && zeros * zero_cost > 2 * positions + 128) {
      head_.mask = MaskKind::values;
    } else if (dead >= 16 || (dead > 0 && exponent)) {
      head_.mask = MaskKind::blocks;
    }
  }

  ARRCOMP_METHOD int zero_cost_of_shift() {
    const bool few_zeros = nonzero_ * 8 > rows_ * lanes_per_row * 7;
    return few_zeros ? 0 : zero_shift_cost<Word>(memory_.values, rows_);
  }

  // Leaves only the coded words, in full rows.
  ARRCOMP_PART void compact() {
    Scalar* end = memory_.values;
    const bool by_value = head_.mask == MaskKind::values;
    const Word one = splat<Word>(by_value && head_.transform != Transform::exponent ? 1 : 0);
    for (int r = 0; r < rows_; ++r) {
      if ((live_ >> r / rows_per_block & 1) == 0) continue;
      const Word u = load(row_of(r));
      const Mask lanes = mask(by_value ? memory_.coded[r] : ~0u);
      sync();  // all lanes have read before any overwrites
      end = compress(end, u - one, lanes);
    }
    sync();
    const int values = static_cast<int>(end - memory_.values);
    coded_rows_ = (values + lanes_per_row - 1) / lanes_per_row;
    if (values % lanes_per_row == 0) return;
    const Scalar last = end[-1];
    store(end, splat<Word>(last));
    sync();
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
