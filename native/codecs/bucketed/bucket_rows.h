// Rows of a chunk and the buckets that they are in, on lanes.
#pragma once
#include "codecs/packing.h"
#include "inline.h"
#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

// Which bucket each lane of a row is in, row by row. Buckets are counted from the chunk's first on.
class BucketRows {
 public:
  ARRCOMP_METHOD BucketRows(uint64_t first_element, uint64_t bucket_size, int buckets)
      : size_(bucket_size), end_(bucket_size - first_element % bucket_size), bucket_(0), last_(buckets - 1) {}

  // Whether the `count` elements from `place` on are in one bucket, which is the current one then.
  ARRCOMP_METHOD bool in_one(uint64_t position, uint64_t count) {
    while (position >= end_) next();
    return position + count <= end_;
  }

  // The values of the current bucket.
  ARRCOMP_METHOD int number() const { return bucket_; }

  // What values_of(bucket, array) puts into the array for the current bucket, in all lanes, and what it returns.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD bool current(Real (&values)[n], ValuesOf values_of) const {
    typename Real::scalar of_bucket[n];
    const bool simple = values_of(bucket_, of_bucket);
    for (int i = 0; i < n; ++i) values[i] = splat<Real>(of_bucket[i]);
    return simple;
  }

  // The same for each lane's bucket of the row that begins at `place` in the chunk; whether it is true for all of them.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD bool row(uint64_t position, Real (&values)[n], ValuesOf values_of) {
    while (position >= end_) next();
    bool simple = current(values, values_of);
    while (end_ < position + lanes_per_row && bucket_ < last_) {
      const Mask later = mask(~low_mask(static_cast<int>(end_ - position)));
      next();
      Real of_next[n];
      simple = current(of_next, values_of) && simple;
      for (int i = 0; i < n; ++i) values[i] = select(later, of_next[i], values[i]);
    }
    return simple;
  }

 private:
  ARRCOMP_METHOD void next() {
    ++bucket_;
    end_ += size_;
  }

  uint64_t size_, end_;  // of the bucket, in elements from the chunk's first
  int bucket_, last_;
};

}  // namespace arrcomp::ARRCOMP_ISA
