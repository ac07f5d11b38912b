// A sample of a chunk's rows: at most 32 of them, at equal distances.
#pragma once
#include "codecs/element_types.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int max_sampled_rows = 32;

ARRCOMP_INLINE int sample_stride(int rows) { return (rows + max_sampled_rows - 1) / max_sampled_rows; }
ARRCOMP_INLINE int samples_of(int rows) { return (rows + sample_stride(rows) - 1) / sample_stride(rows); }

// Samples that a round of a loop looks at: several are under way at a time where registers have no addresses.
constexpr int sample_batch = tiles_in_registers ? 4 : 1;

// What is left of `count` samples from `first` on, where rounds have several.
template <class Visit>
ARRCOMP_METHOD void each_left([[maybe_unused]] int first, [[maybe_unused]] int count, [[maybe_unused]] Visit visit) {
  if constexpr (sample_batch > 1) ARRCOMP_ROLLED for (int s = first; s < count; ++s) visit(s);
}

// The sampled rows of values or words.
template <class Word>
struct Sample {
  using Scalar = typename Word::scalar;

  const Scalar* rows;  // the first of them
  int distance;        // from each to the next
  int count;
  int taken_off = 0;  // low bits that its words no longer have

  ARRCOMP_METHOD Word at(int s) const { return load(rows + s * distance); }
};

// Where values are not kept, what is before each of their rows stands there.
template <class Word>
struct SampledValues : Sample<Word> {
  using typename Sample<Word>::Scalar;

  // The values before those of a row x; before the first value there is the last of its row.
  ARRCOMP_METHOD Word before(int s, Word x) const {
    const Scalar* const edge = this->rows + s * this->distance - 1;
    if constexpr (!keeps_rows) return load(edge);
    return shift_in(s > 0 ? splat<Word>(*edge) : x, x);
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
