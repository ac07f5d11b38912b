// Runs all codecs on a GPU, without Python, and compares every byte with the CPU's: payloads, elements, the verdict on
// altered payloads, several arrays in a call, sums and activations. Small enough for compute-sanitizer.
//
// Usage: gpu_check EXAMPLES [--unfilled] [NAME...]
// EXAMPLES: the codecs, written by `python bench/gpu_check.py --examples EXAMPLES`; a NAME chooses among them.
// --unfilled: memory is not filled before kernels write it, for a checker of what nothing wrote.
// Exit status: 0; 1 where anything differs or fails; 2 without a GPU.
// clang-format off
#include "gpu_arrays.h"  // before what it offers
// clang-format on

namespace {

// What encodes and decodes arrays of a codec on the GPU.
class OnGpu {
 public:
  OnGpu(const Codec& codec, const Element& element) : codec_(codec), element_(element) {}

  // The payloads of arrays with these numbers of elements.
  std::vector<Bytes> encode(const std::vector<Bytes>& sources, const std::vector<uint64_t>& counts) const {
    std::vector<DeviceBytes> from, to;
    std::vector<EncodeTask> tasks;
    for (size_t i = 0; i < sources.size(); ++i) {
      from.emplace_back(sources[i]);
      to.emplace_back(capacity(codec_, element_, counts[i]));
      tasks.push_back({from[i].data(), to[i].data(), counts[i], axes_of_elements(counts[i])});
    }
    uint64_t scratch_bytes = 0;
    check(cuda::encode_scratch_bytes(codec_, element_, counts, cuda::current_device, scratch_bytes), "scratch");
    const DeviceBytes scratch(scratch_bytes), lengths(tasks.size() * sizeof(uint64_t));
    const Seed seed{random_key, nullptr};
    check(cuda::encode(codec_, element_, tasks, lengths.as<uint64_t>(), seed, scratch.data(), nullptr,
                       cuda::current_device),
          "encoding");
    std::vector<Bytes> payloads;
    const Bytes found = lengths.host();
    for (size_t i = 0; i < tasks.size(); ++i) {
      uint64_t length;
      memcpy(&length, found.data() + i * sizeof length, sizeof length);
      payloads.push_back(to[i].host(std::min(length, to[i].size())));
    }
    return payloads;
  }

  // The elements; none where a payload is corrupt. With `has_length` the length is told on the device, and the memory
  // is longer.
  std::optional<std::vector<Bytes>> decode(const std::vector<Bytes>& payloads, const std::vector<uint64_t>& counts,
                                           bool has_length) const {
    std::vector<DeviceBytes> from, lengths, to;
    std::vector<DecodeTask> tasks;
    for (size_t i = 0; i < payloads.size(); ++i) {
      Bytes bytes = payloads[i], length(sizeof(uint64_t));
      const uint64_t number = bytes.size();
      memcpy(length.data(), &number, sizeof number);
      if (has_length) bytes.resize(bytes.size() + 40, untouched);
      from.emplace_back(bytes);
      lengths.emplace_back(length);
      to.emplace_back(counts[i] * element_.width / 8);
      tasks.push_back({from[i].data(), from[i].size(), has_length ? lengths[i].as<const uint64_t>() : nullptr,
                       to[i].data(), counts[i]});
    }
    const DeviceBytes scratch(cuda::decode_scratch_bytes(codec_, element_, counts)), status(sizeof(uint32_t));
    check(cuda::decode(codec_, element_, tasks, status.as<uint32_t>(), scratch.data(), nullptr, cuda::current_device),
          "decoding");
    if (status.number<uint32_t>() != 0) return std::nullopt;
    std::vector<Bytes> targets;
    for (const DeviceBytes& target : to) targets.push_back(target.host());
    return targets;
  }

  std::optional<Bytes> decode(const Bytes& payload, uint64_t count, bool has_length) const {
    const auto found = decode(std::vector<Bytes>{payload}, {count}, has_length);
    if (!found) return std::nullopt;
    return (*found)[0];
  }

 private:
  const Codec& codec_;
  const Element& element_;
};

class Comparison {
 public:
  void expect(const std::string& what, const Bytes& got, const Bytes& wanted) {
    ++runs_;
    if (got == wanted) return;
    ++differences_;
    std::printf("%s: %s\n", what.c_str(), difference(got, wanted).c_str());
  }

  void expect(const std::string& what, const std::optional<Bytes>& got, const std::optional<Bytes>& wanted) {
    if (got && wanted) return expect(what, *got, *wanted);
    ++runs_;
    if (got.has_value() == wanted.has_value()) return;
    ++differences_;
    std::printf("%s: %s, the CPU says otherwise\n", what.c_str(), got ? "taken" : "corrupt");
  }

  bool finish() const {
    std::printf("%d comparisons, %d differences\n", runs_, differences_);
    return differences_ == 0;
  }

 private:
  int runs_ = 0, differences_ = 0;
};

// Patterns that reach every mode of chunks, by their index: weights, sparse, offset, zeros, specials, random bits and
// bursts.
constexpr size_t chosen_patterns[] = {0, 2, 5, 7, 9, 11, 14};
constexpr uint64_t chosen_counts[] = {0, 1, 33, 4096, 3 * 4096 + 1000};
constexpr int altered_each = 6;

Bytes altered(Bytes payload, Random& random) {
  if (payload.empty()) return payload;
  switch (random.below(3)) {
    case 0: payload.resize(random.below(payload.size())); break;
    case 1:
      payload[random.below(std::min<uint64_t>(payload.size(), 64))] ^= static_cast<uint8_t>(1 + random.below(255));
      break;
    default: payload[random.below(payload.size())] ^= static_cast<uint8_t>(1u << random.below(8));
  }
  return payload;
}

void check_array(Comparison& comparison, const Example& example, const Pattern& pattern, uint64_t count) {
  const Element& element = example.element();
  const OnGpu gpu(example.codec, element);
  const std::string name = example.name + ", " + pattern.name + ", " + std::to_string(count) + " elements";
  const Bytes source = elements_of(element, count, pattern);
  const Bytes payload = encode_on_cpu(example.codec, element, source, count);
  const std::optional<Bytes> back = decode_on_cpu(example.codec, element, payload, count);
  comparison.expect(name + ": payload", gpu.encode({source}, {count})[0], payload);
  comparison.expect(name + ": elements", gpu.decode(payload, count, false), back);
  comparison.expect(name + ": elements, the length on the device", gpu.decode(payload, count, true), back);
  Random random(count);
  for (int i = 0; i < altered_each && count > 33; ++i) {
    const Bytes harmed = altered(payload, random);
    comparison.expect(name + ": an altered payload", gpu.decode(harmed, count, i % 2 == 0),
                      decode_on_cpu(example.codec, element, harmed, count));
  }
}

void check_together(Comparison& comparison, const Example& example) {
  const Element& element = example.element();
  const OnGpu gpu(example.codec, element);
  const std::vector<uint64_t> counts{0, 5, 0, 9000, 33, 4096, 1, 0};
  std::vector<Bytes> sources, payloads;
  for (size_t i = 0; i < counts.size(); ++i) {
    sources.push_back(elements_of(element, counts[i], patterns[i]));
    payloads.push_back(encode_on_cpu(example.codec, element, sources[i], counts[i]));
  }
  const std::vector<Bytes> encoded = gpu.encode(sources, counts);
  const std::optional<std::vector<Bytes>> decoded = gpu.decode(payloads, counts, true);
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::string name = example.name + ", array " + std::to_string(i) + " of several";
    comparison.expect(name + ": payload", encoded[i], payloads[i]);
    comparison.expect(name + ": elements", decoded ? std::optional((*decoded)[i]) : std::nullopt,
                      decode_on_cpu(example.codec, element, payloads[i], counts[i]));
  }
}

// Payloads on one side, and the sums of them that calls are asked for.
struct Terms {
  std::vector<Bytes> payloads;
  std::vector<DeviceBytes> on_gpu;

  Terms(const Example& example, uint64_t count) {
    for (size_t i = 0; i < 3; ++i) {
      const Bytes source = elements_of(example.element(), count, patterns[i]);
      payloads.push_back(encode_on_cpu(example.codec, example.element(), source, count));
      on_gpu.emplace_back(payloads[i]);
    }
  }

  std::vector<Summand> summands(bool gpu) const {
    std::vector<Summand> all;
    for (size_t i = 0; i < payloads.size(); ++i)
      all.push_back({gpu ? on_gpu[i].data() : payloads[i].data(), payloads[i].size(), nullptr, 0.5 + i});
    return all;
  }
};

void check_sums(Comparison& comparison, const Example& example, uint64_t count) {
  const Codec& codec = example.codec;
  const Element& element = example.element();
  const Terms terms(example, count);
  const auto here = terms.summands(false), there = terms.summands(true);
  const Sum on_cpu{codec, element, here, count}, on_gpu{codec, element, there, count};
  const DeviceBytes status(sizeof(uint32_t));

  const Bytes start = elements_of(element, count, patterns[4]);
  Bytes added = start;
  cpu::accumulate(on_cpu, added.data(), added.data(), 0);
  const DeviceBytes into(start), scratch(cuda::accumulate_scratch_bytes(there.size()));
  check(cuda::accumulate(on_gpu, into.data(), into.data(), status.as<uint32_t>(), scratch.data(), nullptr,
                         cuda::current_device),
        "adding");
  comparison.expect(example.name + ": sum", into.host(), added);

  BucketLayout layout;
  if (!bucket_layout(codec, element, layout) || !fits_chunks(layout)) return;
  const Seed seed{random_key, nullptr};
  Bytes payload(capacity(codec, element, count));
  uint64_t length = 0, scratch_bytes = 0;
  cpu::encode_sum(on_cpu, codec, payload.data(), &length, seed, 0);
  payload.resize(length);
  check(cuda::encode_sum_scratch_bytes(codec, codec, element, there.size(), count, cuda::current_device, scratch_bytes),
        "scratch");
  const DeviceBytes room(capacity(codec, element, count)), its_length(sizeof(uint64_t)), memory(scratch_bytes);
  check(cuda::encode_sum(on_gpu, codec, room.data(), its_length.as<uint64_t>(), seed, status.as<uint32_t>(),
                         memory.data(), nullptr, cuda::current_device),
        "encoding a sum");
  comparison.expect(example.name + ": payload of a sum",
                    room.host(std::min(its_length.number<uint64_t>(), room.size())), payload);
}

void check_activation(Comparison& comparison, const char* function, int dtype, uint64_t count) {
  const Element& element = elements[dtype];
  const double numbers[] = {0, 2, -1, 0, 1, 0, 0.25, 0.75, 1};  // ascending, 2 bits, borders, levels
  Steps steps;
  Activation activation;
  if (!Steps::read(numbers, steps) || !find_activation(function, {}, activation)) {
    std::printf("FAILED: %s: no such activation\n", function);
    std::exit(1);
  }
  const Bytes source = elements_of(element, count, patterns[9]);
  Bytes values(source.size()), packed(step_bytes(steps, count)), gradient(source.size());
  cpu::activate(activation, steps, element, {source.data(), values.data(), packed.data(), count}, 0);
  cpu::step_grad(steps, element, {packed.data(), values.data(), gradient.data(), count}, 0);
  const DeviceBytes from(source), to(source.size()), kept(packed.size()), gradients(source.size());
  check(cuda::activate(activation, steps, element, {from.data(), to.data(), kept.data(), count}, nullptr,
                       cuda::current_device),
        "activating");
  check(
      cuda::step_grad(steps, element, {kept.data(), to.data(), gradients.data(), count}, nullptr, cuda::current_device),
      "the gradient");
  const std::string name = std::string(function) + ", " + std::to_string(count) + " elements";
  comparison.expect(name + ": values", to.host(), values);
  comparison.expect(name + ": packed steps", kept.host(), packed);
  comparison.expect(name + ": gradient", gradients.host(), gradient);
}

void check_example(Comparison& comparison, const Example& example) {
  for (const size_t pattern : chosen_patterns)
    for (const uint64_t elements : chosen_counts)
      if (pattern == 0 || elements > 33) check_array(comparison, example, patterns[pattern], elements);
  check_together(comparison, example);
  if (has_sums(example.codec)) check_sums(comparison, example, 9000);
}

// The examples of these names, or all where there are none.
std::vector<Example> chosen(const std::vector<Example>& examples, char** names) {
  if (*names == nullptr) return examples;
  std::vector<Example> found;
  for (; *names != nullptr; ++names) {
    const auto named = [&](const Example& example) { return example.name == *names; };
    const auto at = std::find_if(examples.begin(), examples.end(), named);
    if (at == examples.end()) {
      std::printf("FAILED: no codec is named %s\n", *names);
      std::exit(1);
    }
    found.push_back(*at);
  }
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::printf("usage: gpu_check EXAMPLES [--unfilled] [NAME...]\n");
    return 1;
  }
  char** names = arguments + 2;
  if (*names != nullptr && std::string(*names) == "--unfilled") {
    fills_memory = false;
    ++names;
  }
  const std::vector<Example> examples = chosen(read_examples(arguments[1]), names);
  if (!has_gpu()) return without_gpu;
  Comparison comparison;
  for (const Example& example : examples) check_example(comparison, example);
  for (const char* function : {"relu", "gelu", "silu"})
    for (const int dtype : {11, 12}) check_activation(comparison, function, dtype, 5000);
  return comparison.finish() ? 0 : 1;
}
