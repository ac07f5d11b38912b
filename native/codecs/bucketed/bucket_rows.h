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
      : size_(bucket_size),
        end_(bucket_size - first_element % bucket_size),
        bucket_(0),
        last_(buckets - 1),
        are_halves_(bucket_size == lanes_per_row / 2 && end_ == bucket_size) {}

  // Whether the `count` elements from `place` on are in one bucket, which is the current one then.
  ARRCOMP_METHOD bool in_one(uint64_t position, uint64_t count) {
    if (size_ < count) return false;
    while (position >= end_) next();
    return position + count <= end_;
  }

  // The values of the current bucket.
  ARRCOMP_METHOD int number() const { return bucket_; }

  // What values_of(bucket, array) puts into the array for the current bucket, in all lanes, and what it returns.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD bool current(Real (&values)[n], ValuesOf values_of) const {
    return of_bucket(bucket_, values, values_of);
  }

  // The same for each lane's bucket of the row that begins at `place` in the chunk; whether it is true for all of them.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD bool row(uint64_t position, Real (&values)[n], ValuesOf values_of) {
    if (are_halves_) return halves(static_cast<int>(position / (lanes_per_row / 2)), values, values_of);
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
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD static bool of_bucket(int bucket, Real (&values)[n], ValuesOf values_of) {
    typename Real::scalar own[n];
    const bool simple = values_of(bucket, own);
    for (int i = 0; i < n; ++i) values[i] = splat<Real>(own[i]);
    return simple;
  }

  // Of two buckets, which a row has; or of one, in an array's last row.
  template <class Real, int n, class ValuesOf>
  ARRCOMP_METHOD bool halves(int bucket, Real (&values)[n], ValuesOf values_of) const {
    Real upper[n];
    const bool simple = of_bucket(bucket, values, values_of);
    const bool both = of_bucket(bucket < last_ ? bucket + 1 : bucket, upper, values_of) && simple;
    for (int i = 0; i < n; ++i) values[i] = select(mask(0xffff0000u), upper[i], values[i]);
    return both;
  }

  ARRCOMP_METHOD void next() {
    ++bucket_;
    end_ += size_;
  }

  uint64_t size_, end_;  // of the bucket, in elements from the chunk's first
  int bucket_, last_;
  bool are_halves_;  // each row has two buckets
};

}  // namespace arrcomp::ARRCOMP_ISA
