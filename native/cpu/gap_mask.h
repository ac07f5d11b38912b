// The mask of gaps of a predicted array, or of a part of one (FORMAT.md, section 9.5).
#pragma once
#include <algorithm>

#include "cpu/driver.h"
#include "cpu/predicted.h"
#include "cpu/ranges.h"
#include "cpu/scratch.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cpu {

// The mask's bytes from the rows on that a part depends on. A row is all of the array at one place of its first axis that is
// none of lines; or, where all is one line, a piece of it.
class MaskBytes {
 public:
  // Of elements [first, end).
  MaskBytes(const PredictionJob& job, const Axes& axes, uint64_t first, uint64_t end, int threads)
      : job_(job), grid_(axes), axis_(grid_.bytes().axis_of_rows()), first_(first), end_(end), threads_(threads) {
    const bool is_line = axis_ == last_axis;
    const uint64_t bytes = grid_.bytes().count(), lines = grid_.bytes().inner(axis_) / grid_.bytes().sizes[last_axis];
    const uint64_t row = is_line ? MaskGrid::piece_size : lines * grid_.line(),
                   row_bytes = is_line ? MaskGrid::piece_size / MaskGrid::bits_of_byte : grid_.bytes().inner(axis_);
    const uint64_t begin = !is_line && job.mask.has_differences(axis_) ? 0 : first / row;
    rows_ = ceil_div(end, row) - begin;
    begin_ = begin * row_bytes;
    count_ = std::min(rows_ * row_bytes, bytes - begin_);
    pieces_of_row_ = is_line ? 1 : lines * grid_.pieces_of_line();
    first_piece_ = begin * pieces_of_row_;
    memory_ = scratch_memory(count_, "a mask");
  }

  uint64_t encode(const void* source, Scratch& payload) {
    each_piece([&](uint64_t begin, uint64_t end) {
      isa().prediction.find_mask(job_, grid_, source, array_with(memory_.get(), begin_, 1), begin, end);
    });
    change(true);
    const Plan plan = grid_.plan();
    payload = scratch_memory(capacity_of_groups(plan.element, plan.count), "a coded mask");
    const GroupSettings settings = codes_settings(job_.settings);
    return encode_job({plan, memory_.get(), 0, 0, settings, tables(), nullptr, 0}, payload.get(), threads_);
  }

  // To `target`, which has elements [first, end); false where the payload is corrupt.
  bool decode(const uint8_t* payload, uint64_t length, uint8_t* target) {
    const Plan plan = grid_.plan();
    const IndexRange range{begin_, begin_ + count_, plan.count, 1};
    if (!decode_range_of_groups(plan, lossless_codec, payload, length, range, memory_.get(), threads_)) return false;
    change(false);
    uint8_t* const elements = array_with(target, first_, job_.element.width / 8);
    each_piece([&](uint64_t begin, uint64_t end) {
      isa().prediction.put_mask(job_, grid_, array_with(memory_.get(), begin_, 1), first_, end_, elements, begin, end);
    });
    return true;
  }

 private:
  static constexpr int last_axis = max_axes - 1;

  template <class Work>
  void each_piece(Work work) const {
    const uint64_t pieces = std::min(rows_ * pieces_of_row_, grid_.pieces() - first_piece_);
    for_units(pieces, count_ * MaskGrid::bits_of_byte, threads_,
              [&](uint64_t begin, uint64_t end) { work(first_piece_ + begin, first_piece_ + end); });
  }

  // Takes differences along all axes but the last, or adds them up.
  void change(bool take) {
    for (int axis = axis_; axis < last_axis; ++axis) {
      if (!job_.mask.has_differences(axis)) continue;
      const uint64_t inner = grid_.bytes().inner(axis), size = axis == axis_ ? rows_ : grid_.bytes().sizes[axis];
      for_units(difference_units(count_ / (size * inner), inner), count_, threads_, [&](uint64_t begin, uint64_t end) {
        isa().prediction.change_mask(take, size, inner, memory_.get(), begin, end);
      });
    }
  }

  const PredictionJob& job_;
  MaskGrid grid_;
  int axis_;  // of rows
  uint64_t first_, end_;
  int threads_;
  uint64_t rows_, begin_, count_, first_piece_, pieces_of_row_;  // `begin_`, `count_`: of bytes
  Scratch memory_;
};

// Puts gaps to `target`, elements [first, end) of an array; false where the mask's payload is corrupt.
inline bool decode_mask(const PredictionJob& job, const PredictedParts& parts, uint64_t first, uint64_t end,
                        void* target, int threads) {
  if (parts.mask_bytes == 0) return true;
  MaskBytes mask(job, parts.prediction.axes, first, end, threads);
  return mask.decode(parts.mask, parts.mask_bytes, static_cast<uint8_t*>(target));
}

}  // namespace arrcomp::cpu
