// Arrays by columns: the elements of each column of a matrix stand side by side, so that a chunk has those of one column,
// or of a few (FORMAT.md, section 9.8).
#pragma once
#include "codecs/element_types.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// A tile on its way: words of 32 bits, those of 64 in halves. Rows are one word further apart than they are long, as the
// words of a column are then in different banks of a GPU's memory.
template <class T>
struct ColumnTile {
  static constexpr uint32_t pitch = lanes_per_row + 1;
  uint32_t halves[sizeof(typename T::Word::scalar) / 4][lanes_per_row * pitch];
};

template <class T>
class ColumnOrder {
  using Word = typename T::Word;
  using Tile = ColumnTile<T>;

 public:
  // The tile is memory of the warp.
  ARRCOMP_METHOD ColumnOrder(const Columns& matrix, Tile& tile) : matrix_(matrix), tile_(tile) {}

  // A tile: a block of 32 rows and columns at most, from its place in the array of rows to that by columns.
  ARRCOMP_PART void to_columns(const Columns::Block& block, const void* rows, void* columns) const {
    const int height = static_cast<int>(block.rows), width = static_cast<int>(block.columns);
    const bool is_piece = is_whole(block);
    if (is_piece) {
      for (uint32_t i = 0, k = 0; i < block.count(); i += lanes_per_row, ++k)
        put(k, 0, load_elements<T>(rows, first_of(block) + i, lanes_from(i, block)));
    } else {
      for (int j = 0; j < height; ++j)
        put(static_cast<uint32_t>(j), j, load_elements<T>(rows, in_row(block, j), width));
    }
    sync();
    const uint32_t distance = is_piece ? static_cast<uint32_t>(width) : Tile::pitch;
    const U32 first = lanes_below(height) * splat<U32>(distance);
    for (int c = 0; c < width; ++c)
      store_elements<T>(columns, in_column(block, c), height, at(first + splat<U32>(static_cast<uint32_t>(c))));
    sync();
  }

  // The same back.
  ARRCOMP_PART void to_rows(const Columns::Block& block, const void* columns, void* rows) const {
    const int height = static_cast<int>(block.rows), width = static_cast<int>(block.columns);
    for (int c = 0; c < width; ++c)
      put(static_cast<uint32_t>(c), c, load_elements<T>(columns, in_column(block, c), height));
    sync();
    const U32 pitch = splat<U32>(Tile::pitch);
    if (is_whole(block)) {
      const U32 size = splat<U32>(static_cast<uint32_t>(width)), by_width = splat<U32>(reciprocal_of(width));
      for (uint32_t i = 0; i < block.count(); i += lanes_per_row) {
        const int n = lanes_from(i, block);
        const U32 element = lanes_below(n) + splat<U32>(i), row = width == 1 ? element : mulhi(element, by_width);
        store_elements<T>(rows, first_of(block) + i, n, at((element - row * size) * pitch + row));
      }
    } else {
      const U32 first = lanes_below(width) * pitch;
      for (int j = 0; j < height; ++j)
        store_elements<T>(rows, in_row(block, j), width, at(first + splat<U32>(static_cast<uint32_t>(j))));
    }
    sync();
  }

 private:
  // Whether its rows are those of the matrix, so that they are one piece.
  ARRCOMP_METHOD bool is_whole(const Columns::Block& block) const { return block.columns == matrix_.columns; }

  ARRCOMP_METHOD uint64_t first_of(const Columns::Block& block) const { return in_row(block, 0); }
  ARRCOMP_METHOD uint64_t in_row(const Columns::Block& block, int row) const {
    return (block.row + static_cast<uint64_t>(row)) * matrix_.columns + block.column;
  }
  ARRCOMP_METHOD uint64_t in_column(const Columns::Block& block, int column) const {
    return matrix_.place(block.row, block.column + static_cast<uint64_t>(column));
  }

  ARRCOMP_METHOD static int lanes_from(uint32_t i, const Columns::Block& block) {
    const auto left = static_cast<int>(block.count() - i);
    return left < lanes_per_row ? left : lanes_per_row;
  }

  // Of 32 / n and so on: exact for elements of a tile.
  ARRCOMP_METHOD static uint32_t reciprocal_of(int n) { return ~uint32_t{0} / static_cast<uint32_t>(n) + 1; }

  // Those from n on are as the last.
  ARRCOMP_METHOD static U32 lanes_below(int n) { return min(lane_numbers(), splat<U32>(static_cast<uint32_t>(n - 1))); }

  // Row k of the tile, which begins `apart` words further than without any between rows.
  ARRCOMP_METHOD void put(uint32_t k, int apart, Word words) const {
    const uint32_t place = k * lanes_per_row + static_cast<uint32_t>(apart);
    if constexpr (sizeof(typename Word::scalar) == 8) {
      store(tile_.halves[0] + place, lo(words));
      store(tile_.halves[1] + place, hi(words));
    } else {
      store(tile_.halves[0] + place, words);
    }
  }

  ARRCOMP_METHOD Word at(U32 places) const {
    if constexpr (sizeof(typename Word::scalar) == 8) {
      return join(gather(tile_.halves[0], places), gather(tile_.halves[1], places));
    } else {
      return gather(tile_.halves[0], places);
    }
  }

  const Columns& matrix_;
  Tile& tile_;
};

// Calls visit(tile) for the tiles of a block.
template <class Visit>
ARRCOMP_METHOD void each_tile(const Columns::Block& block, Visit visit) {
  for (uint64_t r = 0; r < block.rows; r += lanes_per_row)
    for (uint64_t c = 0; c < block.columns; c += lanes_per_row)
      visit(Columns::Block{block.row + r, Columns::part(block.rows - r), block.column + c,
                           Columns::part(block.columns - c)});
}

}  // namespace arrcomp::ARRCOMP_ISA
