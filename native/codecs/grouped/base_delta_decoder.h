// Decodes groups of base-delta chunks. Every read is checked against the group's bounds before anything is decoded.
// FORMAT.md, section 6.
#pragma once
#include "codecs/grouped/base_delta.h"
#include "codecs/grouped/chunk_reader.h"

namespace arrcomp::ARRCOMP_ISA {

// Finds the parts of a chunk.
template <class T>
struct LineChunkReader {
  using Scalar = typename T::Word::scalar;
  static constexpr int step = width_step(T::width);

  LineChunk kind;
  WordForm form;
  int count, rows, coded_rows;  // elements and rows of the chunk, and rows of its lines
  bool has_masks;
  uint64_t live, masked;  // lines
  const uint8_t* row_masks;
  const uint8_t* tags;
  const uint8_t* bases;
  const uint8_t* bits;
  const uint8_t* bits_end;

  // Reads the chunk at `in` and moves past it; false where it is corrupt.
  ARRCOMP_PART bool read(const uint8_t*& in, const uint8_t* end, int elements) {
    count = elements;
    rows = coded_rows = (elements + lanes_per_row - 1) / lanes_per_row;
    const uint8_t* header;
    if (!section(in, end, line_chunk_header_bytes, header) || !read_header(read_number<uint32_t>(header))) return false;
    uint32_t base_count = 0, row_bits = 0;
    if (kind == LineChunk::raw) row_bits = static_cast<uint32_t>(rows * T::width);
    if (kind == LineChunk::lines && (!read_masks(in, end) || !read_tags(in, end, base_count, row_bits))) return false;
    if (!section(in, end, (base_count * (T::width / 8) + 3) / 4 * 4, bases)) return false;
    if (!section(in, end, packed_bytes(row_bits), bits)) return false;
    bits_end = in;
    return true;
  }

  // The lanes of a row of a masked chunk that are coded.
  ARRCOMP_PART uint32_t lanes_of(int row) const {
    const int line = row / rows_per_line;
    if ((live >> line & 1) == 0) return 0;
    if ((masked >> line & 1) == 0) return ~0u;
    const int before = popcount(masked & ((uint64_t{1} << line) - 1));
    return read_number<uint32_t>(row_masks + 8 * before + 4 * (row % rows_per_line));
  }

  ARRCOMP_METHOD int lines() const { return (coded_rows + rows_per_line - 1) / rows_per_line; }
  ARRCOMP_METHOD int rows_of(int line) const {
    return coded_rows - line * rows_per_line < rows_per_line ? 1 : rows_per_line;
  }

  // The code of the next line, whose bases begin at `base`, which moves past them.
  ARRCOMP_METHOD LineCode<Scalar> code_of(int line, const uint8_t*& base) const {
    LineCode<Scalar> code = LineCode<Scalar>::of(kind == LineChunk::raw ? raw_line << 5 : tags[line], step, form.bits);
    const int n = code.base_count();
    if (n > 0) code.bases[0] = read_number<typename T::storage>(base);
    if (n > 1) code.bases[1] = read_number<typename T::storage>(base + T::width / 8);
    base += n * (T::width / 8);
    return code;
  }

 private:
  ARRCOMP_METHOD static int popcount(uint64_t x) {
    return ARRCOMP_ISA::count(mask(static_cast<uint32_t>(x))) +
           ARRCOMP_ISA::count(mask(static_cast<uint32_t>(x >> 32)));
  }

  ARRCOMP_METHOD static bool section(const uint8_t*& in, const uint8_t* end, uint32_t bytes, const uint8_t*& begin) {
    if (end - in < static_cast<int64_t>(bytes)) return false;
    begin = in;
    in += bytes;
    return true;
  }

  ARRCOMP_METHOD bool read_header(uint32_t header) {
    kind = static_cast<LineChunk>(header & 3);
    form.sign_last = (header >> 2 & 1) != 0;
    has_masks = (header >> 3 & 1) != 0;
    form.shift = static_cast<int>(header >> 8 & 255);
    form.bits = T::width - form.shift;
    if ((header & 3) == 3 || (header & 0xffff00f0) != 0 || form.shift >= T::width) return false;
    return kind == LineChunk::lines || header >> 2 == 0;
  }

  ARRCOMP_PART bool read_masks(const uint8_t*& in, const uint8_t* end) {
    if (!has_masks) return true;
    const uint8_t* words;
    if (!section(in, end, 16, words)) return false;
    live = read_number<uint64_t>(words);
    masked = read_number<uint64_t>(words + 8);
    const int all = (rows + rows_per_line - 1) / rows_per_line;
    if ((all < 64 && live >> all != 0) || (masked & ~live) != 0) return false;
    if (!section(in, end, static_cast<uint32_t>(8 * popcount(masked)), row_masks)) return false;
    // The last row is none where the number of rows is odd.
    const bool is_odd = rows % rows_per_line != 0;
    if (is_odd && (masked >> (all - 1) & 1) != 0 && read_number<uint32_t>(in - 4) != 0) return false;
    int words_coded = popcount(live & ~masked) * rows_per_line * lanes_per_row;
    if (is_odd && ((live & ~masked) >> (all - 1) & 1) != 0) words_coded -= lanes_per_row;
    for (const uint8_t* p = row_masks; p < in; p += 4)
      words_coded += ARRCOMP_ISA::count(mask(read_number<uint32_t>(p)));
    coded_rows = (words_coded + lanes_per_row - 1) / lanes_per_row;
    return true;
  }

  // Counts the bases and the bits of all rows, the tags of 32 lines at a time.
  ARRCOMP_PART bool read_tags(const uint8_t*& in, const uint8_t* end, uint32_t& base_count, uint32_t& row_bits) {
    const int n = lines();
    if (!section(in, end, static_cast<uint32_t>(n + 3) & ~3u, tags)) return false;
    for (int line = 0; line < n; line += lanes_per_row) {
      const int here = n - line < lanes_per_row ? n - line : lanes_per_row;
      const Mask is_line = mask(low_mask(here));
      const U32 tag = load_first(tags + line, here), mode = tag >> 5, zero = splat<U32>(0);
      const Mask is_raw = eq(mode, splat<U32>(raw_line));
      const U32 bases_here = select(is_raw, zero, (mode + splat<U32>(1)) >> 1);
      const U32 width = (tag & splat<U32>(31)) * splat<U32>(step) + (mode >> 1);
      const Mask is_wrong = lt(splat<U32>(largest_line_mode), mode) | lt(splat<U32>(T::word_bits), width);
      if (any(select_mask(is_raw, ne(tag & splat<U32>(31), zero), is_wrong))) return false;
      base_count += sum(select(is_line, bases_here, zero));
      const U32 bits_here = select(is_raw, splat<U32>(static_cast<uint32_t>(form.bits)), width);
      row_bits += rows_per_line * sum(select(is_line, bits_here, zero));
      if (line + here == n && coded_rows % rows_per_line != 0)
        row_bits -= sum(select(is_line & ~mask(low_mask(here - 1)), bits_here, zero));
    }
    return true;
  }

  ARRCOMP_METHOD static Mask select_mask(Mask m, Mask yes, Mask no) { return (m & yes) | (~m & no); }
};

template <class T>
class BaseDeltaDecoder {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  // Of the group in [begin, end), whose `count` elements go to `array` from `first` on. `waiting` is memory for
  // waiting_words words.
  ARRCOMP_METHOD BaseDeltaDecoder(const uint8_t* begin, const uint8_t* end, void* array, uint64_t first, uint32_t count,
                                  Scalar* waiting)
      : in_(begin), end_(end), array_(array), first_(first), count_(count), waiting_(waiting) {}

  // False where the group is corrupt.
  ARRCOMP_PART bool decode() {
    for (uint32_t done = 0; done < count_; done += chunk_size) {
      const uint32_t elements = count_ - done < chunk_size ? count_ - done : chunk_size;
      if (!chunk_.read(in_, end_, static_cast<int>(elements))) return false;
      chunk_first_ = first_ + done;
      decode_chunk();
    }
    return in_ == end_;
  }

 private:
  ARRCOMP_PART void decode_chunk() {
    bits_ = BitReader(chunk_.bits, chunk_.bits_end);
    base_ = chunk_.bases;
    if (chunk_.kind == LineChunk::zero) {
      for (int r = 0; r < chunk_.rows; ++r) write_row(r, splat<Word>(0));
    } else if (chunk_.kind == LineChunk::lines && chunk_.has_masks) {
      decode_masked();
    } else {
      decode_unmasked();
    }
  }

  ARRCOMP_PART void decode_unmasked() {
    const WordForm form = chunk_.form;
    BitReader bits = bits_;  // a copy, as registers
    for (int line = 0; line < chunk_.lines(); ++line) {
      const LineCode<Scalar> code = chunk_.code_of(line, base_);
      const LineCoder<Word> coder(code, form.bits);
      const int row = line * rows_per_line, width = code.row_bits();
      for (int r = row; r < row + chunk_.rows_of(line); ++r)
        write_row(r, form.element(coder.decode(bits.get(width, Word{}))));
    }
  }

  ARRCOMP_PART void decode_masked() {
    const Scalar* next = waiting_;  // of `have` waiting words
    int have = 0, line = 0;
    for (int r = 0; r < chunk_.rows; ++r) {
      const Mask coded = mask(chunk_.lanes_of(r));
      if (have < count(coded)) {
        refill(next, have, line);
        next = waiting_;
      }
      Word x;
      next = expand(next, x, coded);
      have -= count(coded);
      write_row(r, chunk_.form.element(x));
    }
  }

  // Moves the waiting words, fewer than a row, to the front and puts those of a line after them.
  ARRCOMP_PART void refill(const Scalar* next, int& have, int& line) {
    const Word rest = load(next);
    sync();
    store(waiting_, rest);
    sync();
    const LineCode<Scalar> code = chunk_.code_of(line, base_);
    const LineCoder<Word> coder(code, chunk_.form.bits);
    for (int r = 0; r < chunk_.rows_of(line); ++r, have += lanes_per_row)
      store(waiting_ + have, coder.decode(bits_.get(code.row_bits(), Word{})));
    ++line;
    sync();
  }

  ARRCOMP_METHOD void write_row(int row, Word bits) const {
    const int left = chunk_.count - row * lanes_per_row;
    store_elements<T>(array_, chunk_first_ + static_cast<uint64_t>(row) * lanes_per_row,
                      left < lanes_per_row ? left : lanes_per_row, bits);
  }

  const uint8_t* in_;
  const uint8_t* end_;
  void* array_;
  uint64_t first_;
  uint32_t count_;
  Scalar* waiting_;

  // the chunk being decoded
  LineChunkReader<T> chunk_;
  uint64_t chunk_first_;
  const uint8_t* base_;  // the next line's
  BitReader bits_;
};

}  // namespace arrcomp::ARRCOMP_ISA
