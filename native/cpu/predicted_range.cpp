// A part of a predicted array: from the coarsest grid to the finest those rows alone that the part depends on. A row is
// all of a grid at one place of its first axis that has several; rows are contiguous, and so are their codes in a step.
#include "cpu/coarsest_grid.h"
#include "cpu/gap_mask.h"
#include "cpu/predicted.h"
#include "cpu/ranges.h"
#include "cpu/scratch.h"
#include "cpu/select.h"
#include "cpu/threads.h"

namespace arrcomp::cpu {
namespace {

// The rows of each grid that a part depends on, and their codes.
class NeededRows {
 public:
  struct Rows {
    uint64_t begin, end;
  };

  NeededRows(const Prediction& prediction, uint64_t first, uint64_t end)
      : prediction_(prediction), axis_(prediction.axes.axis_of_rows()) {
    const uint64_t size = prediction.axes.inner(axis_);
    rows_[prediction.steps] = {first / size, ceil_div(end, size)};
    for (int k = prediction.steps; k-- > 0;) rows_[k] = coarse_rows(k);
    // Sums along the rows begin with the first.
    if (prediction.has_differences(axis_)) rows_[0].begin = 0;
  }

  int axis() const { return axis_; }
  const Rows& of_grid(int k) const { return rows_[k]; }

  // Codes of the coarsest grid.
  Rows codes() const {
    const uint64_t size = prediction_.grid(0).inner(axis_);
    return {rows_[0].begin * size, rows_[0].end * size};
  }

  // Codes of a step, counted from its first.
  Rows codes_of_step(int k) const {
    const Axes fine = prediction_.grid(k + 1);
    const Rows& rows = rows_[k + 1];
    const Refinement step = prediction_.refinement(k, 0);
    if (halves_rows(k)) return {rows.begin / 2 * step.inner, std::min(rows.end / 2, step.fine()) * step.inner};
    const uint64_t codes = step.codes() / fine.sizes[axis_];
    return {rows.begin * codes, rows.end * codes};
  }

 private:
  bool halves_rows(int k) const { return prediction_.step[k].axis == axis_; }

  // Those that the rows of the finer grid are made of, and their neighbours. Rows come in pairs, the even one a copy; copies
  // at the end belong to the pair before them.
  Rows coarse_rows(int k) {
    Rows& fine = rows_[k + 1];
    if (!halves_rows(k)) return fine;
    const Refinement step = prediction_.refinement(k, 0);
    const uint64_t pairs = step.fine();
    fine.end = round_up(fine.end, 2);
    if (fine.end / 2 >= pairs) fine.end = step.size;
    fine.begin = std::min(fine.begin / 2, pairs - 1) * 2;
    constexpr uint64_t before = 2, behind = 3;  // as many are looked at, where a line ends too
    return {fine.begin / 2 - std::min(fine.begin / 2, before), std::min(fine.end / 2 + behind, step.coarse())};
  }

  const Prediction& prediction_;
  int axis_;
  Rows rows_[max_steps + 1];
};

class RangeDecoder {
 public:
  RangeDecoder(const PredictionJob& job, const Prediction& prediction, const Groups& codes, int threads)
      : job_(job),
        prediction_(prediction),
        plan_(prediction.codes_plan(job.element)),
        codes_(codes),
        threads_(threads),
        functions_(isa().prediction),
        item_(job.element.width / 8),
        code_item_(plan_.element.width / 8) {}

  // Makes elements [first, end); false where their codes are corrupt.
  bool decode(uint64_t first, uint64_t end, uint8_t* target) {
    const NeededRows needed(prediction_, first, end);
    if (!decode_coarsest(needed)) return false;
    for (int k = 0; k < prediction_.steps; ++k)
      if (!decode_step(needed, k)) return false;
    memcpy(target, grid_ + first * item_, (end - first) * item_);
    return true;
  }

 private:
  bool decode_coarsest(const NeededRows& needed) {
    const auto [begin, end] = needed.codes();
    Axes grid = prediction_.grid(0);
    grid.sizes[needed.axis()] = needed.of_grid(0).end - needed.of_grid(0).begin;
    if (!read_codes(begin, end)) return false;
    make_grid(begin, end);
    CoarsestGrid(job_, prediction_, grid, buffer_.get(), threads_).decode(memory_.get());
    return true;
  }

  bool decode_step(const NeededRows& needed, int k) {
    const Refinement step = prediction_.refinement(k, job_.bound);
    const uint64_t before = prediction_.grid(k).count(), size = prediction_.grid(k + 1).inner(needed.axis());
    const auto [begin, end] = needed.codes_of_step(k);
    if (!read_codes(before + begin, before + end)) return false;
    const Scratch coarse_memory = std::move(memory_);
    const uint8_t* const coarse = grid_;
    make_grid(needed.of_grid(k + 1).begin * size, needed.of_grid(k + 1).end * size);
    const uint64_t count = end - begin, from = begin;
    for_rows(count, threads_, [&](uint64_t first, uint64_t last) {
      functions_.decode_step(job_, step, coarse, buffer_.get() + first * code_item_, grid_, from + first, from + last);
    });
    return true;
  }

  // Codes [first, end) of all.
  bool read_codes(uint64_t first, uint64_t end) {
    buffer_ = scratch_memory((end - first) * code_item_, "codes");
    const IndexRange range{first, end, plan_.count, code_item_};
    return decode_range_of_groups(plan_, lossless_codec, codes_, range, buffer_.get(), threads_);
  }

  // Memory for elements [first, end) of a grid.
  void make_grid(uint64_t first, uint64_t end) {
    memory_ = scratch_memory((end - first) * item_, "a grid");
    grid_ = array_with(memory_.get(), first, item_);
  }

  const PredictionJob& job_;
  const Prediction& prediction_;
  Plan plan_;
  const Groups& codes_;
  int threads_;
  const PredictionFunctions& functions_;
  uint64_t item_, code_item_;
  Scratch buffer_, memory_;  // codes; rows of a grid
  uint8_t* grid_ = nullptr;  // where that grid would begin
};

// Elements of the bands that a part has rows of. They stand at the same places by columns.
IndexRange bands_of(const Columns& matrix, const IndexRange& part) {
  const uint64_t size = matrix.band * matrix.columns;
  return {part.first / size * size, std::min(round_up(part.end, size), part.count), part.count, part.item};
}

bool decode_range_of_columns(const Element& element, const Prediction& prediction, const Groups& groups,
                             const IndexRange& part, uint8_t* target, int threads) {
  const Columns matrix = prediction.columns();
  const IndexRange bands = bands_of(matrix, part);
  const uint64_t count = bands.end - bands.first;
  const auto columns = scratch_memory(count * part.item, "columns"), rows = scratch_memory(count * part.item, "rows");
  if (!decode_range_of_groups(prediction.codes_plan(element), lossless_codec, groups, bands, columns.get(), threads))
    return false;
  for_rows(count, threads, [&](uint64_t first, uint64_t end) {
    isa().prediction.to_rows(element, matrix, array_with(columns.get(), bands.first, part.item),
                             array_with(rows.get(), bands.first, part.item), bands.first + first, bands.first + end);
  });
  memcpy(target, rows.get() + (part.first - bands.first) * part.item, (part.end - part.first) * part.item);
  return true;
}

}  // namespace

bool decode_range_of_predicted(const Element& element, const uint8_t* payload, uint64_t length, const IndexRange& part,
                               uint8_t* target, int threads) {
  PredictedParts parts{};
  Groups codes{};
  if (parts.read(element, payload, length, part.count) != nullptr) return false;
  if (!codes.read(parts.prediction.codes_plan(element), lossless_codec, parts.codes, parts.header.codes_bytes))
    return false;
  const GroupSettings settings{};
  const PredictionJob job = job_of(element, settings, parts);
  if (part.first == part.end) return true;
  if (parts.prediction.is_by_columns())
    return decode_range_of_columns(element, parts.prediction, codes, part, target, threads);
  if (!RangeDecoder(job, parts.prediction, codes, threads).decode(part.first, part.end, target)) return false;
  if (!decode_mask(job, parts, part.first, part.end, target, threads)) return false;
  if (parts.header.exact_bytes == 0) return true;
  const uint64_t count = part.end - part.first;
  const auto exact = scratch_memory(count * part.item, "exact elements");
  if (!decode_range_of_groups(make_plan(element, part.count), lossless_codec, parts.exact, parts.header.exact_bytes,
                              part, exact.get(), threads))
    return false;
  for_rows(count, threads, [&](uint64_t first, uint64_t last) {
    isa().prediction.put_exact(job, exact.get(), target, first, last - first);
  });
  return true;
}

std::vector<IndexRange> codes_of_range(const Prediction& prediction, uint64_t first, uint64_t end) {
  std::vector<IndexRange> ranges;
  if (first == end) return ranges;
  if (prediction.is_by_columns()) return {bands_of(prediction.columns(), {first, end, prediction.axes.count(), 0})};
  const NeededRows needed(prediction, first, end);
  const uint64_t all = prediction.axes.count();
  ranges.push_back({needed.codes().begin, needed.codes().end, all, 0});
  for (int k = 0; k < prediction.steps; ++k) {
    const uint64_t before = prediction.grid(k).count();
    const NeededRows::Rows codes = needed.codes_of_step(k);
    ranges.push_back({before + codes.begin, before + codes.end, all, 0});
  }
  return ranges;
}

}  // namespace arrcomp::cpu
