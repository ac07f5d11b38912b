// Runs the CUDA kernels of bucketed codecs on emulated warps and compares them with the CPU: the same payloads, bit for
// bit the same elements back, whatever the order in which a warp's lanes run. Prints what differs and a summary; exits
// with 0 if nothing does.
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include <numeric>
#include <set>

#include "cpu/buckets.h"
#include "cuda/bucket_kernels.cuh"
#include "cuda/bucket_sums.cuh"
#include "cuda/coded_buckets.cuh"
#include "cuda/set_up.cuh"
#include "cuda/statistics_kernels.cuh"

// On the lanes that those have chosen.
#include "bucketed_codecs.h"

namespace {

// ---- inputs

struct DType {
  const char* name;
  int id;
};

constexpr DType dtypes[] = {{"float16", 10}, {"bfloat16", 11}, {"float32", 12}, {"float64", 13}};
// Segments of a bucket that differ in size by many orders of magnitude.
constexpr Pattern scales{"scales", [](uint64_t i, Random& r) {
                           return std::ldexp(r.bell(), static_cast<int>(i * 7 / 5000 % 9) * 20 - 100);
                         }};
// Zeros that are outliers.
constexpr Pattern far_zeros{"far zeros", [](uint64_t i, Random& r) { return i % 7 == 3 ? 0 : 5 + r.bell(); }};
constexpr Pattern any_bits{"random bits", nullptr};

struct Source {
  const char* name;
  const Pattern& pattern;
  enum class Exponents { as_they_are, of_numbers, of_subnormals } exponents;

  Bytes elements(const Element& element, uint64_t count) const {
    Bytes all = elements_of(element, count, pattern);
    if (exponents == Exponents::as_they_are) return all;
    const size_t bytes = element.width / 8;
    const uint64_t field = ((uint64_t{1} << element.exponent_bits) - 1) << element.mantissa_bits;
    for (size_t at = 0; at < all.size(); at += bytes) {
      uint64_t bits = 0;
      memcpy(&bits, all.data() + at, bytes);
      if (exponents == Exponents::of_subnormals) bits &= ~field;
      if ((bits & field) == field) bits ^= uint64_t{1} << element.mantissa_bits;
      memcpy(all.data() + at, &bits, bytes);
    }
    return all;
  }
};

const Source sources[] = {
    {"weights", patterns[0], Source::Exponents::as_they_are},
    {"activations", patterns[1], Source::Exponents::as_they_are},
    {"sparse", patterns[2], Source::Exponents::as_they_are},
    {"offset", patterns[5], Source::Exponents::as_they_are},
    {"far zeros", far_zeros, Source::Exponents::as_they_are},
    {"constant", patterns[6], Source::Exponents::as_they_are},
    {"zeros", patterns[7], Source::Exponents::as_they_are},
    {"specials", patterns[9], Source::Exponents::as_they_are},
    {"scales", scales, Source::Exponents::of_numbers},
    {"random bits", any_bits, Source::Exponents::as_they_are},
    {"numbers of all sizes", any_bits, Source::Exponents::of_numbers},
    {"subnormal numbers", any_bits, Source::Exponents::of_subnormals},
};

BucketLayout layout_of(const Codec& codec, const Element& element) {
  BucketLayout layout;
  bucket_layout(codec, element, layout);
  return layout;
}

// A codec and how it is called in reports.
struct NamedCodec {
  std::string name;
  Codec codec;
};

struct Input {
  DType dtype;
  const Source& source;
  NamedCodec codec;
  uint64_t count;

  const Element& element() const { return elements[dtype.id]; }
  BucketLayout layout() const { return layout_of(codec.codec, element()); }
  BucketPlan plan() const { return make_bucket_plan(layout(), element(), count); }
};

// Calls visit(settings, Type<Coder>{}) with what the kernels of the codec and the elements are made of.
template <class Coder>
struct Type {
  using type = Coder;
};

template <class Visitor>
void visit_coder(const Codec& codec, const Element& element, Visitor visit) {
  const auto visit_settings = [&]<class Settings>(const Settings& settings) {
    if constexpr (Bucketed<Settings>) {
      cuda::visit_real(
          element, [&]<class Real>(Real) { visit(settings, Type<typename cuda::CoderOf<Settings, Real>::type>{}); });
    }
  };
  std::visit(visit_settings, codec.settings);
}

// A 64-bit number that is aligned to 4 alone.
class LooseNumber {
 public:
  explicit LooseNumber(uint64_t value) { memcpy(words_ + 1, &value, sizeof value); }
  const uint64_t* address() const { return reinterpret_cast<const uint64_t*>(words_ + 1); }

 private:
  alignas(8) uint32_t words_[3] = {};
};

// ---- the kernels as the driver launches them

constexpr size_t max_arrays = 16;  // in a call

// Where the arrays of a call are: one alone is part of the list, several are set up by a kernel.
template <class Array>
struct Table {
  std::vector<Array> arrays{max_arrays};
  cuda::ArrayList<Array> list;
};

// One array of a call, its elements or its payload.
struct Array {
  uint64_t count;
  Bytes bytes;
  uint64_t missing = 0;  // bytes of the payload that its length tells of, but that are not there
};

// Memory of elements, so many bytes behind a multiple of 16.
class Shifted {
 public:
  Shifted(size_t size, size_t shift) : memory_(size + shift + 16, untouched), size_(size) {
    begin_ = (16 - reinterpret_cast<uintptr_t>(memory_.data()) % 16) % 16 + shift;
  }
  Shifted(const Bytes& bytes, size_t shift) : Shifted(bytes.size(), shift) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  uint8_t* data() { return memory_.data() + begin_; }
  Bytes bytes() { return Bytes(data(), data() + size_); }

 private:
  Bytes memory_;
  size_t size_, begin_;
};

struct Run {
  Element element;
  Codec codec;
  Order order;
  uint64_t seed;            // of the random numbers, and of the order
  bool is_shifted = false;  // arrays are aligned to an element alone

  size_t shift() const { return is_shifted ? element.width / 8 : 0; }

  cuda::BucketTiling tiling() const { return {element, layout_of(codec, element)}; }
  template <class Kernel>
  void launch(uint64_t units, Kernel kernel) const {
    ::launch(units, order, seed, kernel);
  }
};

// Each array's payload.
std::vector<Bytes> encode(const std::vector<Array>& arrays, const Run& run) {
  std::vector<Bytes> payloads;
  std::vector<Shifted> sources;
  for (const Array& array : arrays) sources.emplace_back(array.bytes, run.shift());
  cuda::Batch<EncodeTask, max_arrays> batch{0, arrays.size(), {}};
  uint64_t units = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const BucketPlan plan = run.tiling().plan(arrays[i].count);
    payloads.emplace_back(longest_length(plan), untouched);
    batch.items[i] = {{sources[i].data(), payloads[i].data(), plan.count}, units};
    units += run.tiling().units(plan);
  }
  std::vector<uint64_t> lengths(arrays.size(), untouched);
  Table<cuda::BucketEncodeArray> table;
  table.list = {arrays.size() > 1 ? table.arrays.data() : nullptr, {}, arrays.size(), units};
  if (arrays.size() == 1) {
    table.list.single = cuda::device_array(run.tiling(), batch.items[0].array, 0, lengths.data());
  } else {
    run.launch(1, [&] { cuda::set_up_bucket_encoding(batch, run.tiling(), table.arrays.data(), lengths.data()); });
  }
  std::vector<cuda::ChunkStatistics> statistics(units);
  const LooseNumber seed_in_memory(run.seed);
  const Seed by_value{run.seed, nullptr}, in_memory{0, seed_in_memory.address()};
  const Seed& seed = run.seed % 2 == 0 ? by_value : in_memory;
  visit_coder(run.codec, run.element, [&]<class Settings, class Coder>(const Settings& asked, Type<Coder>) {
    const Settings settings = cuda::ready_to_encode(asked);
    const auto fit_buckets = [&](bool of_array) {
      const cuda::StatisticsWork work{table.list, statistics.data(), of_array};
      run.launch(units, [&] { cuda::statistics_kernel<typename Coder::Real>(work, settings.moments()); });
      run.launch(units, [&] { cuda::join_runs_kernel(work); });
      run.launch(units, [&] { cuda::fit_buckets_kernel<Coder>({work, seed, settings}); });
    };
    const BucketLayout layout = run.tiling().layout;
    if (layout.array_bytes > 0) fit_buckets(true);
    if (layout.bucket_size == 0 || layout.bucket_size > segment_size) fit_buckets(false);
    uint64_t tickets[2] = {};
    std::vector<uint64_t> entries(units);
    const cuda::BucketEncodeWork work{table.list, seed, tickets, entries.data()};
    if constexpr (cuda::HasWindows<Coder>) {
      if constexpr (!cuda::FitsRows<Coder>)
        run.launch(units, [&] { cuda::fit_chunks_kernel<Coder>({work, settings}); });
      run.launch(units, [&] { cuda::encode_windows_kernel_of<Coder>()({work, settings}); });
    }
    run.launch(units, [&] { cuda::encode_kernel_of<Coder>()({work, settings}); });
  });
  for (size_t i = 0; i < payloads.size(); ++i) payloads[i].resize(lengths[i] <= payloads[i].size() ? lengths[i] : 0);
  return payloads;
}

struct Decoded {
  bool is_corrupt;
  std::vector<Bytes> targets;
};

// Each payload's elements. Every second payload comes with its length and with more memory than it takes.
Decoded decode(std::vector<Array> payloads, const Run& run) {
  std::vector<Shifted> targets;
  std::vector<LooseNumber> lengths;
  for (const Array& payload : payloads) lengths.emplace_back(payload.bytes.size() + payload.missing);
  cuda::Batch<DecodeTask, max_arrays> batch{0, payloads.size(), {}};
  uint64_t units = 0;
  for (size_t i = 0; i < payloads.size(); ++i) {
    auto& [count, bytes, missing] = payloads[i];
    const bool has_length = (run.seed + i) % 2 == 0;
    if (has_length && missing == 0) bytes.resize(bytes.size() + 40, untouched);
    targets.emplace_back(count * run.element.width / 8, run.shift());
    const uint64_t* const length = has_length ? lengths[i].address() : nullptr;
    batch.items[i] = {{bytes.data(), bytes.size(), length, targets[i].data(), count}, units};
    units += run.tiling().units(run.tiling().plan(count));
  }
  uint32_t status = payloads.size() == 1 ? 0 : 7;
  Table<cuda::BucketDecodeArray> table;
  table.list = {payloads.size() > 1 ? table.arrays.data() : nullptr, {}, payloads.size(), units};
  if (payloads.size() == 1) {
    table.list.single = cuda::device_array(run.tiling(), batch.items[0].array, 0);
  } else {
    run.launch(1, [&] { cuda::set_up_decoding(batch, run.tiling(), table.arrays.data(), &status); });
  }
  visit_coder(run.codec, run.element, [&]<class Coder>(const auto& settings, Type<Coder>) {
    const cuda::BucketDecodeWork work{table.list, &status};
    if constexpr (cuda::HasWindows<Coder>)
      run.launch(units, [&] { cuda::decode_windows_kernel_of<Coder>()({work, settings}); });
    run.launch(units, [&] { cuda::decode_kernel_of<Coder>()({work, settings}); });
  });
  Decoded decoded{status != 0, {}};
  for (Shifted& target : targets) decoded.targets.push_back(target.bytes());
  return decoded;
}

// A sum's result, and whether a term was found corrupt.
struct Added {
  bool is_corrupt;
  Bytes bytes;
};

cuda::SumWork sum_work(const Input& input, const std::vector<Summand>& terms, uint64_t units, uint32_t& status) {
  return {input.plan(), {terms.data(), terms[0], terms.size(), units}, nullptr, nullptr, &status};
}

// An array, if it is not empty, and payloads.
Added add(const Input& input, const std::vector<Summand>& terms, Bytes start, const Run& run) {
  uint32_t status = 0;
  Added added{false, start};
  added.bytes.resize(input.count * input.element().width / 8, untouched);
  const uint64_t units = ceil_div(input.count, uint64_t{chunk_size});
  cuda::SumWork work = sum_work(input, terms, units, status);
  work.target = added.bytes.data();
  work.start = start.empty() ? nullptr : work.target;
  visit_coder(run.codec, run.element, [&]<class Coder>(const auto& settings, Type<Coder>) {
    if constexpr (HasSums<typename Coder::Settings>)
      run.launch(units, [&] { cuda::sum_buckets_kernel<Coder>({work, settings}); });
  });
  added.is_corrupt = status != 0;
  return added;
}

// The payload of a sum, with a codec whose layout fits_chunks.
Added encode_sum(const Input& input, const std::vector<Summand>& terms, const Codec& result, const Run& run) {
  uint32_t status = 0;
  const cuda::BucketTiling tiling{input.element(), layout_of(result, input.element())};
  const BucketPlan plan = tiling.plan(input.count);
  Added added{false, Bytes(plan.length, untouched)};
  uint64_t length = untouched;
  Bytes windows(max_blocks * cuda::warps_per_block * chunk_size * sizeof(double), untouched);
  const uint64_t units = tiling.units(plan);
  const cuda::SumEncodeWork work{sum_work(input, terms, units, status),
                                 {plan, nullptr, added.bytes.data(), &length, 0},
                                 {run.seed, nullptr},
                                 windows.data()};
  visit_coder(result, run.element, [&]<class Settings, class Coder>(const Settings& settings, Type<Coder>) {
    const auto& of_terms = std::get<Settings>(run.codec.settings);
    if constexpr (HasSums<Settings>)
      run.launch(units, [&] { cuda::encode_sum_kernel<Coder>({work, of_terms, settings}); });
  });
  added.is_corrupt = status != 0;
  if (length != plan.length) added.bytes.clear();
  return added;
}

Bytes encode_on_cpu(const Input& input, const Bytes& source, uint64_t seed) {
  const BucketPlan plan = input.plan();
  Bytes payload(longest_length(plan), untouched);
  payload.resize(cpu::encode_buckets(input.codec.codec, plan, source.data(), payload.data(), seed, 1));
  return payload;
}

Bytes decode_on_cpu(const Input& input, const Bytes& payload) {
  Bytes target(input.count * input.element().width / 8, untouched);
  cpu::decode_buckets(input.codec.codec, input.plan(), payload.data(), payload.size(), target.data(), 1);
  return target;
}

bool is_corrupt_on_cpu(const Input& input, const Bytes& payload) {
  Bytes target(input.count * input.element().width / 8);
  const BucketPlan plan = input.plan();
  return !cpu::decode_buckets(input.codec.codec, plan, payload.data(), payload.size(), target.data(), 1);
}

// ---- what is compared

class Comparison {
 public:
  explicit Comparison(const Effort& effort) : effort_(effort) {}

  // Of what comes next.
  void check_all() { effort_.every = 1; }

  // The same payload and the same elements as the CPU, in some or all orders of the lanes.
  void check(const Input& input, bool is_shifted = false) {
    if (!is_next_run()) return;
    const Bytes source = input.source.elements(input.element(), input.count);
    for (int i = 0; i < effort_.orders_each; ++i) {
      Run run = next_run(input);
      run.is_shifted = is_shifted;
      const Bytes payload = encode_on_cpu(input, source, run.seed);
      expect(input, "payload", encode({{input.count, source}}, run)[0], payload);
      expect_elements({input}, decode({{input.count, payload}}, run), {{input.count, payload}});
    }
  }

  // Several arrays of a call, with the same settings: each has the payload and the elements that it has alone.
  void check_together(const std::vector<Input>& inputs) {
    const Run run = next_run(inputs[0]);
    std::vector<Array> arrays, payloads;
    for (const Input& input : inputs) {
      const Bytes source = input.source.elements(input.element(), input.count);
      arrays.push_back({input.count, source});
      payloads.push_back({input.count, encode_on_cpu(input, source, run.seed)});
    }
    const std::vector<Bytes> encoded = encode(arrays, run);
    for (size_t i = 0; i < inputs.size(); ++i) expect(inputs[i], "payload of several", encoded[i], payloads[i].bytes);
    expect_elements(inputs, decode(payloads, run), payloads);
    for (const size_t altered : {size_t{0}, inputs.size() / 2}) {
      std::vector<Array> with_longer = payloads;
      with_longer[altered].bytes.resize(payloads[altered].bytes.size() + 8);
      expect_corrupt(inputs[altered], "one of several payloads, longer", decode(with_longer, run));
    }
  }

  // Any bytes of the right length have elements; those of another length are corrupt.
  void check_lengths(const Input& input) {
    Bytes payload(input.plan().length);
    Random random(input.count);
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random.word());
    for (int i = 0; i < 2; ++i) {  // with and without a number that tells the length
      const Run run = next_run(input);
      expect_elements({input}, decode({{input.count, payload}}, run), {{input.count, payload}});
      const Bytes longer(payload.size() + 8), shorter(payload.begin(), payload.end() - 8);
      expect_corrupt(input, "longer payload", decode({{input.count, longer}}, run));
      expect_corrupt(input, "shorter payload", decode({{input.count, shorter}}, run));
      expect_corrupt(input, "cut payload", decode({{input.count, shorter, 8}}, run));
      expect_corrupt(input, "payload of no elements, longer", decode({{0, longer}}, run));
    }
  }

  // Sums of `number` payloads, added to an array and encoded with a codec whose settings have the same type.
  void check_sum(const Input& input, const NamedCodec& result, size_t number) {
    if (!is_next_run()) return;
    const Run run = next_run(input);
    std::vector<Bytes> payloads;
    std::vector<Summand> terms;
    for (size_t t = 0; t < number; ++t) {
      const Source& source = t == 0 ? input.source : sources[t % 4];
      payloads.push_back(encode_on_cpu(input, source.elements(input.element(), input.count), run.seed + t));
    }
    std::vector<LooseNumber> lengths(number, LooseNumber(payloads[0].size()));
    for (size_t t = 0; t < number; ++t)
      terms.push_back({payloads[t].data(), payloads[t].size(), t % 2 == 0 ? nullptr : lengths[t].address(),
                       t == 1 ? -1.5 : 1.0 / static_cast<double>(t + 1)});
    const BucketPlan plan = input.plan();
    const SumJob job{input.codec.codec, plan, terms, nullptr};
    Bytes total(input.count * input.element().width / 8);
    cpu::sum_buckets(job, total.data(), 1);
    expect(input, "sum", add(input, terms, {}, run).bytes, total);
    const Input of_result{input.dtype, input.source, result, input.count};
    const Added encoded = encode_sum(input, terms, result.codec, run);
    expect(input, "payload of a sum", encoded.bytes, encode_on_cpu(of_result, total, run.seed));
    if (encoded.is_corrupt) report(input, "sum", "is found corrupt");
    Bytes start = sources[1].elements(input.element(), input.count), more = start;
    const SumJob accumulation{input.codec.codec, plan, terms, more.data()};
    cpu::sum_buckets(accumulation, more.data(), 1);
    expect(input, "sum with an array", add(input, terms, start, run).bytes, more);
    terms.back().limit -= 8;
    const Added tiling = add(input, terms, start, run);
    if (!tiling.is_corrupt || !encode_sum(input, terms, result.codec, run).is_corrupt)
      report(input, "sum with a tiling payload", "is not found corrupt");
    expect(input, "array that a tiling payload is added to", tiling.bytes, start);
  }

  // The CPU and the kernels find the same altered payloads corrupt, and the same elements in the others.
  void check_altered(const Input& input) {
    const Bytes whole = encode_on_cpu(input, input.source.elements(input.element(), input.count), 1);
    Random random(input.count);
    for (int i = 0; i < 12; ++i) {
      const Run run = next_run(input);
      Bytes payload = whole;
      const size_t from = i % 2 == 0 ? 0 : input.plan().directory_offset;
      payload[from + random.below(payload.size() - from)] ^= static_cast<uint8_t>(1u << random.below(8));
      if (i % 4 == 3) payload.resize(payload.size() - 4);
      const Decoded decoded = decode({{input.count, payload}}, run);
      if (decoded.is_corrupt != is_corrupt_on_cpu(input, payload)) report(input, "altered payload", "is judged apart");
      if (!decoded.is_corrupt) expect(input, "altered elements", decoded.targets[0], decode_on_cpu(input, payload));
    }
  }

  // What is in front of entropy-coded codes is copied to payloads and back, and lengths are told without and with it.
  void check_fronts() {
    constexpr uint64_t sizes[] = {0, 8, 4096, 80}, codes = 24;
    std::vector<Bytes> sources, targets;
    cuda::Batch<cuda::Front, max_arrays> fronts{0, std::size(sizes), {}};
    cuda::Batch<cuda::CodedPayload, max_arrays> payloads{0, std::size(sizes), {}};
    std::vector<uint64_t> lengths(std::size(sizes), codes);
    for (size_t i = 0; i < std::size(sizes); ++i) {
      sources.push_back(sources_of_front(sizes[i], i));
      targets.emplace_back(sizes[i] + 8, untouched);
      fronts.items[i].array = {sources[i].data(), targets[i].data(), sizes[i]};
    }
    ::launch(20, orders[2], 1, [&] { cuda::finish_coded_encoding(fronts, lengths.data()); });
    for (size_t i = 0; i < std::size(sizes); ++i) {
      expect_front("front of a payload", targets[i], sources[i], lengths[i], sizes[i] + codes);
      targets[i].assign(sizes[i] + 8, untouched);
      // One whose length is told, one that is cut in its front, one whose length is more than is there.
      const uint64_t limit = i == 1 ? sizes[i] - 8 : sizes[i] + codes - (i == 3 ? 8 : 0);
      payloads.items[i].array = {
          {sources[i].data(), targets[i].data(), sizes[i]}, limit, i == 1 ? nullptr : lengths.data() + i};
    }
    std::vector<uint64_t> left(std::size(sizes), 7);
    ::launch(20, orders[1], 2, [&] { cuda::set_up_coded_decoding(payloads, left.data()); });
    for (size_t i = 0; i < std::size(sizes); ++i) {
      const bool is_cut = i == 1, is_wrong = i % 2 == 1;
      const Bytes expected = is_cut ? Bytes(sizes[i] + 8, untouched) : sources[i];
      expect_front("front to decode", targets[i], expected, left[i], is_wrong ? ~uint64_t{0} : codes);
    }
    ++runs_;
  }

  void expect(const char* what, bool holds) {
    if (holds) return;
    ++differences_;
    std::printf("%s: wrong\n", what);
  }

  // Prints a summary; false where anything differed.
  bool finish() const {
    std::printf("%d runs, %d differences\n", runs_, differences_);
    return differences_ == 0;
  }

 private:
  Run next_run(const Input& input) {
    const auto seed = static_cast<uint64_t>(runs_) * 0x9e3779b97f4a7c15u;  // even and odd ones
    return {input.element(), input.codec.codec, orders[runs_++ % std::size(orders)], seed};
  }

  // A front, and 8 bytes behind it that are not copied.
  static Bytes sources_of_front(uint64_t size, uint64_t seed) {
    Random random(seed);
    Bytes bytes(size + 8, untouched);
    for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(random.word());
    return bytes;
  }

  void expect_front(const char* what, const Bytes& got, const Bytes& wanted, uint64_t length, uint64_t wanted_length) {
    if (got == wanted && length == wanted_length) return;
    ++differences_;
    std::printf("%s of %zu bytes: length %llu\n", what, wanted.size() - 8, static_cast<unsigned long long>(length));
  }

  bool is_next_run() { return inputs_++ % effort_.every == 0; }

  void expect(const Input& input, const char* what, const Bytes& got, const Bytes& wanted) {
    if (got != wanted) report(input, what, difference(got, wanted));
  }

  void expect_elements(const std::vector<Input>& inputs, const Decoded& decoded, const std::vector<Array>& payloads) {
    if (decoded.is_corrupt) report(inputs[0], "payload", "is found corrupt");
    for (size_t i = 0; i < inputs.size(); ++i)
      expect(inputs[i], "elements", decoded.targets[i], decode_on_cpu(inputs[i], payloads[i].bytes));
  }

  void expect_corrupt(const Input& input, const char* what, const Decoded& decoded) {
    if (!decoded.is_corrupt) report(input, what, "is not found corrupt");
  }

  void report(const Input& input, const char* what, const std::string& finding) {
    ++differences_;
    std::printf("%s %s, %s, %llu elements, run %d: %s: %s\n", input.dtype.name, input.source.name,
                input.codec.name.c_str(), static_cast<unsigned long long>(input.count), runs_, what, finding.c_str());
  }

  Effort effort_;
  size_t inputs_ = 0;
  int runs_ = 0, differences_ = 0;
};

// ---- the codecs

NamedCodec named(const QsgdSettings& s) {
  const char* const norms[] = {"min-max", "L2", "Linf"};
  std::string name = "QSGD " + std::to_string(s.bits) + " bits, " + norms[static_cast<int>(s.norm)];
  name += (s.stochastic ? " stochastic, buckets of " : ", buckets of ") + std::to_string(s.bucket_size);
  if (s.entropy) name += ", bytes";
  return {name + (s.skip_incomplete ? " complete" : ""), {s}};
}

constexpr const char* scaling_names[] = {"unscaled", "scaled", "scaled as a whole"};

NamedCodec named(const CodebookSettings& s) {
  const std::string name = "codebook of " + std::to_string(s.tables.bits) + " bits, " +
                           scaling_names[static_cast<int>(s.scaling)] + ", buckets of " + std::to_string(s.bucket_size);
  return {name, {s}};
}

// Levels in any order, and borders closer together near 0.

CodebookSettings codebook(Scaling scaling, uint64_t bucket_size, int levels) {
  std::vector<double> parameters{static_cast<double>(scaling), static_cast<double>(bucket_size)};
  for (int i = 1; i < levels; ++i) {
    const double position = 2.0 * i / levels - 1;
    parameters.push_back(position * position * position);
  }
  for (int i = 0; i < levels; ++i) parameters.push_back(std::ldexp(i * 7919 % 509 - 250, -8));
  CodebookSettings settings{};
  if (!read_parameters(parameters, settings)) std::abort();
  return settings;
}

constexpr uint64_t bucket_sizes[] = {16, 100, 512, 4096, 5000};

void add_qsgd(std::vector<NamedCodec>& codecs) {
  for (const uint64_t size : bucket_sizes)
    for (const int bits : {1, 3, 4, 8})
      for (const Norm norm : {Norm::minmax, Norm::l2, Norm::linf})
        for (const bool stochastic : {false, true})
          codecs.push_back(named(QsgdSettings{bits, size, norm, stochastic, bits == 3, bits == 3 || size == 100}));
}

void add_codebooks(std::vector<NamedCodec>& codecs) {
  int levels = 2;
  for (const uint64_t size : bucket_sizes)
    for (const Scaling scaling : {Scaling::none, Scaling::absmax, Scaling::tensor}) {
      codecs.push_back(named(codebook(scaling, size, levels)));
      levels = levels < 200 ? levels + levels / 2 : 256;
    }
}

NamedCodec named(const S2fp8Settings& s) {
  const std::string rounding = s.stochastic ? "S2FP8 stochastic, buckets of " : "S2FP8, buckets of ";
  return {rounding + std::to_string(s.bucket_size), {s}};
}

void add_s2fp8(std::vector<NamedCodec>& codecs) {
  for (const uint64_t size : {0, 16, 100, 4096, 5000})
    for (const bool stochastic : {false, true}) codecs.push_back(named(S2fp8Settings{size, stochastic}));
}

NamedCodec named(const FloatFormatSettings& s) {
  const char* const scales[] = {"no scale", "numbers", "powers (floor)", "powers (ceil)", "two levels"};
  const FloatSpec& spec = s.spec;
  std::string name = "e" + std::to_string(spec.exponent_bits) + "m" + std::to_string(spec.mantissa_bits) + ", bias " +
                     std::to_string(spec.bias) + ", specials " + std::to_string(static_cast<int>(spec.specials));
  name += std::string(", ") + scales[static_cast<int>(s.scale)] + ", buckets of " + std::to_string(s.bucket_size);
  return {name + (s.stochastic ? " stochastic" : "") + (spec.saturates ? "" : " infinity"), {s}};
}

constexpr FloatSpec float_specs[] = {
    {4, 3, 7, Specials::one_nan, true}, {5, 2, 15, Specials::ieee, true},         {8, 7, 127, Specials::ieee, true},
    {2, 1, 1, Specials::none, true},    {4, 3, 8, Specials::unsigned_zero, true}, {3, 2, 3, Specials::none, true},
    {8, 23, 127, Specials::ieee, true}, {7, 6, 63, Specials::ieee, true},
};

constexpr FloatSpec integer_spec{1, 6, 1, Specials::integer, true};
constexpr FloatFormatSettings nvfp4{{2, 1, 1, Specials::none, true}, ScaleKind::two_level, 16, false};

void add_float_formats(std::vector<NamedCodec>& codecs) {
  for (const bool stochastic : {false, true}) {
    for (const FloatSpec& spec : float_specs) {
      for (const uint64_t size : bucket_sizes)
        codecs.push_back(named(FloatFormatSettings{spec, ScaleKind::number, size, stochastic}));
      codecs.push_back(named(FloatFormatSettings{spec, ScaleKind::number, 0, stochastic}));
      for (const ScaleKind kind : {ScaleKind::floor, ScaleKind::ceil})
        codecs.push_back(named(FloatFormatSettings{spec, kind, 32, stochastic}));
      codecs.push_back(named(FloatFormatSettings{spec, ScaleKind::two_level, 16, stochastic}));
      FloatSpec infinite = spec;
      infinite.saturates = false;
      if (spec.specials == Specials::none) continue;
      codecs.push_back(named(FloatFormatSettings{spec, ScaleKind::none, 0, stochastic}));
      codecs.push_back(named(FloatFormatSettings{infinite, ScaleKind::none, 0, stochastic}));
    }
    codecs.push_back(named(FloatFormatSettings{integer_spec, ScaleKind::floor, 32, stochastic}));
  }
}

NamedCodec named(const SmaqSettings& s) {
  const char* const statistics[] = {"exact", "sampled", "range", "given"};
  const char* const roundings[] = {"nearest", "stochastic", "truncating"};
  std::string name = "SmaQ " + std::to_string(s.main_bits) + "/" + std::to_string(s.outlier_bits) + " bits, ";
  name += std::string(statistics[static_cast<int>(s.statistics)]) + ", " + roundings[static_cast<int>(s.rounding)];
  return {name + ", blocks of " + std::to_string(s.block_size), {s}};
}

SmaqSettings smaq(int main_bits, int outlier_bits, uint64_t block_size) {
  return {main_bits,  outlier_bits,         1,    2.5,   true, Statistics::exact, 0.01, 0.02, 16,
          block_size, Rounding::stochastic, true, false, 8};
}

void add_smaq(std::vector<NamedCodec>& codecs) {
  for (const uint64_t size : {0, 32, 1024, 4096, 5000}) {
    SmaqSettings s = smaq(6, 8, size);
    codecs.push_back(named(s));
    s.rounding = Rounding::nearest;
    s.statistics = Statistics::range;
    s.all_positive = true;
    codecs.push_back(named(s));
    s = smaq(3, 12, size);
    s.statistics = Statistics::sampled;
    s.num_samples = 40;
    codecs.push_back(named(s));
    s = smaq(8, 9, size);
    s.rounding = Rounding::truncate;
    s.statistics = Statistics::given;
    s.extends = s.preserve_zeros = false;
    codecs.push_back(named(s));
    s = smaq(5, 5, size);
    s.min_size = 5000;
    codecs.push_back(named(s));
  }
}

struct Example {
  int id;
  std::vector<double> parameters;
};

// The examples of all codecs of buckets, which test_emulated_warp.py writes.
const std::vector<Example> examples = {
#include "examples.inc"
};

// Of the codecs that have no function here.
void add_examples(std::vector<NamedCodec>& codecs) {
  std::set<size_t> listed;
  for (const NamedCodec& codec : codecs) listed.insert(codec.codec.settings.index());
  for (const auto& [id, parameters] : examples) {
    Codec codec;
    if (!codec_of(id, parameters, codec)) std::abort();
    if (listed.contains(codec.settings.index())) continue;
    std::string name = "codec " + std::to_string(id) + " with";
    for (const double parameter : parameters) name += " " + std::to_string(parameter);
    codecs.push_back({name, codec});
  }
}

// All that are looked at.
std::vector<NamedCodec> all_codecs() {
  std::vector<NamedCodec> codecs;
  add_qsgd(codecs);
  add_codebooks(codecs);
  add_s2fp8(codecs);
  add_float_formats(codecs);
  add_smaq(codecs);
  add_examples(codecs);
  return codecs;
}

// ---- the inputs' product

// Sources and codecs take turns.
class Turns {
 public:
  explicit Turns(std::vector<NamedCodec> codecs) : codecs_(std::move(codecs)) {
    while (std::gcd(step_, codecs_.size()) != 1) ++step_;  // or some would have no turn
  }
  const std::vector<NamedCodec>& codecs() const { return codecs_; }
  const Source& source() { return sources[source_++ % std::size(sources)]; }
  const NamedCodec& codec() { return codecs_[codec_++ * step_ % codecs_.size()]; }

 private:
  std::vector<NamedCodec> codecs_;
  size_t source_ = 0, codec_ = 0, step_ = 7;
};

bool takes(const NamedCodec& codec, const DType& dtype) { return arrcomp::takes(codec.codec, elements[dtype.id]); }

void check_settings(Comparison& comparison, const DType& dtype, Turns& turns) {
  for (const NamedCodec& codec : turns.codecs()) {
    if (!takes(codec, dtype)) continue;
    const uint64_t size = layout_of(codec.codec, elements[dtype.id]).bucket_size;
    comparison.check({dtype, turns.source(), codec, size == 0 || size > 4096 ? 9001u : 1500u});
  }
}

// Every source with some codecs of each kind.
void check_sources(Comparison& comparison, const DType& dtype, const Turns& turns) {
  constexpr size_t every = 11;
  for (const Source& source : sources)
    for (size_t i = 0; i < turns.codecs().size(); i += every)
      if (takes(turns.codecs()[i], dtype)) comparison.check({dtype, source, turns.codecs()[i], 5333});
}

// Regular chunks and what is behind them: codes of all sizes, buckets that windows have several of, one of, or a part of,
// and those that they do not fit. Every fifth array is aligned to an element alone.
void check_windows(Comparison& comparison, const DType& dtype, Turns& turns) {
  constexpr uint64_t sizes[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 100, 8000, 1 << 20};
  auto check = [&, number = 0](const auto& settings, uint64_t size) mutable {
    const NamedCodec codec = named(settings);
    const uint64_t count = size > 4096 ? 5 * chunk_size + 700 : 2 * chunk_size + (number % 3) * 700;
    if (takes(codec, dtype)) comparison.check({dtype, turns.source(), codec, count}, number % 5 == 4);
    ++number;
  };
  for (const uint64_t size : sizes) {
    for (int bits = 1; bits <= 8; ++bits) {
      const Norm norm = bits % 3 == 0 ? Norm::linf : bits % 5 == 0 ? Norm::l2 : Norm::minmax;
      check(QsgdSettings{bits, size, norm, bits % 2 == 0, false, bits == 4 && size == 64}, size);
    }
    for (const FloatSpec& spec : float_specs)
      check(FloatFormatSettings{spec, ScaleKind::number, size, (size + spec.bias) % 2 == 0}, size);
  }
  for (const Source& source : sources)
    for (const bool stochastic : {false, true})
      for (const FloatFormatSettings& settings :
           {FloatFormatSettings{float_specs[0], ScaleKind::none, 0, stochastic},
            FloatFormatSettings{float_specs[1], ScaleKind::none, 0, stochastic},
            FloatFormatSettings{float_specs[4], ScaleKind::none, 0, stochastic},
            FloatFormatSettings{float_specs[0], ScaleKind::number, 512, stochastic},
            FloatFormatSettings{integer_spec, ScaleKind::floor, 32, stochastic}})
        comparison.check({dtype, source, named(settings), chunk_size + 40});
  for (const Source& source : sources)
    for (const uint64_t size : {32u, 512u, 1024u})
      comparison.check({dtype, source, named(QsgdSettings{4, size, Norm::minmax, false, false, false}), chunk_size});
}

// The same of codecs that look codes up, guess them, or have extra bits.
void check_tables(Comparison& comparison, const DType& dtype, Turns& turns) {
  auto check = [&, number = 0](const NamedCodec& codec, uint64_t count) mutable {
    if (takes(codec, dtype)) comparison.check({dtype, turns.source(), codec, count}, number++ % 6 == 5);
  };
  for (const uint64_t size : {0, 32, 512, 700, 1024, 1536, 4096, 8192})
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic, Rounding::truncate})
      for (const int bits : {68, 88, 38, 49}) {
        SmaqSettings settings = smaq(bits / 10, bits % 10, size);
        settings.rounding = rounding;
        settings.extends = bits != 38;
        settings.preserve_zeros = size % 3 != 0;
        settings.all_positive = size == 4096;
        check(named(settings), 3 * chunk_size + 600);
      }
  for (const uint64_t size : {0, 16, 500, 512, 1024, 4096, 10000})
    for (const bool stochastic : {false, true}) check(named(S2fp8Settings{size, stochastic}), 3 * chunk_size + 600);
  for (const uint64_t size : {16, 32, 64, 256, 512, 2048, 3000, 10000})
    for (const int levels : {2, 16, 32, 256})
      for (const Scaling scaling : {Scaling::none, Scaling::absmax})
        check(named(codebook(scaling, size, levels)), 2 * chunk_size + 600);
  for (const Source& source : sources)
    for (const NamedCodec& codec : {named(S2fp8Settings{0, false}), named(S2fp8Settings{1024, false}),
                                    named(smaq(6, 8, 1024)), named(codebook(Scaling::absmax, 64, 256))})
      if (takes(codec, dtype)) comparison.check({dtype, source, codec, chunk_size + 40});
}

constexpr int turns_of_each = 10;

void check_sizes(Comparison& comparison, const DType& dtype, Turns& turns) {
  for (const uint64_t count : {0, 1, 31, 4097, 3 * chunk_size + 1000})
    for (int i = 0; i < turns_of_each; ++i)
      if (const NamedCodec& codec = turns.codec(); takes(codec, dtype))
        comparison.check({dtype, turns.source(), codec, count});
}

// Arrays of all sizes in one call, empty ones among them: the first, the last, and several in a row.
void check_together(Comparison& comparison, const DType& dtype, Turns& turns) {
  constexpr uint64_t counts[] = {0, 5, 0, 0, 9000, 33, 4096, 10001, 0};
  for (int i = 0; i < turns_of_each; ++i) {
    const NamedCodec& codec = turns.codec();
    if (!takes(codec, dtype)) continue;
    std::vector<Input> inputs;
    for (const uint64_t count : counts) inputs.push_back({dtype, turns.source(), codec, count});
    comparison.check_together(inputs);
  }
}

// Each codec whose buckets fit chunks as a sum's, of payloads of codecs with the same type of settings.
void check_sums(Comparison& comparison, const DType& dtype, Turns& turns) {
  const Element& element = elements[dtype.id];
  size_t number = 0;
  for (const NamedCodec& result : turns.codecs()) {
    if (!takes(result, dtype) || !has_sums(result.codec) || !fits_chunks(layout_of(result.codec, element))) continue;
    const NamedCodec* codec = &turns.codec();
    while (codec->codec.settings.index() != result.codec.settings.index() || !has_sums(codec->codec))
      codec = &turns.codec();
    comparison.check_sum({dtype, turns.source(), *codec, number % 3 == 0 ? 9001u : 700u}, result, 1 + number % 5);
    ++number;
  }
}

void check_corruption(Comparison& comparison, const DType& dtype, const NamedCodec& codec) {
  if (!takes(codec, dtype)) return;
  const Input input{dtype, sources[0], codec, 5333};
  if (input.layout().has_extras) {
    comparison.check_altered(input);
  } else {
    comparison.check_lengths(input);
  }
}

// Elements that are stored as they are in several units, and buckets of more segments than a warp has lanes, or a run.
void check_large_buckets(Comparison& comparison, const DType& dtype) {
  const auto check = [&](size_t source, const auto& settings, uint64_t count) {
    comparison.check({dtype, sources[source], named(settings), count});
  };
  check(0, QsgdSettings{4, 3 * chunk_size, Norm::l2, true, true, false}, 6 * chunk_size - 1);
  check(8, QsgdSettings{4, uint64_t{1} << 40, Norm::minmax, true, true, true}, 2 * chunk_size + 70);
  check(7, QsgdSettings{3, 34 * chunk_size + 9, Norm::l2, false, false, false}, 70 * chunk_size);
  check(7, smaq(4, 7, 34 * chunk_size + 9), 70 * chunk_size);
  check(7, FloatFormatSettings{float_specs[0], ScaleKind::number, 0, true}, 70 * chunk_size);
  check(8, nvfp4, 70 * chunk_size + 33);
}

void check_runs(Comparison& comparison) {
  const QsgdSettings settings{2, (segments_per_run + 3) * segment_size + 40, Norm::l2, false, false, false};
  comparison.check({dtypes[0], sources[7], named(settings), settings.bucket_size + 2000});
  comparison.check({dtypes[0], sources[7], named(smaq(6, 8, settings.bucket_size)), settings.bucket_size + 2000});
  comparison.check({dtypes[0], sources[7], named(nvfp4), settings.bucket_size + 2000});
}

// The barriers that coding comes to, left out. Some arrays have more units than there are warps.
void check_barriers(Comparison& comparison, const DType& dtype, const Turns& turns) {
  const auto code = [&] {
    for (size_t i = 0; i < turns.codecs().size(); i += 3) {
      const NamedCodec& codec = turns.codecs()[i];
      const uint64_t count = i % 4 == 0 ? (max_blocks * cuda::warps_per_block + 2) * chunk_size : 5333;
      if (takes(codec, dtype)) comparison.check({dtype, sources[i % std::size(sources)], codec, count});
    }
  };
  comparison.expect("barriers", most_barriers_are_missed(code));
}

}  // namespace

// The arguments: of Effort.
int main(int, char** arguments) {
  const Effort effort(arguments);
  Comparison comparison(effort);
  Turns turns(all_codecs());
  for (const DType& dtype : dtypes) {
    check_settings(comparison, dtype, turns);
    check_sources(comparison, dtype, turns);
    check_windows(comparison, dtype, turns);
    check_tables(comparison, dtype, turns);
    check_sizes(comparison, dtype, turns);
    check_together(comparison, dtype, turns);
    check_sums(comparison, dtype, turns);
    for (int i = 0; i < turns_of_each; ++i) check_corruption(comparison, dtype, turns.codec());
  }
  comparison.check_fronts();
  check_large_buckets(comparison, dtypes[2]);
  check_large_buckets(comparison, dtypes[3]);
  comparison.check_all();
  check_barriers(comparison, dtypes[2], turns);
  if (effort.orders_each > 1) check_runs(comparison);  // too many elements for a sanitized build
  return comparison.finish() ? 0 : 1;
}
