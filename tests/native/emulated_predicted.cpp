// Runs the CUDA kernels of predicted arrays on emulated warps, as the driver launches them, and compares them with the
// CPU: the same payloads, bit for bit the same elements back, the same verdict on altered payloads. Prints what differs
// and a summary; exits with 0 if nothing does.
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include <cmath>

#include "cpu/driver.h"
#include "cpu/predicted.h"
#include "cuda/predicted_calls.h"
#include "emulated_launcher.h"

namespace {

struct Field {
  const char* dtype;
  const Element& element;
  Axes axes;
  Codec codec;
  Bytes elements;

  uint64_t count() const { return axes.count(); }
};

Bytes encode(const Field& field, Order order, uint64_t seed) {
  constexpr uint64_t warps = max_blocks * cuda::warps_per_block;
  Bytes payload(capacity(field.codec, field.element, field.count()), untouched);
  Bytes scratch = scratch_of(cuda::PredictedScratch(field.element, field.count()).memory +
                             warps * sizeof(cuda::MemoryOf<cuda::Float64, max_chunks_of_codes>));
  const EncodeTask task{field.elements.data(), payload.data(), field.count(), field.axes};
  const EmulatedLauncher launcher(order, seed);
  uint64_t length = 0;
  cuda::visit_predicted(field.element, [&]<class T>(T) {
    cuda::PredictedEncoding<T, EmulatedLauncher>(launcher, field.codec, field.element, &tables(), aligned(scratch))
        .encode(task, &length);
  });
  payload.resize(std::min<uint64_t>(length, payload.size()));
  return payload;
}

// None where the payload is corrupt.
Bytes decode(const Field& field, const Bytes& payload, Order order, uint64_t seed) {
  Bytes target(field.elements.size(), untouched);
  Bytes scratch = scratch_of(cuda::predicted_decode_bytes(field.element, field.count()));
  const uint64_t length = payload.size();
  Bytes longer = payload;
  if (seed % 2 == 0) longer.resize(length + 40, untouched);
  const DecodeTask task{longer.data(), longer.size(), seed % 2 == 0 ? &length : nullptr, target.data(), field.count()};
  uint32_t status = 0;
  cuda::visit_predicted(field.element, [&]<class T>(T) {
    cuda::decode_predicted<T>(EmulatedLauncher(order, seed), field.element, task, &tables(), &status, aligned(scratch));
  });
  return status == 0 ? target : Bytes();
}

Bytes encode_on_cpu(const Field& field) {
  Bytes payload(capacity(field.codec, field.element, field.count()));
  uint64_t length = 0;
  const EncodeTask task{field.elements.data(), payload.data(), field.count(), field.axes};
  cpu::encode(field.codec, field.element, std::span(&task, 1), &length, Seed{}, 1);
  payload.resize(length);
  return payload;
}

Bytes decode_on_cpu(const Field& field, const Bytes& payload) {
  Bytes target(field.elements.size(), untouched);
  const DecodeTask task{payload.data(), payload.size(), nullptr, target.data(), field.count()};
  return cpu::decode(field.codec, field.element, std::span(&task, 1), 1) == 1 ? target : Bytes();
}

// ---- fields

struct Kind {
  const char* name;
  double (*value)(const double (&at)[max_axes], Random& random);
};

double wave(const double (&at)[max_axes]) {
  return std::sin(at[4] / 9 + at[3] / 7) + std::cos(at[2] / 5) * std::sin(at[1] / 3 + at[4] / 13);
}

constexpr double fill = -999;
const Kind kinds[] = {
    {"waves", [](const double (&at)[max_axes], Random&) { return wave(at); }},
    {"noisy waves",
     [](const double (&at)[max_axes], Random& r) { return wave(at) + static_cast<double>(r.below(1000)) * 1e-6; }},
    {"gaps", [](const double (&at)[max_axes], Random&) { return at[4] + at[3] < 30 || at[4] > 90 ? NAN : wave(at); }},
    {"fill values", [](const double (&at)[max_axes], Random& r) { return r.below(9) == 0 ? fill : wave(at); }},
    {"wide range", [](const double (&at)[max_axes], Random& r) { return wave(at) * (r.below(50) == 0 ? 1e30 : 1); }},
    {"steps", [](const double (&at)[max_axes], Random&) { return std::floor(at[4] / 8) + std::floor(at[3] / 5); }},
    {"noise", [](const double (&)[max_axes], Random& r) { return static_cast<double>(r.below(1 << 20)); }},
    {"infinities", [](const double (&at)[max_axes], Random& r) { return r.below(40) == 0 ? INFINITY : wave(at); }},
    {"absent", [](const double (&at)[max_axes], Random& r) { return r.below(40) == 0 ? -1.0 : wave(at); }},
    {"a map", [](const double (&at)[max_axes], Random&) { return at[3] < 7 || at[4] > 15 ? NAN : wave(at); }},
    {"decimals", [](const double (&at)[max_axes], Random&) { return std::round(wave(at) * 100) / 100; }},
    {"decimals, others", [](const double (&at)[max_axes],
                            Random& r) { return r.below(30) == 0 ? wave(at) : std::round(wave(at) * 1000) * 0.001; }},
    {"any steps", [](const double (&at)[max_axes], Random&) { return std::round(wave(at) * 400) * 0.0731; }},
    {"unpacked", [](const double (&at)[max_axes], Random&) { return std::round(wave(at) * 9000) * 0.00137 + 251.3; }},
    {"unpacked, others",
     [](const double (&at)[max_axes], Random& r) {
       return r.below(60) == 0 ? wave(at) : std::round(wave(at) * 9000) * 0.00137 - 3.7;
     }},
    {"eighths",
     [](const double (&at)[max_axes], Random& r) { return r.below(99) == 0 ? NAN : std::round(wave(at) * 99) / 8; }},
    {"bursts",
     [](const double (&at)[max_axes], Random& r) {
       return std::max(0.0, wave(at) - 0.5) * (static_cast<double>(r.below(1000)) * 2e-3 - 1);
     }},
    {"short waves",
     [](const double (&at)[max_axes], Random& r) {
       return 40 * std::sin(1.3 * at[4] + 1.1 * at[3] + at[2]) + static_cast<double>(r.below(1000)) * 1e-3;
     }},
    {"mixed columns",
     [](const double (&at)[max_axes], Random& r) {
       return std::exp2(std::fmod(at[4] * 5, 12)) * static_cast<double>(r.below(100)) + at[4];
     }},
};
constexpr size_t mixed_columns = std::size(kinds) - 1;
constexpr size_t short_waves = mixed_columns - 1;  // predicted by weights

Bytes elements_of(const Element& element, const Axes& axes, const Kind& kind, uint64_t seed) {
  Random random(seed);
  const uint64_t item = element.width / 8;
  Bytes bytes(axes.count() * item);
  const bool has_absent = kind.name == kinds[8].name;
  for (uint64_t i = 0; i < axes.count(); ++i) {
    double at[max_axes];
    uint64_t rest = i;
    for (int a = max_axes; a-- > 0; rest /= axes.sizes[a]) at[a] = static_cast<double>(rest % axes.sizes[a]);
    uint64_t bits = bits_of(element, kind.value(at, random));
    if (has_absent && random.below(40) == 0) bits = absent_element;
    memcpy(&bytes[i * item], &bits, item);
  }
  return bytes;
}

class Comparison {
 public:
  explicit Comparison(const Effort& effort) : effort_(effort) {}

  void check(const Field& field, const char* name) {
    if (!is_next_run()) return;
    const Bytes wanted = encode_on_cpu(field), elements = decode_on_cpu(field, wanted);
    predicted_ += is_predicted(wanted.data(), wanted.size(), field.count());
    ++fields_;
    for (int i = 0; i < effort_.orders_each; ++i) {
      const Order order = orders[runs_++ % std::size(orders)];
      const Bytes payload = encode(field, order, static_cast<uint64_t>(runs_));
      expect(field, name, "payload", payload, wanted);
      expect(field, name, "elements", decode(field, wanted, order, static_cast<uint64_t>(runs_)), elements);
    }
  }

  // Payloads with a byte altered, or cut off.
  void check_altered(const Field& field, const char* name, int times) {
    const Bytes payload = encode_on_cpu(field);
    Random random(payload.size());
    for (int i = 0; i < times; ++i) {
      Bytes altered = payload;
      const uint64_t at = random.below(i % 2 == 0 ? 200 : altered.size());
      altered[at] = static_cast<uint8_t>(altered[at] ^ 1 << random.below(8));
      if (i % 7 == 6) altered.resize(altered.size() - 1 - random.below(30));
      if (!is_next_run()) continue;
      const Bytes found = decode(field, altered, orders[i % 3], static_cast<uint64_t>(i));
      expect(field, name, "altered payload", found, decode_on_cpu(field, altered));
    }
  }

  void expect(const char* what, bool holds) {
    ++runs_;
    if (holds) return;
    ++differences_;
    std::printf("%s: differs\n", what);
  }

  bool finish() const {
    std::printf("%d of %d fields are predicted; %d runs, %d differences\n", predicted_, fields_, runs_, differences_);
    return differences_ == 0 && predicted_ * 3 > fields_ * 2;
  }

 private:
  bool is_next_run() { return inputs_++ % effort_.every == 0; }

  void expect(const Field& field, const char* name, const char* what, const Bytes& got, const Bytes& wanted) {
    if (got == wanted) return;
    ++differences_;
    const GroupSettings settings = group_settings(field.codec);
    std::printf("%s %s, predictor %d, bound %g%s,", field.dtype, name, static_cast<int>(settings.predictor),
                settings.bound, settings.fast ? " fast" : "");
    for (const uint64_t size : field.axes.sizes) std::printf(" %llu", static_cast<unsigned long long>(size));
    std::printf(", run %d: %s: %s\n", runs_, what, difference(got, wanted).c_str());
  }

  Effort effort_;
  size_t inputs_ = 0;
  int runs_ = 0, differences_ = 0, predicted_ = 0, fields_ = 0;
};

// ---- the inputs' product

struct DType {
  const char* name;
  int id;
};
constexpr DType dtypes[] = {{"float32", 12}, {"float16", 10}, {"bfloat16", 11}, {"float64", 13}};
constexpr DType integers[] = {{"int8", 2},  {"uint8", 3},  {"int16", 4}, {"uint16", 5},
                              {"int32", 6}, {"uint32", 7}, {"int64", 8}, {"uint64", 9}};

Codec bounded(double bound, Predictor predictor, BoundKind kind = BoundKind::absolute, bool fast = false) {
  if (bound == 0) return {LosslessSettings{fast, predictor}};
  return {ErrorBoundedSettings{kind, bound, fast, true, fill, predictor}};
}

constexpr Predictor predictors[] = {Predictor::automatic, Predictor::interpolation, Predictor::lorenzo,
                                    Predictor::columns};
constexpr double bounds[] = {1e-1, 1e-3, 0};

const Axes shapes[] = {{{1, 1, 1, 1, 5000}}, {{1, 1, 1, 61, 83}}, {{1, 1, 17, 19, 23}},
                       {{1, 5, 6, 17, 12}},  {{4, 3, 5, 7, 11}},  {{1, 1, 1, 900, 3}},
                       {{1, 1, 2, 3, 700}},  {{1, 1, 1, 1, 512}}, {{1, 1, 40, 40, 8}}};

void check_fields(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  uint64_t turn = static_cast<uint64_t>(dtype.id);
  for (const Kind& kind : kinds)
    for (const Predictor predictor : predictors)
      for (const double bound : bounds) {
        const Axes& axes = shapes[turn % std::size(shapes)];
        const BoundKind bound_kind = turn % 4 == 3 ? BoundKind::relative : BoundKind::absolute;
        const Codec codec = bounded(bound, predictor, bound_kind, turn % 5 == 4);
        comparison.check({dtype.name, element, axes, codec, elements_of(element, axes, kind, turn)}, kind.name);
        ++turn;
      }
}

// Which have no bounds, and no gaps.
void check_integers(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  uint64_t turn = static_cast<uint64_t>(dtype.id);
  for (const size_t kind : {size_t{0}, size_t{1}, size_t{5}, size_t{6}, short_waves, mixed_columns})
    for (const Predictor predictor : predictors) {
      const Axes& axes = shapes[turn % std::size(shapes)];
      const Codec codec = bounded(0, predictor, BoundKind::absolute, turn % 5 == 4);
      const Field field{dtype.name, element, axes, codec, elements_of(element, axes, kinds[kind], turn)};
      comparison.check(field, kinds[kind].name);
      if (turn % 6 == 0) comparison.check_altered(field, kinds[kind].name, 10);
      ++turn;
    }
}

// Several boxes are tried; and grids of several groups.
void check_large(Comparison& comparison, const DType& dtype, const Axes& axes, const Kind& kind, double bound,
                 BoundKind bound_kind = BoundKind::absolute) {
  const Element& element = elements[dtype.id];
  const Codec codec = bounded(bound, Predictor::automatic, bound_kind);
  comparison.check({dtype.name, element, axes, codec, elements_of(element, axes, kind, 1)}, kind.name);
}

void check_altered(Comparison& comparison, const DType& dtype) {
  const Axes axes{{1, 1, 9, 21, 33}};
  const Element& element = elements[dtype.id];
  for (const size_t kind : {size_t{0}, size_t{2}, size_t{4}, size_t{9}, size_t{10}, short_waves}) {
    const Codec codec = bounded(kind >= 4 ? 0 : 1e-2, Predictor::interpolation);
    const Field field{dtype.name, element, axes, codec, elements_of(element, axes, kinds[kind], kind)};
    comparison.check_altered(field, kinds[kind].name, 40);
  }
  const Codec by_columns = bounded(1e-2, Predictor::columns);
  const Field field{dtype.name, element, axes, by_columns, elements_of(element, axes, kinds[mixed_columns], 1)};
  comparison.check_altered(field, kinds[mixed_columns].name, 40);
}

// As many launches as bench/GPU.md says.
void check_launches(Comparison& comparison) {
  const Axes axes{{1, 1, 256, 256, 256}};
  const Codec codec{ErrorBoundedSettings{BoundKind::relative, 1e-3, false, false, 0, Predictor::automatic}};
  const CountingLauncher encoding, decoding;
  alignas(256) static uint8_t scratch[sizeof(cuda::PredictedDecoding)];  // not written
  cuda::PredictedEncoding<cuda::Float32, CountingLauncher>(encoding, codec, elements[12], nullptr, scratch)
      .encode({nullptr, nullptr, axes.count(), axes}, nullptr);
  const DecodeTask task{nullptr, 0, nullptr, nullptr, axes.count()};
  cuda::decode_predicted<cuda::Float32>(decoding, elements[12], task, nullptr, nullptr, scratch);
  comparison.expect("launches to encode", encoding.launches == 125);
  comparison.expect("launches to decode, but for the status", decoding.launches == 53);
}

}  // namespace

// The arguments: of Effort.
int main(int, char** arguments) {
  Comparison comparison{Effort(arguments)};
  for (const DType& dtype : dtypes) {
    check_fields(comparison, dtype);
    check_altered(comparison, dtype);
  }
  for (const DType& dtype : integers) check_integers(comparison, dtype);
  check_large(comparison, integers[3], {{1, 1, 263, 271, 3}}, kinds[1], 0);
  check_large(comparison, dtypes[0], {{1, 1, 47, 53, 59}}, kinds[1], 1e-2);
  check_large(comparison, dtypes[3], {{1, 3, 7, 83, 79}}, kinds[1], 0);
  check_large(comparison, dtypes[0], {{1, 3, 7, 83, 79}}, kinds[11], 0);
  check_large(comparison, dtypes[3], {{1, 3, 7, 83, 79}}, kinds[9], 1e-2);
  check_large(comparison, dtypes[1], {{1, 1, 2, 11, 6007}}, kinds[2], 1e-2);  // lines of several pieces
  check_large(comparison, dtypes[0], {{3, 5, 7, 37, 43}}, kinds[2], 1e-2);    // one box, as axis 0 is the array's
  check_large(comparison, dtypes[0], {{1, 1, 1, 263, 271}}, kinds[1], 1e-3);  // all of it is tried
  // Boxes of several shapes; bands of all rows, of a part of them, and of one matrix of a stack.
  check_large(comparison, dtypes[0], {{1, 1, 1, 17000, 3}}, kinds[mixed_columns], 0);
  check_large(comparison, dtypes[1], {{1, 1, 1, 4200, 17}}, kinds[mixed_columns], 1e-1);
  check_large(comparison, dtypes[3], {{1, 1, 4, 1100, 19}}, kinds[mixed_columns], 0);
  check_large(comparison, integers[2], {{1, 1, 800, 9, 11}}, kinds[mixed_columns], 0);
  check_large(comparison, dtypes[0], {{1, 1, 1, 5000, 12}}, kinds[mixed_columns], 1e-2, BoundKind::pointwise);
  check_launches(comparison);
  return comparison.finish() ? 0 : 1;
}
