// Extra bits of windows, whose codes are bytes with them: extras.h's rows and words, from a smaller memory.
#pragma once
#include "codecs/bucketed/window_codes.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int extra_rows_together = 8;

// Less than the rows that become words together, and what a window brings.
struct WindowExtraBuffer {
  alignas(16) uint8_t values[(extra_rows_together + rows_per_window) * lanes_per_row];
};

// Words that a chunk becomes, and what is written behind a row.
constexpr int max_window_extra_words = (rows_per_chunk + extra_rows_together - 1) * max_window_extra_bits;

class WindowExtraWriter {
 public:
  using Places = RowPlaces<uint8_t>;

  ARRCOMP_METHOD WindowExtraWriter(WindowExtraBuffer& buffer, uint32_t* out)
      : values_(buffer.values), begin_(out), out_(0), end_(0) {}

  // Codes of a window's rows go behind places(); end_at() is told what has become of them, and flush() follows.
  ARRCOMP_METHOD Places places() const { return Places(values_, end_); }
  ARRCOMP_METHOD void end_at(const Places& places) { end_ = places.end_behind(values_); }

  // Of codes whose extra bits, so many, stand above others. Both are told each time: lanes have no registers for them.
  ARRCOMP_METHOD void flush(uint32_t bits, uint32_t others) {
    constexpr uint32_t bytes = extra_rows_together * lanes_per_row;
    ARRCOMP_ROLLED
    while (end_ >= bytes) {  // counted: extra bits, 24 rows
      sync();
      write(extra_rows_together, bits, others);
      end_ -= bytes;
      auto* const values = reinterpret_cast<uint64_t*>(values_);
      const U64 left = load(values + lanes_per_row), more = load(values + 2 * lanes_per_row);
      sync();
      store(values, left);
      store(values + lanes_per_row, more);
      sync();
    }
  }

  // Returns the words that were written in all.
  ARRCOMP_METHOD uint32_t finish(uint32_t bits, uint32_t others) {
    const uint32_t whole = end_ / lanes_per_row;
    sync();
    if (end_ > 0) {
      uint8_t* const last = values_ + whole * lanes_per_row;
      store(last, select(mask(low_mask(static_cast<int>(end_ % lanes_per_row))), load(last), splat<U32>(0)));
      sync();
      write(whole + (end_ % lanes_per_row > 0 ? 1 : 0), bits, others);
    }
    sync();
    return out_;
  }

 private:
  static_assert(extra_rows_together * lanes_per_row == sizeof(uint64_t) * lanes_per_row);
  static_assert(rows_per_window == 2 * extra_rows_together);

  ARRCOMP_METHOD void write(uint32_t rows, uint32_t bits, uint32_t others) {
    visit_extra_bits<max_window_extra_bits>(static_cast<int>(bits),
                                            [&]<int n>(std::integral_constant<int, n>) ARRCOMP_LAMBDA {
                                              store_planes<n>(begin_ + out_, values_, static_cast<int>(others));
                                            });
    out_ += bits * rows;
  }

  uint8_t* values_;
  uint32_t* begin_;
  uint32_t out_, end_;
};

}  // namespace arrcomp::ARRCOMP_ISA
