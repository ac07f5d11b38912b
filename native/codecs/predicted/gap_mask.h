// The bits of a mask of gaps on their way between elements and bytes (stream/gap_mask.h; FORMAT.md, section 9.5).
#pragma once
#include "codecs/predicted/code.h"
#include "stream/gap_mask.h"

namespace arrcomp::ARRCOMP_ISA {

// A mask's bits of pieces of lines.
template <class T>
class MaskBits {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Piece = MaskGrid::Piece;

 public:
  ARRCOMP_METHOD explicit MaskBits(const GapMask& mask)
      : fill_(splat<Word>(static_cast<Scalar>(mask.fill))), differ_(mask.has_differences(max_axes - 1)) {}

  // Writes the bytes of a piece: those of the mask, or of its differences along the line.
  ARRCOMP_PART void find(const Piece& piece, const void* source, uint8_t* bytes) const {
    uint32_t before = 0;
    each_row(piece, bytes, [&](uint64_t i, int n, uint8_t* own) ARRCOMP_LAMBDA {
      const uint32_t found = bits(eq(load_elements<T>(source, i, n), fill_)) & low_mask(n);
      const uint32_t others = differ_ ? found << 1 | before : 0;
      before = found >> (lanes_per_row - 1);
      write(own, n, (found ^ others) & low_mask(n));
    });
  }

  // Puts the fill in its places, as far as these are in [begin, end).
  ARRCOMP_PART void put(const Piece& piece, const uint8_t* bytes, uint64_t begin, uint64_t end, void* target) const {
    uint32_t before = 0;
    each_row(piece, bytes, [&](uint64_t i, int n, const uint8_t* own) ARRCOMP_LAMBDA {
      uint32_t found = read(own, n);
      if (differ_) {
        for (int distance = 1; distance < lanes_per_row; distance *= 2) found ^= found << distance;
        found ^= before;
        before = 0 - (found >> (lanes_per_row - 1));
      }
      const uint64_t first = i < begin ? begin : i,
                     last = i + static_cast<uint64_t>(n) < end ? i + static_cast<uint64_t>(n) : end;
      if (first >= last) return;
      const auto own_lanes = static_cast<int>(last - first);
      found = found >> (first - i) & low_mask(own_lanes);
      if (found == 0) return;
      replace_elements<T>(target, first, own_lanes,
                          select(mask(found), fill_, load_elements<T>(target, first, own_lanes)));
    });
  }

 private:
  static constexpr int bits_of_byte = MaskGrid::bits_of_byte;

  // visit(first, n, bytes) of the rows of a piece.
  template <class Byte, class Visit>
  ARRCOMP_METHOD static void each_row(const Piece& piece, Byte* bytes, Visit visit) {
    for_each_row(piece.first, piece.count, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      visit(i, n, bytes + piece.byte + (i - piece.first) / bits_of_byte);
    });
  }

  ARRCOMP_METHOD static void write(uint8_t* bytes, int n, uint32_t word) {
    if (!leader()) return;
    for (int at = 0; at < n; at += bits_of_byte)
      bytes[at / bits_of_byte] = static_cast<uint8_t>(word >> at & ((1u << bits_of_byte) - 1));
  }

  ARRCOMP_METHOD static uint32_t read(const uint8_t* bytes, int n) {
    uint32_t word = 0;
    for (int at = 0; at < n; at += bits_of_byte) word |= (bytes[at / bits_of_byte] & ((1u << bits_of_byte) - 1)) << at;
    return word;
  }

  Word fill_;
  bool differ_;
};

// Differences of a mask's bytes along an axis but the last, in place, and back: of blocks of `size` slices of `inner` bytes. A
// unit is so many bytes of all slices of a block.
class MaskSlices {
 public:
  ARRCOMP_METHOD MaskSlices(uint8_t* bytes, uint64_t size, uint64_t inner, uint64_t unit) : size_(size), inner_(inner) {
    const Column column(inner, unit);
    width_ = column.width;
    begin_ = bytes + column.block * size * inner + column.begin;
  }

  ARRCOMP_PART void take() const {
    for (uint64_t i = size_; --i > 0;) add_slice_before(i);
  }
  ARRCOMP_PART void add() const {
    for (uint64_t i = 1; i < size_; ++i) add_slice_before(i);
  }

 private:
  ARRCOMP_METHOD void add_slice_before(uint64_t slice) const {
    uint8_t* const own = begin_ + slice * inner_;
    for_each_row(0, width_, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      replace_elements<Bits8>(own, i, n, load_elements<Bits8>(own, i, n) ^ load_elements<Bits8>(own - inner_, i, n));
    });
  }

  uint64_t size_, inner_, width_;
  uint8_t* begin_;
};

}  // namespace arrcomp::ARRCOMP_ISA
