// Arrays of all kinds for programs that compare codecs with the CPU's. Who includes this has `half_of_float`.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "stream/element.h"

namespace {

using namespace arrcomp;
using Bytes = std::vector<uint8_t>;

// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t word() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return word() % n; }
  double bell() {  // nearly normal, standard deviation 1
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(word() >> 11) * 0x1p-53;
    return sum;
  }

 private:
  uint64_t state_;
};

// ---- inputs

struct Pattern {
  const char* name;
  double (*value)(uint64_t i, Random& random);  // none: random bits
};

double special(Random& random) {
  const double all[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0, 1e-40, 3e-6, 6e4, 3.4e38, 5e-324};
  return all[random.below(std::size(all))];
}

const Pattern patterns[] = {
    {"weights", [](uint64_t, Random& r) { return 0.02 * r.bell(); }},
    {"activations", [](uint64_t, Random& r) { return std::max(0.0, r.bell()); }},
    {"sparse", [](uint64_t i, Random& r) { return i / 512 % 4 == 0 && r.below(50) == 0 ? 0.02 * r.bell() : 0.0; }},
    {"dead blocks", [](uint64_t i, Random& r) { return i / 256 % 3 == 0 ? 0.02 * r.bell() : 0.0; }},
    {"smooth", [](uint64_t i, Random&) { return 1e-6 * static_cast<double>(i % 1024 * (1024 - i % 1024)); }},
    {"offset", [](uint64_t, Random& r) { return 300 + 0.02 * r.bell(); }},
    {"constant", [](uint64_t, Random&) { return 7.0; }},
    {"zeros", [](uint64_t, Random&) { return 0.0; }},
    {"outliers", [](uint64_t i, Random& r) { return i % 1000 == 5 ? 2500.0 + r.bell() : 0.02 * r.bell(); }},
    {"specials", [](uint64_t i, Random& r) { return i % 61 == 7 ? special(r) : 0.02 * r.bell(); }},
    {"short mantissas", [](uint64_t, Random& r) { return std::nearbyint(4 * r.bell()) / 8; }},
    {"random bits", nullptr},
    {"gaps", [](uint64_t i, Random& r) { return i / 37 % 3 == 0 || i < 4096 ? NAN : 0.02 * r.bell(); }},
    {"scattered gaps", [](uint64_t, Random& r) { return r.below(5) != 0 ? 1e20 : 0.02 * r.bell(); }},
    {"bursts",
     [](uint64_t i, Random& r) {
       const auto place = static_cast<double>(i % 300);
       return 1e-4 * std::max(0.0, std::min(place, 150 - place)) * r.bell();
     }},
};

uint64_t bits_of(const Element& element, double value) {
  const auto number = static_cast<float>(value);
  if (!element.is_float()) return static_cast<uint64_t>(static_cast<int64_t>(value * 1000));
  if (element.width == 64) return std::bit_cast<uint64_t>(value);
  if (element.width == 32) return std::bit_cast<uint32_t>(number);
  if (element.exponent_bits == 8) return std::bit_cast<uint32_t>(number) >> 16;
  return half_of_float(number) >> (element.width == 8 ? 8 : 0);
}

[[maybe_unused]] Bytes elements_of(const Element& element, uint64_t count, const Pattern& pattern) {
  const size_t bytes = element.width / 8;
  Bytes all(count * bytes);
  Random random(count);
  for (uint64_t i = 0; i < count; ++i) {
    const double value = pattern.value ? pattern.value(i, random) : 0;
    const bool is_number = element.is_float() || std::fabs(value) < 1e15;
    const uint64_t bits = !pattern.value ? random.word() : is_number ? bits_of(element, value) : 0;
    memcpy(all.data() + i * bytes, &bits, bytes);
  }
  return all;
}

std::string difference(const Bytes& got, const Bytes& wanted) {
  if (got.size() != wanted.size())
    return std::to_string(got.size()) + " bytes instead of " + std::to_string(wanted.size());
  const auto at = std::mismatch(got.begin(), got.end(), wanted.begin()).first - got.begin();
  return "byte " + std::to_string(at) + " of " + std::to_string(got.size()) + " is the first to differ";
}

}  // namespace
