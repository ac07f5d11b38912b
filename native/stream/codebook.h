// The parameters of codebooks, with their tables. They travel in the arguments of kernels: 4096 bytes is what these may
// have on every GPU.
#pragma once
#include "stream/buckets.h"
#include "stream/parameters.h"
#include "stream/step_tables.h"

namespace arrcomp {

enum class Scaling : int { none = 0, absmax = 1, tensor = 2 };

struct CodebookSettings {
  StepTables tables;
  uint64_t bucket_size;
  Scaling scaling;
  float at_least_largest;  // at least 1, and no level's magnitude is above it

  static constexpr auto parameters() {
    using S = CodebookSettings;
    return std::tuple{integer("scaling", &S::scaling, 0, 2),
                      integer("bucket_size", &S::bucket_size, 16, max_bucket_size),
                      table("borders", "levels", &S::set_tables)};
  }

  bool set_tables(Reals borders, Reals levels) {
    at_least_largest = 1;
    for (const double level : levels)
      at_least_largest = std::max(at_least_largest, std::abs(static_cast<float>(level)));
    return tables.set(borders, levels);
  }

  BucketLayout layout(const Element& element) const {
    const uint32_t stored = scaling == Scaling::none ? 1 : scalar_bytes(element);
    return {scaling == Scaling::tensor ? 0 : bucket_size, stored, 0, static_cast<uint32_t>(tables.bits), false};
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return largest_magnitude; }
};

static_assert(sizeof(CodebookSettings) <= 2304, "kernels have more arguments");

}  // namespace arrcomp
