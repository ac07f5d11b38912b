// Finds the parts of a chunk's side data and checks them against the group's bounds, before anything is decoded
// (FORMAT.md, sections 3.2 and 5).
#pragma once
#include <type_traits>

#include "codecs/chunk.h"
#include "codecs/grouped/classes.h"
#include "codecs/grouped/dictionary_entries.h"
#include "codecs/grouped/missing.h"
#include "codecs/packing.h"
#include "stream/multiples_choice.h"

namespace arrcomp::ARRCOMP_ISA {

// What a chunk may share with those that were read before, of its group.
struct SharedParts {
  DictionaryEntries dictionary{nullptr, 0};
  FrequencyCodes frequencies{nullptr, 0};
};

// Of words by classes: bits that these tell below the highest one, and their frequencies.
struct ChunkClasses {
  int told;
  FrequencyCodes frequencies;
};
struct NoClasses {};

// A reader that is told that there are no masks takes none, and no classes.
template <bool may_be_masked = true>
struct ChunkReader {
  ChunkHead header;
  int whole;                     // elements of the chunk
  int count, rows;               // those that are present, and their rows
  MissingHead missing;           // or what is not coded, where a mask has marks
  const uint8_t* marks;          // where elements are missing
  const uint32_t* masked;        // what those of a mask say, a word for each row, once they are read
  uint64_t fill;                 // the bits of missing elements
  int multiples;                 // their kind, or 0
  DictionaryEntries dictionary;  // else; of multiples of integers these stand at its beginning
  int coded_rows;
  uint64_t live;  // blocks, where there is a mask
  const uint8_t* row_masks;
  const uint8_t* of_tiles;  // widths, unless all have header.shift, or tables, where they or contexts have own ones
  uint32_t packed_bits;     // of a lane
  const uint8_t* bits;
  const uint8_t* bits_end;
  int exceptions;
  const uint8_t* positions;  // of the exceptions, and their elements
  bool carries;              // two bits of each of the last 8 coded rows are in the group's final states
  int fed_rows;              // coded rows in which states take words: all, but for the group's last ones
  [[no_unique_address]] std::conditional_t<may_be_masked, ChunkClasses, NoClasses> classes;

  // Reads the side data at `in` and moves past it; false where it is corrupt. The group's last entropy-coded chunk
  // comes first.
  ARRCOMP_PART bool read(const uint8_t*& in, const uint8_t* end, const Element& element, bool may_quantize,
                         int elements, bool is_last_entropy, SharedParts& shared) {
    whole = count = elements;
    const int word_bits = element.width == 64 ? 64 : 32;
    if (!header.read(in, end, element, may_quantize)) return false;
    if (!read_missing(in, end, element) || !read_numbering(in, end, element, shared.dictionary)) return false;
    rows = (count + lanes_per_row - 1) / lanes_per_row;
    if (!read_exception_count(in, end)) return false;
    if (!read_mask(in, end)) return false;
    if (!read_widths(in, end, word_bits) || !read_tables(in, end, shared.frequencies)) return false;
    carries = header.coder == Coder::entropy && is_last_entropy && coded_rows > 0 && coded_rows % carried_rows == 0 &&
              header.shift >= carried_bits;
    fed_rows = coded_rows - dry_rows_of(header.dry);
    if (header.dry > 0 && (!is_last_entropy || carries || fed_rows < 0)) return false;
    if (!section(in, end, packed_bytes(bits_per_lane()), bits)) return false;
    bits_end = in;
    const uint32_t values_bytes = (static_cast<uint32_t>(exceptions) * element.width / 8 + 3) / 4 * 4;
    return section(in, end, positions_bytes() + values_bytes, positions);
  }

  ARRCOMP_METHOD const uint8_t* exception_values() const { return positions + positions_bytes(); }

  ARRCOMP_METHOD int width_of(int coded_row) const {
    return header.shift > 0 ? header.shift : in_device_memory(of_tiles)[coded_row / rows_per_tile];
  }
  // Where tiles have own ones.
  ARRCOMP_METHOD int table_of(int coded_row) const { return in_device_memory(of_tiles)[coded_row / rows_per_tile]; }
  // Where contexts have.
  ARRCOMP_METHOD int table_of_context(int context) const { return in_device_memory(of_tiles)[context]; }

  // Lanes of a row of a masked chunk that are coded.
  ARRCOMP_PART uint32_t lanes_of(int row) const {
    if (header.mask == MaskKind::marks) return ~masked[row];
    const int block = row / rows_per_block;
    if ((live >> block & 1) == 0) return 0;
    if (header.mask == MaskKind::blocks) return ~0u;
    const int before = popcount(live & ((uint64_t{1} << block) - 1));
    return read_number<uint32_t>(row_masks + 8 * before + 4 * (row % rows_per_block));
  }

 private:
  ARRCOMP_METHOD uint32_t positions_bytes() const { return static_cast<uint32_t>(exceptions + (exceptions & 1)) * 2; }

  ARRCOMP_METHOD static int popcount(uint32_t x) { return ARRCOMP_ISA::count(mask(x)); }
  ARRCOMP_METHOD static int popcount(uint64_t x) {
    return popcount(static_cast<uint32_t>(x)) + popcount(static_cast<uint32_t>(x >> 32));
  }

  ARRCOMP_METHOD static bool section(const uint8_t*& in, const uint8_t* end, uint32_t bytes, const uint8_t*& begin) {
    if (end - in < static_cast<int64_t>(bytes)) return false;
    begin = in;
    in += bytes;
    return true;
  }

  ARRCOMP_PART bool read_missing(const uint8_t*& in, const uint8_t* end, const Element& element) {
    if (!header.has_missing) return true;
    if (!may_be_masked) return false;
    bool is_nan;
    const uint8_t* p;
    if (!section(in, end, 4, p) || !read_missing_head(p, whole, missing, is_nan)) return false;
    count = missing.present;
    const uint32_t fill_bytes = element.width == 64 ? 8 : 4;
    if (is_nan) {
      if (!element.is_float()) return false;
      fill = usual_nan(element);
    } else {
      if (!section(in, end, fill_bytes, p)) return false;
      fill = fill_bytes == 8 ? read_number<uint64_t>(p) : read_number<uint32_t>(p);
    }
    return read_mark_section(in, end, whole);
  }

  ARRCOMP_PART bool read_numbering(const uint8_t*& in, const uint8_t* end, const Element& element,
                                   DictionaryEntries& shared) {
    if (header.transform != Transform::numbered) return true;
    if (!may_be_masked) return false;
    const uint8_t* p;
    if (!section(in, end, 4, p)) return false;
    const auto field = read_number<uint32_t>(p), kind = field >> bits_of_entries;
    multiples = static_cast<int>(kind);
    const bool of_integers = kind == integer_multiples;
    const int own = kind == 0 ? static_cast<int>(field) : of_integers ? 2 : 0;  // entries, or what integers are made of
    const int width = of_integers && element.width < 32 ? 32 : element.width;
    if (own > most_entries || !section(in, end, DictionaryEntries::bytes(own, width), p)) return false;
    if (own > 0) dictionary = {p, own};
    if (kind > 0) {
      if (kind << bits_of_entries != field || kind > integer_multiples) return false;
      return of_integers ? !element.is_float() && element.width >= least_width_of_integer_multiples
                         : element.is_quantizable && element.width >= least_width_of_multiples;
    }
    if (own > 0) shared = dictionary;
    dictionary = shared;
    return shared.count > 0;
  }

  ARRCOMP_PART bool read_exception_count(const uint8_t*& in, const uint8_t* end) {
    exceptions = 0;
    if (!header.has_exceptions) return true;
    const uint8_t* p;
    if (!section(in, end, 4, p)) return false;
    const uint32_t n = read_number<uint32_t>(p);
    exceptions = static_cast<int>(n);
    return n >= 1 && n <= max_exceptions;
  }

  ARRCOMP_PART bool read_mask(const uint8_t*& in, const uint8_t* end) {
    coded_rows = header.coder == Coder::none ? 0 : rows;
    if (header.mask == MaskKind::none) return true;
    if (!may_be_masked) return false;
    if (header.mask == MaskKind::marks) return read_mask_of_marks(in, end);
    const uint8_t* p;
    if (!section(in, end, 8, p)) return false;
    live = read_number<uint64_t>(p);
    const int blocks = (rows + rows_per_block - 1) / rows_per_block;
    if (blocks < 64 && live >> blocks != 0) return false;
    const bool odd_last = rows % rows_per_block != 0 && (live >> (blocks - 1) & 1) != 0;
    coded_rows = popcount(live) * rows_per_block - odd_last;
    if (header.mask == MaskKind::values) {
      const int words = popcount(live) * rows_per_block;
      if (!section(in, end, static_cast<uint32_t>(words) * 4, row_masks)) return false;
      int values = 0;
      for (int i = 0; i < words; ++i) values += popcount(read_number<uint32_t>(row_masks + 4 * i));
      if (odd_last && read_number<uint32_t>(row_masks + 4 * (words - 1)) != 0) return false;
      coded_rows = (values + lanes_per_row - 1) / lanes_per_row;
    }
    if (header.coder == Coder::none) coded_rows = 0;
    return true;
  }

  ARRCOMP_PART bool read_mask_of_marks(const uint8_t*& in, const uint8_t* end) {
    const int positions = rows * lanes_per_row;
    bool is_nan;
    const uint8_t* p;
    if (!section(in, end, 4, p) || !read_missing_head(p, positions, missing, is_nan) || is_nan) return false;
    if (header.coder != Coder::none) coded_rows = (missing.present + lanes_per_row - 1) / lanes_per_row;
    return read_mark_section(in, end, positions);
  }

  ARRCOMP_METHOD bool read_mark_section(const uint8_t*& in, const uint8_t* end, int positions) {
    return section(in, end, (bits_of_marks(missing.marks, missing.shift, positions) + 31) / 32 * 4, marks);
  }

  ARRCOMP_PART bool read_widths(const uint8_t*& in, const uint8_t* end, int word_bits) {
    packed_bits = 0;
    if (header.coder != Coder::packed) return true;
    if (header.shift > 0) {
      packed_bits = static_cast<uint32_t>(coded_rows * header.shift);
      return true;
    }
    if (!read_bytes_of_tiles(in, end, word_bits)) return false;
    if (coded_rows == 0) return true;
    const int tiles = tiles_of(coded_rows);
    const U32 width = load_first(of_tiles, tiles);
    const uint32_t rows_missing = static_cast<uint32_t>(tiles * rows_per_tile - coded_rows);
    packed_bits =
        rows_per_tile * sum(select(mask(low_mask(tiles)), width, splat<U32>(0))) - rows_missing * of_tiles[tiles - 1];
    return true;
  }

  ARRCOMP_METHOD bool read_tables(const uint8_t*& in, const uint8_t* end, FrequencyCodes& shared) {
    constexpr int last = table_count - 1;
    if (header.has_classes()) return read_classes(in, end, shared);
    if (header.has_contexts()) return section(in, end, context_count, of_tiles) && are_at_most(last, context_count);
    return !header.has_tables_of_tiles() || read_bytes_of_tiles(in, end, last);
  }

  ARRCOMP_PART bool read_classes(const uint8_t*& in, const uint8_t* end, FrequencyCodes& shared) {
    if constexpr (may_be_masked) {
      const uint8_t* p;
      if (!section(in, end, 4, p)) return false;
      const auto field = read_number<uint32_t>(p), told = field & 255, own = field >> 8;
      if (told < least_told || told > most_told || own > symbol_count) return false;
      if (!section(in, end, FrequencyCodes::bytes(static_cast<int>(own)), p)) return false;
      if (own > 0) shared = {p, static_cast<int>(own)};
      classes = {static_cast<int>(told), shared};
      return shared.count > 0;
    }
    return false;
  }

  // A byte for each tile, none of them above `most`.
  ARRCOMP_PART bool read_bytes_of_tiles(const uint8_t*& in, const uint8_t* end, int most) {
    if (!section(in, end, bytes_of_tiles(static_cast<uint32_t>(coded_rows)), of_tiles)) return false;
    return coded_rows == 0 || are_at_most(most, tiles_of(coded_rows));
  }
  ARRCOMP_METHOD bool are_at_most(int most, int bytes) const {
    return !any(lt(splat<U32>(static_cast<uint32_t>(most)), load_first(of_tiles, bytes)));
  }

  ARRCOMP_PART uint32_t bits_per_lane() const {
    if (header.coder == Coder::none) return 0;
    if (header.coder == Coder::entropy)
      return static_cast<uint32_t>(coded_rows * header.shift - (carries ? carried_rows * carried_bits : 0));
    return packed_bits;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
