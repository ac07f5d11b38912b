// The parameters of codebooks, with their tables. They travel in the arguments of kernels: 4096 bytes is what these may
// have on every machine.
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

  // Scaling, bucket size, borders, levels: of these one more.
  static bool read(std::span<const double> p, CodebookSettings& s) {
    if (p.size() < 5 || p.size() % 2 == 0) return false;
    if (!is_integer(p[0], 0, 2) || !is_integer(p[1], 16, 0x1p40)) return false;
    s.scaling = static_cast<Scaling>(static_cast<int>(p[0]));
    s.bucket_size = static_cast<uint64_t>(p[1]);
    const size_t count = p.size() / 2 - 1;
    const std::span<const double> levels = p.subspan(2 + count);
    s.at_least_largest = 1;
    for (const double level : levels)
      s.at_least_largest = std::max(s.at_least_largest, std::abs(static_cast<float>(level)));
    return s.tables.set(p.subspan(2, count), levels);
  }

  BucketLayout layout(const Element& element) const {
    const uint32_t stored = scaling == Scaling::none ? 1 : number_bytes(element);
    return {scaling == Scaling::tensor ? 0 : bucket_size, stored, 0, static_cast<uint32_t>(tables.bits), false};
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return largest_magnitude; }
};

static_assert(sizeof(CodebookSettings) <= 2304, "kernels have more arguments");

}  // namespace arrcomp
