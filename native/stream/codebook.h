// The parameters of codebooks, with their tables. They travel in the arguments of kernels: 4096 bytes is what these may
// have on every machine.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stream/buckets.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class Scaling : int { none = 0, absmax = 1, tensor = 2 };

struct CodebookSettings {
  static constexpr int most_levels = 256;

  // Bits of float32 numbers. The last level stands again behind the last. Of the tree of borders node 1 is the root, 2i
  // and 2i + 1 are below node i, and nodes behind the last border are infinite.
  alignas(64) uint32_t levels[most_levels];
  alignas(64) uint32_t tree[most_levels];
  uint64_t bucket_size;
  Scaling scaling;
  int bits;                // of a code
  float at_least_largest;  // at least 1, and no level's magnitude is above it

  // Scaling, bucket size, borders, levels: of these one more.
  static bool read(std::span<const double> p, CodebookSettings& s) {
    if (p.size() < 5 || p.size() > 2 * most_levels + 1 || p.size() % 2 == 0) return false;
    if (!is_integer(p[0], 0, 2) || !is_integer(p[1], 16, 0x1p40)) return false;
    s.scaling = static_cast<Scaling>(static_cast<int>(p[0]));
    s.bucket_size = static_cast<uint64_t>(p[1]);
    const size_t count = p.size() / 2 - 1;
    return s.set_tables(p.subspan(2, count), p.subspan(2 + count));
  }

  BucketLayout layout(const Element& element) const {
    const uint32_t stored = scaling == Scaling::none ? 1 : number_bytes(element);
    return {scaling == Scaling::tensor ? 0 : bucket_size, stored, 0, static_cast<uint32_t>(bits), false};
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return largest_magnitude; }

 private:
  static uint32_t bits_of(double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); }

  static bool are_finite(std::span<const double> numbers) {
    for (const double x : numbers)
      if (!std::isfinite(static_cast<float>(x))) return false;
    return true;
  }

  static bool are_increasing(std::span<const double> numbers) {
    for (size_t i = 1; i < numbers.size(); ++i)
      if (!(static_cast<float>(numbers[i - 1]) < static_cast<float>(numbers[i]))) return false;
    return true;
  }

  bool set_tables(std::span<const double> borders, std::span<const double> given) {
    if (!are_finite(given) || !are_finite(borders) || !are_increasing(borders)) return false;
    bits = 1;
    while (size_t{1} << bits < given.size()) ++bits;
    at_least_largest = 1;
    for (const double level : given) at_least_largest = std::max(at_least_largest, std::abs(static_cast<float>(level)));
    for (size_t i = 0; i < most_levels; ++i) levels[i] = bits_of(given[std::min(i, given.size() - 1)]);
    tree[0] = 0;
    for (size_t node = 1, depth = 0; node < most_levels; ++node) {
      if (node == size_t{2} << depth) ++depth;
      tree[node] = border_of(borders, node - (size_t{1} << depth), static_cast<int>(depth));
    }
    return true;
  }

  // Of the tree's node so many places from the left in a row of nodes.
  uint32_t border_of(std::span<const double> borders, size_t place, int depth) const {
    constexpr double none = std::numeric_limits<double>::infinity();
    if (depth >= bits) return bits_of(none);
    const size_t rank = ((2 * place + 1) << (bits - depth - 1)) - 1;
    return bits_of(rank < borders.size() ? borders[rank] : none);
  }
};

static_assert(sizeof(CodebookSettings) <= 2304, "kernels have more arguments");

}  // namespace arrcomp
