// Runs the CUDA kernels of arrays with a reference on emulated warps, as the driver launches them, and compares them with
// the CPU: the same payloads, bit for bit the same elements back, also in place of the reference, the same verdict on
// altered payloads and references. Prints what differs and a summary; exits with 0 if nothing does.
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include <cmath>

#include "cpu/driver.h"
#include "cpu/referenced.h"
#include "cuda/referenced_calls.h"
#include "emulated_launcher.h"

namespace {

template <class T, bool quantizes = T::quantizes>
struct RowsOf {
  using Bits = cuda::DeltaRows<T, cuda::BitDelta<T>>;
  using Steps = cuda::DeltaRows<T, cuda::StepDelta<T>>;
};
template <class T>
struct RowsOf<T, false> {
  using Bits = cuda::DeltaRows<T, cuda::BitDelta<T>>;
  using Steps = Bits;
};

// An array and its reference.
struct Pair {
  const char* dtype;
  const Element& element;
  Codec codec;
  uint64_t count;
  Bytes elements, reference;
};

Bytes encode(const Pair& pair, Order order, uint64_t seed) {
  constexpr uint64_t warps = max_blocks * cuda::warps_per_block;
  const bool are_bits = codes_are_bits(group_settings(pair.codec), pair.element);
  Bytes payload(capacity(pair.codec, pair.element, pair.count), untouched);
  Bytes scratch = scratch_of(cuda::ReferenceScratch(pair.element, are_bits, pair.count).memory +
                             warps * sizeof(cuda::MemoryOf<cuda::Float64>));
  const EncodeTask task{pair.elements.data(), payload.data(), pair.count, {}, pair.reference.data()};
  const EmulatedLauncher launcher(order, seed);
  uint64_t length = 0;
  cuda::visit_element(pair.element, [&]<class T>(T) {
    const auto run = [&]<class Rows>(Rows*) {
      cuda::ReferenceEncoding<Rows, EmulatedLauncher>(launcher, pair.codec, pair.element, &tables(), aligned(scratch))
          .encode(task, &length);
    };
    if (are_bits) return run(static_cast<typename RowsOf<T>::Bits*>(nullptr));
    run(static_cast<typename RowsOf<T>::Steps*>(nullptr));
  });
  payload.resize(std::min<uint64_t>(length, payload.size()));
  return payload;
}

struct Verdict {
  uint32_t status;
  Bytes elements;  // where the status is 0

  bool operator==(const Verdict&) const = default;
};

// In place of the reference, or to memory of its own.
Verdict decode(const Pair& pair, const Bytes& payload, Order order, uint64_t seed) {
  Bytes target(pair.elements.size(), untouched), reference = pair.reference;
  const bool in_place = seed % 3 == 0;
  Bytes scratch = scratch_of(cuda::ReferenceDecodeScratch(pair.element, pair.count).end);
  const uint64_t length = payload.size();
  Bytes longer = payload;
  if (seed % 2 == 0) longer.resize(length + 40, untouched);
  Bytes& to = in_place ? reference : target;
  const DecodeTask task{longer.data(), longer.size(), seed % 2 == 0 ? &length : nullptr,
                        to.data(),     pair.count,    reference.data()};
  uint32_t status = 0;
  cuda::visit_element(pair.element, [&]<class T>(T) {
    cuda::decode_referenced<typename RowsOf<T>::Bits, typename RowsOf<T>::Steps>(
        EmulatedLauncher(order, seed), pair.element, task, &tables(), &status, aligned(scratch));
  });
  if (status >= 2 && to != (in_place ? pair.reference : Bytes(target.size(), untouched))) return {99, {}};
  return {status >= 2 ? 2 : status, status == 0 ? to : Bytes()};
}

Bytes encode_on_cpu(const Pair& pair) {
  Bytes payload(capacity(pair.codec, pair.element, pair.count));
  uint64_t length = 0;
  const EncodeTask task{pair.elements.data(), payload.data(), pair.count, {}, pair.reference.data()};
  cpu::encode(pair.codec, pair.element, std::span(&task, 1), &length, Seed{}, 1);
  payload.resize(length);
  return payload;
}

Verdict decode_on_cpu(const Pair& pair, const Bytes& payload) {
  Bytes target(pair.elements.size(), untouched);
  const DecodeTask task{payload.data(), payload.size(), nullptr, target.data(), pair.count, pair.reference.data()};
  try {
    const bool ok = cpu::decode(pair.codec, pair.element, std::span(&task, 1), 1) == 1;
    return {ok ? 0u : 1u, ok ? target : Bytes()};
  } catch (const WrongReference&) {
    return {2, {}};
  }
}

// ---- arrays

// How an array differs from its reference: `share` of 1024 elements, by numbers up to `most` of their bits.
struct Change {
  const char* name;
  uint64_t share, most;
};
constexpr Change changes[] = {{"equal", 0, 1},
                              {"one in 300", 3, 1},
                              {"one in 10", 100, 3},
                              {"nearly a quarter", 250, 200},
                              {"more than a quarter", 280, 5},
                              {"most", 900, 60},
                              {"all", 1024, 1 << 14}};

uint64_t number_at(const Element& element, uint64_t i, Random& random) {
  if (!element.is_float()) return random.word();
  if (random.below(700) == 0) return bits_of(element, random.below(2) == 0 ? NAN : INFINITY);
  return bits_of(element, std::sin(static_cast<double>(i) / 50) + static_cast<double>(random.below(1000)) * 1e-3);
}

Pair pair_of(const char* dtype, const Element& element, const Codec& codec, uint64_t count, const Change& change,
             bool flips, uint64_t seed) {
  Random random(seed);
  const uint64_t item = element.width / 8;
  Pair pair{dtype, element, codec, count, Bytes(count * item), Bytes(count * item)};
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t before = number_at(element, i, random);
    const uint64_t step = 1 + random.below(change.most);
    uint64_t after = before;
    if (random.below(1024) < change.share)
      after = flips ? before ^ step << random.below(3) : before + step - change.most / 2;
    memcpy(&pair.reference[i * item], &before, item);
    memcpy(&pair.elements[i * item], &after, item);
  }
  return pair;
}

class Comparison {
 public:
  explicit Comparison(int orders_each) : orders_each_(orders_each) {}

  void check(const Pair& pair, const char* name) {
    const Bytes wanted = encode_on_cpu(pair);
    const Verdict elements = decode_on_cpu(pair, wanted);
    ++pairs_;
    ReferenceHeader header;
    memcpy(&header, wanted.data(), sizeof header);
    ++ways_[static_cast<int>(header.way)][header.is_list];
    exact_ += header.exact_count > 0;
    for (int i = 0; i < orders_each_; ++i) {
      const Order order = orders[runs_++ % std::size(orders)];
      const auto seed = static_cast<uint64_t>(runs_);
      const Bytes payload = encode(pair, order, seed);
      expect(pair, name, "payload: " + difference(payload, wanted), payload == wanted);
      expect(pair, name, "elements differ", decode(pair, wanted, order, seed) == elements && elements.status == 0);
    }
  }

  // Payloads with a byte altered, or cut off; and references.
  void check_altered(const Pair& pair, const char* name, int times) {
    const Bytes payload = encode_on_cpu(pair);
    Random random(payload.size());
    for (int i = 0; i < times; ++i) {
      Bytes altered = payload;
      Pair other = pair;
      const uint64_t at = random.below(i % 2 == 0 ? std::min<uint64_t>(140, altered.size()) : altered.size());
      altered[at] = static_cast<uint8_t>(altered[at] ^ 1 << random.below(8));
      if (i % 7 == 6) altered.resize(altered.size() - 1 - random.below(30));
      if (i % 5 == 4) {
        altered = payload;
        other.reference[random.below(other.reference.size())] ^= 1;
      }
      const Verdict found = decode(other, altered, orders[i % 3], static_cast<uint64_t>(i));
      const Verdict wanted = decode_on_cpu(other, altered);
      expect(other, name,
             "an altered payload: status " + std::to_string(found.status) + " for " + std::to_string(wanted.status),
             found == wanted);
    }
  }

  void expect(const char* what, int got, int wanted) {
    ++runs_;
    if (got == wanted) return;
    ++differences_;
    std::printf("%s: %d instead of %d\n", what, got, wanted);
  }

  bool finish() const {
    std::printf(
        "%d pairs, plain %d, differences %d and %d in lists, exclusive or %d and %d, exact elements %d; %d runs, "
        "%d differences\n",
        pairs_, ways_[0][0], ways_[1][0], ways_[1][1], ways_[2][0], ways_[2][1], exact_, runs_, differences_);
    bool all = differences_ == 0 && exact_ > 0 && ways_[0][0] > 0;
    for (int way = 1; way < 3; ++way) all = all && ways_[way][0] > 0 && ways_[way][1] > 0;
    return all;
  }

 private:
  void expect(const Pair& pair, const char* name, const std::string& what, bool holds) {
    if (holds) return;
    ++differences_;
    const GroupSettings settings = group_settings(pair.codec);
    std::printf("%s %s, bound %d %g%s, %llu elements, run %d: %s\n", pair.dtype, name, static_cast<int>(settings.kind),
                settings.bound, settings.fast ? " fast" : "", static_cast<unsigned long long>(pair.count), runs_,
                what.c_str());
  }

  int orders_each_, runs_ = 0, differences_ = 0, pairs_ = 0, exact_ = 0;
  int ways_[3][2] = {};
};

// ---- the inputs' product

struct DType {
  const char* name;
  int id;
};
constexpr DType dtypes[] = {{"bfloat16", 11}, {"float32", 12}, {"uint8", 3}, {"float16", 10},
                            {"float64", 13},  {"int32", 6},    {"int64", 8}, {"int16", 4}};
constexpr uint64_t counts[] = {0, 1, 7, 31, 33, 1000, 4096, 4097, 12001, 33000};

Codec lossless(bool fast) { return {LosslessSettings{fast, Predictor::reference}}; }
Codec bounded(BoundKind kind, double bound, bool has_fill) {
  return {ErrorBoundedSettings{kind, bound, false, has_fill, 1, Predictor::reference}};
}

void check_pairs(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  uint64_t turn = static_cast<uint64_t>(dtype.id);
  for (const Change& change : changes)
    for (int kind = 0; kind < (element.is_float() ? 5 : 2); ++kind) {
      const uint64_t count = counts[turn++ % std::size(counts)];
      const Codec codecs[] = {
          lossless(turn % 4 == 3), lossless(false), bounded(BoundKind::absolute, 1e-2, turn % 2 == 0),
          bounded(BoundKind::relative, 1e-3, turn % 2 == 0), bounded(BoundKind::pointwise, 1e-2, false)};
      comparison.check(pair_of(dtype.name, element, codecs[kind], count, change, kind == 1, turn), change.name);
    }
  for (const int kind : {0, 3, 5})
    comparison.check(pair_of(dtype.name, element, lossless(false), 20000, changes[kind], true, turn),
                     changes[kind].name);
}

void check_altered(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  for (const size_t change : {1, 2, 5}) {
    comparison.check_altered(pair_of(dtype.name, element, lossless(false), 5000, changes[change], false, change),
                             changes[change].name, 30);
    if (!element.is_float()) continue;
    const Codec codec = bounded(BoundKind::absolute, 1e-3, false);
    comparison.check_altered(pair_of(dtype.name, element, codec, 5000, changes[change], false, change),
                             changes[change].name, 30);
  }
}

// As many launches as bench/GPU.md says.
void check_launches(Comparison& comparison) {
  const CountingLauncher lossless_encoding, bounded_encoding, decoding;
  alignas(256) static uint8_t scratch[sizeof(cuda::ReferenceDecoding)];  // not written
  const EncodeTask task{nullptr, nullptr, 1 << 20};
  const Element& element = elements[12];
  using Rows = RowsOf<cuda::Float32>;
  cuda::ReferenceEncoding<Rows::Bits, CountingLauncher>(lossless_encoding, lossless(false), element, nullptr, scratch)
      .encode(task, nullptr);
  cuda::ReferenceEncoding<Rows::Steps, CountingLauncher>(bounded_encoding, bounded(BoundKind::relative, 1e-3, false),
                                                         element, nullptr, scratch)
      .encode(task, nullptr);
  cuda::decode_referenced<Rows::Bits, Rows::Steps>(decoding, element, {nullptr, 0, nullptr, nullptr, task.count},
                                                   nullptr, nullptr, scratch);
  comparison.expect("launches to encode without loss", lossless_encoding.launches, 20);
  comparison.expect("launches to encode with a relative bound", bounded_encoding.launches, 23);
  comparison.expect("launches to decode, but for the status", decoding.launches, 18);
}

}  // namespace

// The argument: how many of the three orders each input is run in.
int main(int, char** arguments) {
  Comparison comparison(arguments[1] ? std::atoi(arguments[1]) : 1);
  for (const DType& dtype : dtypes) {
    check_pairs(comparison, dtype);
    check_altered(comparison, dtype);
  }
  check_launches(comparison);
  return comparison.finish() ? 0 : 1;
}
