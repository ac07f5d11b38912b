// Encodes a group of base-delta chunks: elements to words, zeros out of the way, a code for each line, bits. FORMAT.md,
// section 6.
#pragma once
#include "codecs/grouped/base_delta_choice.h"
#include "codecs/grouped/base_delta_memory.h"
#include "codecs/grouped/drop_bits.h"

namespace arrcomp::ARRCOMP_ISA {

// What encoding knows of the whole array.
struct BaseDeltaContext {
  Element element;
  BaseDeltaSettings settings;
  uint64_t seed;
};

template <class T>
class BaseDeltaEncoder {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Memory = BaseDeltaMemory<Scalar>;
  static constexpr int step = width_step(T::width);

 public:
  // `array` points to element `origin` of the whole.
  ARRCOMP_METHOD BaseDeltaEncoder(const BaseDeltaContext& context, const void* array, uint64_t origin, Memory& memory)
      : context_(context), array_(array), origin_(origin), memory_(memory) {}

  // Encodes `count` elements from `first` on (at most 4 chunks); the bytes are then copied out by `copy_to`. Returns
  // their number.
  ARRCOMP_PART uint32_t encode(uint64_t first, uint32_t count) {
    out_ = memory_.bytes;
    for (uint32_t done = 0; done < count; done += chunk_size) {
      first_ = first + done;
      count_ = static_cast<int>(count - done < chunk_size ? count - done : chunk_size);
      rows_ = (count_ + lanes_per_row - 1) / lanes_per_row;
      encode_chunk();
    }
    return static_cast<uint32_t>(out_ - memory_.bytes);
  }

  ARRCOMP_PART void copy_to(uint8_t* out) const {
    sync();
    copy_bytes(out, memory_.bytes, static_cast<uint32_t>(out_ - memory_.bytes));
  }

 private:
  ARRCOMP_METHOD Scalar* row_of(int row) { return memory_.values + row * lanes_per_row; }
  ARRCOMP_METHOD static int lines_of(int rows) { return (rows + rows_per_line - 1) / rows_per_line; }
  ARRCOMP_METHOD static uint32_t padded(int bytes) { return static_cast<uint32_t>(bytes + 3) & ~3u; }

  ARRCOMP_PART void encode_chunk() {
    sync();  // the chunk before is written
    if (!load_elements_of_chunk()) {
      write_header(LineChunk::zero, false);
      return;
    }
    make_words();
    choose_masks();
    const uint32_t bytes = choose_lines();
    if (bytes < raw_bytes()) {
      write_lines();
    } else {
      write_raw();
    }
  }

  ARRCOMP_METHOD uint32_t raw_bytes() const {
    return line_chunk_header_bytes + packed_bytes(static_cast<uint32_t>(rows_ * T::width));
  }

  // ---- elements to words

  // The elements' bits, rounded; false where all are 0. Finds the form of the chunk's words.
  ARRCOMP_PART bool load_elements_of_chunk() {
    const BitDropper<T> dropper(context_.settings, context_.element);
    Word in_any = splat<Word>(0), in_all = splat<Word>(static_cast<Scalar>(~Scalar{0}));
    for (int r = 0; r < rows_; r += 4) {
      RandomWords random{};
      if (dropper.is_random()) random = random_rows(context_.seed, (origin_ + first_) / (4 * lanes_per_row) + r / 4);
      ARRCOMP_UNROLL for (int j = 0; j < 4; ++j) {
        if (r + j >= rows_) break;
        Word x = elements_of(r + j);
        if constexpr (T::quantizes)
          if (dropper.drops()) x = dropper.drop(x, random.word[j]);
        store(row_of(r + j), x);
        in_any = in_any | x;
        in_all = in_all & x;
      }
    }
    const Scalar some = or_all(in_any);
    if (some == 0) return false;
    form_.shift = bit_length(static_cast<Scalar>(some & (Scalar{0} - some))) - 1;
    form_.bits = T::width - form_.shift;
    const Scalar differ = some & or_all(in_all ^ splat<Word>(static_cast<Scalar>(~Scalar{0})));
    form_.sign_last = context_.element.is_float() && (differ >> (T::width - 1) & 1) != 0;
    return true;
  }

  ARRCOMP_METHOD Word elements_of(int row) const {
    const int left = count_ - row * lanes_per_row;
    const auto* ahead = element_pointer<T>(array_, first_ + static_cast<uint64_t>(row) * lanes_per_row + chunk_size);
    prefetch_bytes(ahead, lanes_per_row * T::width / 8);
    return load_elements<T>(array_, first_ + static_cast<uint64_t>(row) * lanes_per_row,
                            left < lanes_per_row ? left : lanes_per_row);
  }

  // Elements become words in place. Notes which are not 0.
  ARRCOMP_PART void make_words() {
    nonzero_ = 0;
    for (int r = 0; r < rows_; ++r) {
      const Word x = form_.word(load(row_of(r)));
      store(row_of(r), x);
      const uint32_t lanes = bits(ne(x, splat<Word>(0)));
      if (leader()) memory_.coded[r] = lanes;
      nonzero_ += count(mask(lanes));
    }
    sync();
  }

  // ---- zeros

  // Lines that are all 0 are left out, and of others the zeros where that saves more than the 64 bits that say where
  // they are.
  ARRCOMP_PART void choose_masks() {
    live_ = masked_ = 0;
    has_masks_ = false;
    coded_rows_ = rows_;
    if (nonzero_ == rows_ * lanes_per_row) return;
    int saved = -128;  // bits: of the two words that say which lines are left out, or masked
    for (int line = 0; line < lines_of(rows_); ++line) {
      const int positions = rows_of(line, rows_) * lanes_per_row, zeros = positions - nonzero_of(line);
      if (zeros == positions) {
        saved += 8;
        continue;
      }
      live_ |= uint64_t{1} << line;
      const int worth = zeros == 0 ? 0 : zeros * word_bits_of(line) - 2 * lanes_per_row;
      if (worth <= 0) continue;
      masked_ |= uint64_t{1} << line;
      saved += worth;
    }
    has_masks_ = saved > 0;
    if (has_masks_) compact();
  }

  ARRCOMP_METHOD static int rows_of(int line, int rows) {
    return rows - line * rows_per_line < rows_per_line ? 1 : rows_per_line;
  }
  ARRCOMP_METHOD int nonzero_of(int line) const {
    const int row = line * rows_per_line;
    const int first = count(mask(memory_.coded[row]));
    return row + 1 < rows_ ? first + count(mask(memory_.coded[row + 1])) : first;
  }

  // Bits of a line's longest word; of negative integers too.
  ARRCOMP_METHOD int word_bits_of(int line) {
    const int row = line * rows_per_line;
    return bit_length(or_all(magnitudes(row) | magnitudes(row + 1 < rows_ ? row + 1 : row)));
  }
  ARRCOMP_METHOD Word magnitudes(int row) {
    const Word x = load(row_of(row));
    if (!context_.element.is_signed || context_.element.is_float()) return x;
    const Word wide = sign_extend(x, form_.bits);
    return wide ^ sar(wide, T::word_bits - 1);
  }

  // Leaves only the coded words, in full rows.
  ARRCOMP_PART void compact() {
    Scalar* end = memory_.values;
    for (int r = 0; r < rows_; ++r) {
      const uint64_t line = uint64_t{1} << r / rows_per_line;
      if ((live_ & line) == 0) continue;
      const Word x = load(row_of(r));
      const Mask lanes = mask((masked_ & line) != 0 ? memory_.coded[r] : ~0u);
      sync();  // all lanes have read before any overwrites
      end = compress(end, x, lanes);
    }
    sync();
    const int words = static_cast<int>(end - memory_.values);
    coded_rows_ = (words + lanes_per_row - 1) / lanes_per_row;
    if (words % lanes_per_row == 0) return;
    const Scalar last = end[-1];
    sync();
    store(end, splat<Word>(last));
    sync();
  }

  // ---- lines

  // A code for each line; returns the bytes that the chunk takes.
  ARRCOMP_PART uint32_t choose_lines() {
    const LineLimits limits{form_.bits, T::width, context_.element.is_signed && !context_.element.is_float(),
                            context_.settings.bases, tagged_widths()};
    bases_ = 0;
    uint32_t row_bits = 0;
    for (int line = 0; line < lines_of(coded_rows_); ++line) {
      const int row = line * rows_per_line, rows = rows_of(line, coded_rows_);
      const LineCode<Scalar> code =
          LineChooser<Word>(limits, load(row_of(row)), load(row_of(row + rows - 1)), rows).choose();
      put_code(line, code);
      row_bits += static_cast<uint32_t>(rows * code.row_bits());
    }
    sync();
    return line_chunk_header_bytes + mask_bytes() + padded(lines_of(coded_rows_)) + padded(bases_ * T::width / 8) +
           packed_bytes(row_bits);
  }

  // The widths that tags can hold: an odd one of 64-bit words stands for the next.
  ARRCOMP_METHOD uint64_t tagged_widths() const {
    const uint64_t widths = context_.settings.widths;
    return step == 2 ? (widths | widths << 1) & 0x5555555555555555u : widths & 0xffffffffu;
  }

  ARRCOMP_METHOD void put_code(int line, const LineCode<Scalar>& code) {
    const int bases = code.base_count();
    if (leader()) {
      memory_.tags[line] = code.tag(step);
      if (bases > 0) memory_.bases[bases_] = code.bases[0];
      if (bases > 1) memory_.bases[bases_ + 1] = code.bases[1];
    }
    bases_ += bases;
  }

  // ---- writing

  ARRCOMP_METHOD uint32_t mask_bytes() const {
    return has_masks_ ? static_cast<uint32_t>(16 + 8 * popcount(masked_)) : 0;
  }
  ARRCOMP_METHOD static int popcount(uint64_t x) {
    return count(mask(static_cast<uint32_t>(x))) + count(mask(static_cast<uint32_t>(x >> 32)));
  }

  ARRCOMP_METHOD void write_header(LineChunk kind, bool is_form_used) {
    uint32_t header = static_cast<uint32_t>(kind);
    if (is_form_used)
      header |= static_cast<uint32_t>(form_.sign_last) << 2 | static_cast<uint32_t>(has_masks_) << 3 |
                static_cast<uint32_t>(form_.shift) << 8;
    out_ = write_number(out_, header);
  }

  ARRCOMP_PART void write_lines() {
    write_header(LineChunk::lines, true);
    if (has_masks_) write_masks();
    const int lines = lines_of(coded_rows_);
    write_padded(lines, [&](int i) ARRCOMP_LAMBDA { return memory_.tags[i]; });
    write_padded(bases_, [&](int i) ARRCOMP_LAMBDA { return static_cast<typename T::storage>(memory_.bases[i]); });
    BitWriter writer(out_);
    const Scalar* base = memory_.bases;
    for (int line = 0; line < lines; ++line) {
      LineCode<Scalar> code = LineCode<Scalar>::of(memory_.tags[line], step, form_.bits);
      if (code.base_count() > 0) code.bases[0] = base[0];
      if (code.base_count() > 1) code.bases[1] = base[1];
      base += code.base_count();
      const LineCoder<Word> coder(code, form_.bits);
      const int row = line * rows_per_line;
      for (int r = row; r < row + rows_of(line, coded_rows_); ++r)
        writer.put(coder.encode(load(row_of(r))), code.row_bits());
    }
    out_ = writer.finish();
  }

  ARRCOMP_PART void write_masks() {
    out_ = write_number(out_, live_);
    out_ = write_number(out_, masked_);
    for (int r = 0; r < lines_of(rows_) * rows_per_line; ++r)
      if (masked_ >> r / rows_per_line & 1) out_ = write_number(out_, r < rows_ ? memory_.coded[r] : 0u);
  }

  // `n` numbers one after the other, and zeros up to a multiple of 4 bytes.
  template <class Number>
  ARRCOMP_METHOD void write_padded(int n, Number number) {
    using Type = decltype(number(0));
    const int bytes = n * static_cast<int>(sizeof(Type));
    if (leader()) {
      for (int i = 0; i < n; ++i) {
        const Type value = number(i);
        memcpy(out_ + i * static_cast<int>(sizeof value), &value, sizeof value);
      }
      for (uint32_t b = static_cast<uint32_t>(bytes); b < padded(bytes); ++b) out_[b] = 0;
    }
    out_ += padded(bytes);
  }

  // The elements as they are; the words in memory may have been compacted.
  ARRCOMP_PART void write_raw() {
    load_elements_of_chunk();
    write_header(LineChunk::raw, false);
    BitWriter writer(out_);
    for (int r = 0; r < rows_; ++r) writer.put(load(row_of(r)), T::width);
    out_ = writer.finish();
  }

  const BaseDeltaContext& context_;
  const void* array_;
  uint64_t origin_;
  Memory& memory_;
  uint8_t* out_;

  // the chunk
  uint64_t first_;
  int count_, rows_;
  WordForm form_;
  int nonzero_;  // words that are not 0
  bool has_masks_;
  uint64_t live_, masked_;  // lines: with words that are not 0; of these, without their zeros
  int coded_rows_;
  int bases_;
};

}  // namespace arrcomp::ARRCOMP_ISA
