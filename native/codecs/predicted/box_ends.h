// Makes the codes of boxes like those of the array that they are cut from (stream/prediction_trial.h). It has few ends of
// lines, where predictions are worse, and few elements on coarse grids.
#pragma once
#include "codecs/predicted/code.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// Codes next to the ends of lines take their places. Codes of the finest step take those of grids that are so coarse that a
// step along a cut axis has one slice. Units read no code that another one writes.
template <class Word>
class BoxEnds {
  using Scalar = typename Word::scalar;

 public:
  // `refinements`: of all steps. `cut`: the axes along which lines end, a bit each.
  ARRCOMP_METHOD BoxEnds(const Prediction& prediction, const Refinement* refinements, const Axes& coarsest,
                         uint32_t cut, Scalar* codes)
      : prediction_(prediction), refinements_(refinements), coarsest_(coarsest), cut_(cut), codes_(codes) {
    for (int k = 0; k < prediction.steps; ++k)
      if (is_cut_at(k) && refinements[k].fine() == 1) coarse_steps_ = k + 1;
  }

  ARRCOMP_METHOD uint64_t units() const {
    uint64_t units = lines() + coarse_runs();
    for (int k = coarse_steps_; k < prediction_.steps; ++k) units += blocks(k);
    return units;
  }

  ARRCOMP_PART void even(uint64_t unit) const {
    if (unit < lines()) return even_line(unit);
    unit -= lines();
    if (unit < coarse_runs()) return fill_run(unit);
    unit -= coarse_runs();
    int k = coarse_steps_;
    for (; unit >= blocks(k); ++k) unit -= blocks(k);
    const Refinement& step = refinements_[k];
    copy(slice(step, unit, 1), slice(step, unit, 0), step.inner);
    copy(slice(step, unit, step.fine() - 2), slice(step, unit, step.fine() - 1), step.inner);
  }

 private:
  static constexpr int last_axis = max_axes - 1;
  static constexpr uint64_t least_slices = 3;  // of a step: fewer have nothing between ends

  ARRCOMP_METHOD bool is_cut(int axis) const { return (cut_ >> axis & 1) != 0; }
  ARRCOMP_METHOD bool is_cut_at(int k) const { return is_cut(prediction_.step[k].axis); }

  // Of the coarsest grid; none where all of its codes are replaced.
  ARRCOMP_METHOD uint64_t lines() const { return coarse_steps_ > 0 ? 0 : coarsest_.outer(last_axis); }
  // Of a step whose ends are made even.
  ARRCOMP_METHOD uint64_t blocks(int k) const {
    return is_cut_at(k) && refinements_[k].fine() >= least_slices ? refinements_[k].outer : 0;
  }

  // Where a slice of a block of a step stands.
  ARRCOMP_METHOD static uint64_t slice(const Refinement& step, uint64_t block, uint64_t number) {
    return step.coarse_elements() + (block * step.fine() + number) * step.inner;
  }

  // Codes of coarse grids, and runs of the finest step's that take their places: between the ends of a block.
  ARRCOMP_METHOD uint64_t coarse() const {
    if (coarse_steps_ == 0) return 0;
    const Refinement& last = refinements_[coarse_steps_ - 1];
    return last.coarse_elements() + last.codes();
  }
  ARRCOMP_METHOD bool has_ends() const { return blocks(prediction_.steps - 1) > 0; }
  ARRCOMP_METHOD uint64_t run() const {
    const Refinement& finest = refinements_[prediction_.steps - 1];
    return (finest.fine() - (has_ends() ? 2 : 0)) * finest.inner;
  }
  // None where the finest step is one of the coarse ones.
  ARRCOMP_METHOD uint64_t coarse_runs() const {
    return coarse_steps_ < prediction_.steps ? ceil_div(coarse(), run()) : 0;
  }
  ARRCOMP_METHOD void fill_run(uint64_t number) const {
    const Refinement& finest = refinements_[prediction_.steps - 1];
    const uint64_t to = number * run(), left = coarse() - to;
    copy(slice(finest, number % finest.outer, has_ends() ? 1 : 0), to, left < run() ? left : run());
  }

  // Whether codes of the coarsest grid where an axis begins differ from others: they are no differences along it.
  ARRCOMP_METHOD bool begins(int axis) const {
    return is_cut(axis) && prediction_.has_differences(axis) && coarsest_.sizes[axis] > 1;
  }

  ARRCOMP_METHOD void even_line(uint64_t line) const {
    uint64_t from = 0, lines_of_slice = 1, rest = line;
    for (int a = last_axis; a-- > 0;) {
      const uint64_t size = coarsest_.sizes[a], i = rest % size;
      from += (i == 0 && begins(a) ? 1 : i) * lines_of_slice;
      lines_of_slice *= size;
      rest /= size;
    }
    const uint64_t size = coarsest_.sizes[last_axis];
    if (from != line) copy(from * size, line * size, size);
    if (begins(last_axis) && leader()) codes_[line * size] = codes_[from * size + 1];
  }

  ARRCOMP_METHOD void copy(uint64_t from, uint64_t to, uint64_t count) const {
    for_each_row(0, count, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      store_row(codes_ + to + i, load_row(codes_ + from + i, n), n);
    });
  }

  const Prediction& prediction_;
  const Refinement* refinements_;
  const Axes& coarsest_;
  uint32_t cut_;
  int coarse_steps_ = 0;  // whose codes are replaced, and so are those of the coarsest grid
  Scalar* codes_;
};

}  // namespace arrcomp::ARRCOMP_ISA
