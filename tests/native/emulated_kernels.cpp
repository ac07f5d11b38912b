// Runs the CUDA kernels on emulated warps and compares them with the CPU: the same payloads, bit for bit the same
// elements back, the same verdict on altered payloads, whatever the order in which a warp's lanes run. Prints what
// differs and a summary; exits with 0 if nothing does.
#include "emulated_warp.h"

#include <cstring>
#include <string>
#include <vector>

#include "cuda/head.h"
#include "cuda/kernels.cuh"

namespace {

using namespace arrcomp;
using emulated::Order;
using Bytes = std::vector<uint8_t>;

constexpr int blocks = 2;
constexpr Order orders[] = {Order::ascending, Order::descending, Order::shuffled};
constexpr uint8_t untouched = 0xa5;

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
};

uint64_t bits_of(const Element& element, double value) {
  const auto number = static_cast<float>(value);
  if (!element.is_float()) return static_cast<uint64_t>(static_cast<int64_t>(value * 1000));
  if (element.width == 64) return std::bit_cast<uint64_t>(value);
  if (element.width == 32) return std::bit_cast<uint32_t>(number);
  if (element.exponent_bits == 8) return std::bit_cast<uint32_t>(number) >> 16;
  return half_of_float(number) >> (element.width == 8 ? 8 : 0);
}

Bytes elements_of(const Element& element, uint64_t count, const Pattern& pattern) {
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

// ---- the kernels as the driver launches them

Bytes encode(const Plan& plan, const Settings& settings, const Bytes& source, Order order, uint64_t seed) {
  Bytes payload(plan.capacity(), untouched);
  cuda::ScratchHead head{};
  std::vector<uint64_t> entries(plan.groups);
  const int rounded = settings.kind == BoundKind::pointwise ? droppable_bits(plan.element, settings.bound) : 0;
  cuda::EncodeArguments arguments{plan,     source.data(), payload.data(), &head, entries.data(),
                                  nullptr,  &tables(),     rounded,        settings.fast};
  cuda::visit_element(plan.element, [&](auto type) {
    using T = decltype(type);
    Bytes memory(blocks * cuda::warps_per_block * sizeof(cuda::MemoryOf<T>), untouched);
    arguments.memory = memory.data();
    if (settings.kind == BoundKind::relative)
      emulated::launch(blocks, cuda::warps_per_block, order, seed, [&] { cuda::range_kernel<T>(arguments); });
    cuda::write_head(arguments, settings);
    if (plan.groups > 0)
      emulated::launch(blocks, cuda::warps_per_block, order, seed, [&] { cuda::encode_kernel<T>(arguments); });
  });
  payload.resize(std::min<uint64_t>(head.length, payload.size()));
  return payload;
}

// The elements; none where the payload is found corrupt.
Bytes decode(const Plan& plan, const Bytes& payload, Order order, uint64_t seed) {
  Bytes target(plan.count * plan.element.width / 8, untouched);
  uint32_t status = 0;
  const cuda::DecodeArguments arguments{plan, payload.data(), payload.size(), target.data(), &status, &tables()};
  cuda::visit_element(plan.element, [&](auto type) {
    emulated::launch(blocks, cuda::warps_per_block, order, seed,
                     [&] { cuda::decode_kernel<decltype(type)>(arguments); });
  });
  return status == 0 ? target : Bytes();
}

Bytes encode_on_cpu(const Plan& plan, const Settings& settings, const Bytes& source) {
  Bytes payload(plan.capacity());
  payload.resize(cpu::encode(plan, settings, source.data(), payload.data(), 1));
  return payload;
}

Bytes decode_on_cpu(const Plan& plan, const Bytes& payload) {
  Bytes target(plan.count * plan.element.width / 8, untouched);
  return cpu::decode(plan, payload.data(), payload.size(), target.data(), 1) ? target : Bytes();
}

int main_timing() { return 0; }
}  // namespace
#include <chrono>
int main() {
  for (int id : {3, 10, 11, 12, 13}) {
    auto t0 = std::chrono::steady_clock::now();
    int n = 0, bad = 0;
    for (auto& p : patterns) for (int k : {0, 1}) {
      Plan plan = make_plan(elements[id], 4096 * 2 + 100);
      if (k && !plan.element.is_quantizable) continue;
      Settings s{k ? BoundKind::absolute : BoundKind::lossless, 1e-3, false};
      Bytes src = elements_of(plan.element, plan.count, p);
      Bytes want = encode_on_cpu(plan, s, src);
      Bytes back = decode_on_cpu(plan, want);
      for (Order o : orders) {
        Bytes got = encode(plan, s, src, o, 5);
        if (got != want) bad++, printf("%d %s enc differs order %d\n", id, p.name, (int)o);
        if (decode(plan, want, o, 5) != back) bad++, printf("%d %s dec differs order %d\n", id, p.name, (int)o);
        n++;
      }
    }
    printf("id %d: %d runs, %d bad, %.2f s\n", id, n, bad, std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count());
    fflush(stdout);
  }
}
