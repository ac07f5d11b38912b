// What the buckets in a window are fitted from, in a lane for each: found in the window's rows, which stay in registers.
#pragma once
#include "codecs/bucketed/bucket_statistics.h"
#include "codecs/bucketed/window_codes.h"

namespace arrcomp::ARRCOMP_ISA {

// A row of words, each of which all lanes tell.
template <class Word>
class GatheredWords {
 public:
  // The largest lane, as the word of this bucket. The first one's is that of all that have none.
  ARRCOMP_METHOD void put_largest(Word lanes, int bucket) { put(max_all(lanes), bucket); }
  ARRCOMP_METHOD void put(typename Word::scalar word, int bucket) {
    row_ = bucket == 0 ? splat<Word>(word) : select(mask(1u << bucket), splat<Word>(word), row_);
  }
  // Those of a bucket are this one's too.
  ARRCOMP_METHOD void add(const GatheredWords& others, uint32_t bucket) {
    row_ = select(mask(1u << bucket), max(row_, others.row_), row_);
  }
  ARRCOMP_METHOD Word row() const { return row_; }

 private:
  Word row_ = splat<Word>(0);
};

// Their largest magnitudes.
template <class Real>
class MagnitudesOfBuckets {
  using Word = typename RealLayout<Real>::Word;

 public:
  // In buckets of n rows.
  template <int n>
  ARRCOMP_METHOD void find(const Real (&x)[rows_per_window]) {
    ARRCOMP_UNROLL for (int b = 0; b < rows_per_window / n; ++b) {
      Word largest = as_bits(abs(x[b * n]));
      ARRCOMP_UNROLL for (int j = 1; j < n; ++j) largest = max(largest, as_bits(abs(x[b * n + j])));
      words_.put_largest(largest, b);
    }
  }

  // All that was found, as some of a bucket.
  ARRCOMP_METHOD void add(const MagnitudesOfBuckets& found, uint32_t bucket) { words_.add(found.words_, bucket); }

  // In two buckets a row.
  ARRCOMP_METHOD void find_in_halves(const Real (&x)[rows_per_window]) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      const auto found = max_of_halves(as_bits(abs(x[j])));
      words_.put(found.lower, 2 * j);
      words_.put(found.upper, 2 * j + 1);
    }
  }

  template <class Coder>
  ARRCOMP_METHOD auto fitted(const Coder& coder) const {
    return coder.fit(real_of_bits(words_.row()));
  }

 private:
  GatheredWords<Word> words_;
};

// Their smallest and largest values, NaN where a value is not finite.
template <class Real>
class ExtremesOfBuckets {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;

 public:
  template <int n>
  ARRCOMP_METHOD void find(const Real (&x)[rows_per_window]) {
    ARRCOMP_UNROLL for (int b = 0; b < rows_per_window / n; ++b) {
      LaneExtremes<Real> extremes;
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) extremes.add(x[b * n + j]);
      below_.put_largest(extremes.low_keys(), b);
      above_.put_largest(extremes.high_keys(), b);
      magnitudes_.put_largest(extremes.magnitudes(), b);
    }
  }
  ARRCOMP_METHOD void add(const ExtremesOfBuckets& found, uint32_t bucket) {
    below_.add(found.below_, bucket);
    above_.add(found.above_, bucket);
    magnitudes_.add(found.magnitudes_, bucket);
  }
  ARRCOMP_METHOD static void find_in_halves(const Real (&)[rows_per_window]) {}  // such buckets are not fitted here

  template <class Coder>
  ARRCOMP_METHOD auto fitted(const Coder& coder) const {
    const Mask is_finite = lt(magnitudes_.row(), splat<Word>(Layout::infinity));
    const Real nan = splat<Real>(ScalarLimits<typename Real::scalar>::nan());
    const Real low = numbers_of_keys(below_.row() ^ splat<Word>(static_cast<typename Layout::Bits>(-1)), Real{});
    const Real high = numbers_of_keys(above_.row(), Real{});
    return coder.fit(select(is_finite, low, nan), select(is_finite, high, nan));
  }

 private:
  GatheredWords<Word> below_, above_, magnitudes_;
};

}  // namespace arrcomp::ARRCOMP_ISA
