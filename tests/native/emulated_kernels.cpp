// Runs the CUDA kernels on emulated warps and compares them with the CPU: the same payloads, bit for bit the same
// elements back, the same verdict on altered payloads, whatever the order in which a warp's lanes run. Prints what
// differs and a summary; exits with 0 if nothing does.
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include "cpu/driver.h"
#include "cuda/base_delta_kernels.cuh"
#include "cuda/set_up.cuh"

namespace {

// ---- the kernels as the driver launches them

// Memory for the encoders of all warps, with anything in it.
uint8_t* encoder_memory() {
  constexpr size_t warps = max_blocks * cuda::warps_per_block;
  static Bytes memory(warps * sizeof(cuda::MemoryOfGroup<uint64_t>));
  std::fill(memory.begin(), memory.end(), untouched);
  return memory.data();
}

// One array of a call: how it is cut, and its elements or its payload.
struct Array {
  Plan plan;
  Bytes bytes;
};

constexpr size_t max_arrays = 16;             // in a call
constexpr uint64_t key = 0x0123456789abcdef;  // of random numbers

bool is_base_delta(const Codec& codec) { return base_delta_of(codec) != nullptr; }

int drop_bits_of(const Codec& codec) { return is_base_delta(codec) ? base_delta_of(codec)->drop_bits : 0; }

// Elements as an encoder finds them: some begin behind a multiple of 16 bytes.
class Placed {
 public:
  Placed(const Bytes& elements, size_t offset) : memory_(elements.size() + offset, untouched), offset_(offset) {
    std::copy(elements.begin(), elements.end(), memory_.begin() + static_cast<long>(offset));
  }
  const uint8_t* data() const { return memory_.data() + offset_; }

 private:
  Bytes memory_;
  size_t offset_;
};

// Each array's payload.
std::vector<Bytes> encode(const std::vector<Array>& sources, const Codec& codec, Order order, uint64_t seed) {
  const GroupSettings settings = group_settings(codec);
  const Element element = sources[0].plan.element;
  std::vector<Bytes> payloads;
  std::vector<Placed> placed;
  cuda::Batch<EncodeTask, max_arrays> batch{0, sources.size(), {}};
  uint64_t groups = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Plan& plan = sources[i].plan;
    payloads.emplace_back(capacity(codec, element, plan.count), untouched);
    placed.emplace_back(sources[i].bytes, (seed + i) % 3 == 0 ? element.width / 8u : 0);
    batch.items[i] = {{placed[i].data(), payloads[i].data(), plan.count}, groups};
    groups += plan.groups;
  }
  std::vector<cuda::EncodeArray> arrays(sources.size());
  std::vector<uint64_t> entries(groups, seed), lengths(sources.size());
  uint32_t tickets = 7;
  const Seed its_key = seed % 2 == 0 ? Seed{key, nullptr} : Seed{0, &key};
  const cuda::EncodeArguments a{arrays.data(),
                                sources.size(),
                                groups,
                                &tickets,
                                entries.data(),
                                encoder_memory(),
                                &tables(),
                                element,
                                settings,
                                settings.rounded_bits(element),
                                is_base_delta(codec) ? *base_delta_of(codec) : BaseDeltaSettings{},
                                its_key};
  launch(groups, order, seed, [&] { cuda::set_up_encoding(batch, a, lengths.data()); });
  for (size_t i = 0; i < sources.size(); ++i) arrays[i].plan = sources[i].plan;
  cuda::visit_element(element, [&](auto type) {
    using T = decltype(type);
    if (settings.kind == BoundKind::relative) launch(groups, order, seed, [&] { cuda::range_kernel<T>(a); });
    launch(groups, order, seed,
           [&] { is_base_delta(codec) ? cuda::encode_base_delta_kernel<T>(a) : cuda::encode_kernel<T>(a); });
  });
  for (size_t i = 0; i < payloads.size(); ++i) payloads[i].resize(std::min<uint64_t>(lengths[i], payloads[i].size()));
  return payloads;
}

// Bytes before the payload, and before the elements, of array i of a run.
size_t payload_shift(size_t i, uint64_t seed) { return (i + seed) % 4 * 4; }
size_t target_shift(size_t i, uint64_t seed, const Element& element) { return (i + seed) % 3 * element.width / 8; }

// Each payload's elements; none where one is found corrupt. Every second payload comes with its length and with more
// memory than it takes, as encoding leaves it. Payloads and arrays are aligned as little as callers may: to 4 bytes,
// and to an element.
std::vector<Bytes> decode(const Codec& codec, std::vector<Array> payloads, Order order, uint64_t seed) {
  const Element element = payloads[0].plan.element;
  std::vector<Bytes> targets;
  std::vector<uint64_t> lengths(payloads.size());
  cuda::Batch<DecodeTask, max_arrays> batch{0, payloads.size(), {}};
  uint64_t groups = 0;
  for (size_t i = 0; i < payloads.size(); ++i) {
    auto& [plan, bytes] = payloads[i];
    lengths[i] = bytes.size();
    const bool has_length = (seed + i) % 2 == 0;
    if (has_length) bytes.resize(lengths[i] + 40, untouched);
    const size_t before = payload_shift(i, seed);
    bytes.insert(bytes.begin(), before, untouched);
    targets.emplace_back(target_shift(i, seed, element) + plan.count * plan.element.width / 8, untouched);
    const uint64_t* const length = has_length ? &lengths[i] : nullptr;
    batch.items[i] = {{bytes.data() + before, bytes.size() - before, length,
                       targets[i].data() + target_shift(i, seed, element), plan.count},
                      groups};
    groups += plan.groups;
  }
  std::vector<cuda::DecodeArray> arrays(payloads.size());
  uint32_t status = 7;
  emulated::launch(1, cuda::warps_per_block, order, seed,
                   [&] { cuda::set_up_decoding(batch, cuda::GroupTiling{element}, arrays.data(), &status); });
  for (size_t i = 0; i < payloads.size(); ++i) arrays[i].plan = payloads[i].plan;
  const cuda::DecodeArguments a{{arrays.data(), arrays[0], arrays.size(), groups}, &status, &tables()};
  cuda::visit_element(element, [&](auto type) {
    using T = decltype(type);
    if (is_base_delta(codec)) return launch(groups, order, seed, [&] { cuda::decode_base_delta_kernel<T>(a); });
    launch(groups, order, seed, [&] { cuda::decode_regular_kernel<T>(a); });
    launch(groups, order, seed, [&] { cuda::decode_kernel<T>(a); });
  });
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto first = targets[i].begin() + static_cast<long>(target_shift(i, seed, element));
    if (std::any_of(targets[i].begin(), first, [](uint8_t byte) { return byte != untouched; })) status = 1;
    targets[i].erase(targets[i].begin(), first);
  }
  if (status != 0) targets.assign(targets.size(), Bytes());
  return targets;
}

Bytes encode_on_cpu(const Plan& plan, const Codec& codec, const Bytes& source) {
  Bytes payload(capacity(codec, plan.element, plan.count));
  payload.resize(cpu::encode_array(plan, codec, source.data(), payload.data(), key, 1));
  return payload;
}

Bytes decode_on_cpu(const Plan& plan, const Codec& codec, const Bytes& payload) {
  Bytes target(plan.count * plan.element.width / 8, untouched);
  return cpu::decode_array(plan, codec, payload.data(), payload.size(), target.data(), 1) ? target : Bytes();
}

// ---- what is compared

// What a group's first header (of its last chunk) says, as bits; FORMAT.md, section 3.2.
constexpr const char* mode_names[] = {
    "quantized", "integer",   "exponent", "uncoded", "packed",     "entropy", "no mask", "block mask", "value mask",
    "zigzag",    "plain map", "no base",  "base",    "difference", "shift",   "drop",    "exceptions",
};

uint32_t modes_of(const Plan& plan, const Codec& codec, const Bytes& payload) {
  if (is_base_delta(codec)) return 0;
  uint32_t modes = 0;
  for (uint64_t g = 0; g < plan.groups; ++g) {
    const uint64_t begin = g > 0 ? directory_entry(plan, payload.data(), g - 1) : 0;
    uint32_t header;
    memcpy(&header, payload.data() + plan.groups_offset() + begin, sizeof header);
    modes |= 1u << (header & 3) | 8u << (header >> 2 & 3) | 64u << (header >> 4 & 3);
    modes |= 512u << (header >> 7 & 1) | 2048u << (header >> 15 & 1);
    modes |=
        (header >> 6 & 1) << 13 | uint32_t{(header >> 8 & 127) > 0} << 14 | uint32_t{(header >> 24 & 63) > 0} << 15;
    modes |= (header >> 30 & 1) << 16;
  }
  return modes;
}

struct Input {
  const char* dtype;
  Element element;
  const Pattern& pattern;
  Codec codec;
  uint64_t count;
  uint32_t chunks_per_group = 1, directory_entry_bytes = 4;

  // The format derives groups from the count alone; here they come in all sizes without large arrays.
  Plan plan() const {
    return {element, count, chunks_per_group, directory_entry_bytes,
            ceil_div(count, uint64_t{chunks_per_group} * chunk_size)};
  }
};

class Comparison {
 public:
  explicit Comparison(int orders_each) : orders_each_(orders_each) {}

  // The same payload and the same elements as the CPU, in some or all orders of the lanes.
  void check(const Input& input) {
    const Plan plan = input.plan();
    const Bytes source = elements_of(input.element, input.count, input.pattern);
    const Bytes payload = encode_on_cpu(plan, input.codec, source);
    const Bytes elements = decode_on_cpu(plan, input.codec, payload);
    modes_ |= modes_of(plan, input.codec, payload);
    if (group_settings(input.codec).kind == BoundKind::lossless && drop_bits_of(input.codec) == 0)
      expect(input, "elements on the CPU", elements, source);
    for (int i = 0; i < orders_each_; ++i) {
      const Order order = next_order();
      expect(input, "payload", encode({{plan, source}}, input.codec, order, runs_)[0], payload);
      expect(input, "elements", decode(input.codec, {{plan, payload}}, order, runs_)[0], elements);
    }
  }

  // The same verdict as the CPU on an altered payload; where no harm is found, the same elements.
  void check_altered(const Input& input, Bytes payload, Random& random) {
    const Plan plan = input.plan();
    const uint64_t offset = plan.groups_offset();
    const uint64_t group = random.below(plan.groups);
    const uint64_t begin = offset + (group > 0 ? directory_entry(plan, payload.data(), group - 1) : 0);
    switch (random.below(4)) {
      case 0:
        payload = Bytes(payload.begin(), payload.begin() + static_cast<long>(random.below(payload.size())));
        break;
      case 1: payload[random.below(offset)] ^= static_cast<uint8_t>(1 + random.below(255)); break;
      case 2: payload[random.below(payload.size())] ^= static_cast<uint8_t>(1u << random.below(8)); break;
      default: payload[std::min(begin + random.below(32), payload.size() - 1)] = static_cast<uint8_t>(random.word());
    }
    expect(input, "elements of an altered payload", decode(input.codec, {{plan, payload}}, next_order(), runs_)[0],
           decode_on_cpu(plan, input.codec, payload));
  }

  // Several arrays of a call: each has the payload and the elements that it has alone.
  void check_together(const std::vector<Input>& inputs) {
    const Codec& codec = inputs[0].codec;
    std::vector<Array> sources, payloads;
    for (const Input& input : inputs) {
      const Bytes source = elements_of(input.element, input.count, input.pattern);
      sources.push_back({input.plan(), source});
      payloads.push_back({input.plan(), encode_on_cpu(input.plan(), codec, source)});
    }
    const Order order = next_order();
    const std::vector<Bytes> encoded = encode(sources, codec, order, runs_);
    const std::vector<Bytes> decoded = decode(codec, payloads, order, runs_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      expect(inputs[i], "payload of several", encoded[i], payloads[i].bytes);
      expect(inputs[i], "elements of several", decoded[i], decode_on_cpu(payloads[i].plan, codec, payloads[i].bytes));
    }
    payloads[inputs.size() / 2].bytes.pop_back();
    expect(inputs[0], "elements of several, one of them altered", decode(codec, payloads, order, runs_)[0], Bytes());
  }

  void expect(const char* what, bool holds) {
    if (holds) return;
    ++differences_;
    std::printf("%s: wrong\n", what);
  }

  // Prints a summary; false where anything differed or no input made a choice that the format offers.
  bool finish() {
    constexpr int names = std::size(mode_names);
    for (int m = 0; m < names; ++m)
      if ((modes_ >> m & 1) == 0) std::printf("no input was coded with: %s\n", mode_names[m]);
    std::printf("%d runs, %d differences\n", runs_, differences_);
    return differences_ == 0 && modes_ == (1u << names) - 1;
  }

 private:
  Order next_order() { return orders[runs_++ % std::size(orders)]; }

  void expect(const Input& input, const char* what, const Bytes& got, const Bytes& wanted) {
    if (got == wanted) return;
    ++differences_;
    const char* const kinds[] = {"lossless", "absolute", "relative", "pointwise"};
    const GroupSettings settings = group_settings(input.codec);
    const char* const kind = is_base_delta(input.codec) ? "base-delta" : kinds[static_cast<int>(settings.kind)];
    const double number = is_base_delta(input.codec) ? drop_bits_of(input.codec) : settings.bound;
    std::printf("%s %s, %s %g%s, %llu elements in groups of %u chunks, run %d: %s: %s\n", input.dtype,
                input.pattern.name, kind, number, settings.fast ? " fast" : "",
                static_cast<unsigned long long>(input.count), input.chunks_per_group, runs_, what,
                difference(got, wanted).c_str());
  }

  int orders_each_, runs_ = 0, differences_ = 0;
  uint32_t modes_ = 0;
};

// ---- the inputs' product

struct DType {
  const char* name;
  int id;
};

constexpr DType dtypes[] = {{"int8", 2},   {"float8_e5m2", 17}, {"int16", 4}, {"float16", 10}, {"bfloat16", 11},
                            {"uint32", 7}, {"float32", 12},     {"int64", 8}, {"float64", 13}};

Codec bounded(BoundKind kind, double bound, bool fast = false) {
  if (kind == BoundKind::lossless) return {LosslessSettings{fast, Predictor::none}};
  return {ErrorBoundedSettings{kind, bound, fast, false, 0.0, Predictor::none}};
}

Codec base_delta(int bases, uint64_t widths = ~uint64_t{0}, int drop_bits = 0,
                 DropRounding rounding = DropRounding::nearest) {
  return {BaseDeltaSettings{bases, widths | 1, drop_bits, rounding}};
}

const Codec lossless = bounded(BoundKind::lossless, 0);
const Codec codecs[] = {
    lossless,
    bounded(BoundKind::lossless, 0, true),
    bounded(BoundKind::absolute, 1e-3),
    bounded(BoundKind::absolute, 1e-3, true),
    bounded(BoundKind::absolute, 1e-6),
    bounded(BoundKind::relative, 1e-4),
    bounded(BoundKind::pointwise, 1e-2),
    base_delta(2),
    base_delta(2, 1 << 5 | 1 << 8 | 1 << 16 | 1 << 24),
    base_delta(1, ~uint64_t{0}, 7),
    base_delta(2, ~uint64_t{0}, 4, DropRounding::stochastic),
    base_delta(1, ~uint64_t{0}, 40, DropRounding::stochastic),
    base_delta(1, ~uint64_t{0}, 6, DropRounding::truncate),
    {ErrorBoundedSettings{BoundKind::relative, 1e-3, false, true, 1e20, Predictor::none}},
};

// The codec, or where it does not take the element another one.
Codec or_else(const Codec& codec, const Codec& other, const Element& element) {
  return takes(codec, element) ? codec : other;
}

void check_modes(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  for (const Pattern& pattern : patterns)
    for (const Codec& codec : codecs)
      if (takes(codec, element)) comparison.check({dtype.name, element, pattern, codec, chunk_size + 100});
}

// Tiles of 256 words, of 0 to 32 bits.
void check_widths(Comparison& comparison) {
  const Pattern all[] = {
      {"widths", [](uint64_t i, Random& r) { return static_cast<double>(r.below(uint64_t{1} << i / 256 % 33)); }},
      {"mixed", [](uint64_t i, Random& r) { return static_cast<double>(r.below(uint64_t{1} << i / 256 * 20 % 33)); }}};
  for (const Pattern& pattern : all)
    for (const Codec& codec : {lossless, codecs[1]})
      comparison.check({"uint32", elements[7], pattern, codec, 40 * 256});
}

void check_sizes(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  const Codec relative = or_else(bounded(BoundKind::relative, 1e-3), lossless, element);
  const Codec random = or_else(base_delta(2, ~uint64_t{0}, 3, DropRounding::stochastic), base_delta(2), element);
  for (const uint64_t count : {0, 1, 31, 33, 4095, 4096, 4097, 3 * chunk_size + 1000}) {
    comparison.check({dtype.name, element, patterns[0], relative, count});
    comparison.check({dtype.name, element, patterns[0], random, count});
  }
}

// Groups of several chunks, and wide directory entries.
void check_groups(Comparison& comparison, const DType& dtype) {
  const Element& element = elements[dtype.id];
  const Codec absolute = or_else(bounded(BoundKind::absolute, 1e-4), lossless, element);
  for (const Pattern& pattern : patterns) {
    comparison.check({dtype.name, element, pattern, absolute, 3 * chunk_size + 77, 2, 8});
    comparison.check({dtype.name, element, pattern, lossless, 5 * chunk_size, 4});
    comparison.check({dtype.name, element, pattern, base_delta(2), 5 * chunk_size + 77, 4, 8});
  }
}

void check_altered(Comparison& comparison, const DType& dtype) {
  Random random(static_cast<uint64_t>(dtype.id));
  const Element& element = elements[dtype.id];
  const Codec absolute = or_else(bounded(BoundKind::absolute, 1e-4), lossless, element);
  for (const Pattern& pattern : patterns)
    for (const Codec& codec : {absolute, base_delta(2)}) {
      const Input input{dtype.name, element, pattern, codec, 2 * chunk_size + 900, 2};
      const Bytes payload = encode_on_cpu(input.plan(), codec, elements_of(element, input.count, pattern));
      for (int i = 0; i < 20; ++i) comparison.check_altered(input, payload, random);
    }
}

// Arrays of all sizes in one call, empty ones among them: the first, the last, and several in a row.
void check_together(Comparison& comparison, const DType& dtype) {
  constexpr uint64_t counts[] = {0, 5, 0, 0, 9000, 33, 4096, 1, 0};
  for (const Codec& codec : codecs) {
    if (!takes(codec, elements[dtype.id])) continue;
    std::vector<Input> inputs;
    for (size_t i = 0; i < std::size(counts); ++i)
      inputs.push_back({dtype.name, elements[dtype.id], patterns[i], codec, counts[i], i == 4 ? 2u : 1u});
    comparison.check_together(inputs);
  }
}

// Offsets of groups that so many warps place at once that the sizes before one fill several looks back.
void check_placing(Comparison& comparison) {
  constexpr uint64_t groups = 500;
  const auto size = [](uint64_t group) { return static_cast<uint32_t>(group * 2654435761u >> 3); };
  std::vector<uint64_t> entries(groups), found(groups), wanted(groups);
  for (uint64_t g = 1; g < groups; ++g) wanted[g] = wanted[g - 1] + size(g - 1);
  uint32_t tickets = 0;
  emulated::launch(1, emulated::Block::max_warps, Order::shuffled, 1, [&] {
    for (uint64_t g = cuda::take_ticket(&tickets); g < groups; g = cuda::take_ticket(&tickets)) {
      const uint64_t before = cuda::exclusive_sum(entries.data(), g, size(g));
      if (cuda::leader()) found[g] = before;
    }
  });
  comparison.expect("offsets of groups", found == wanted);
}

// The barriers that encoding and decoding come to, left out. Some arrays have more groups than there are warps.
void check_barriers(Comparison& comparison, const DType& dtype) {
  constexpr uint64_t many = (max_blocks * cuda::warps_per_block + 2) * chunk_size;
  const auto check = [&](size_t pattern, const Codec& codec, uint64_t count, uint32_t chunks_per_group) {
    comparison.check({dtype.name, elements[dtype.id], patterns[pattern], codec, count, chunks_per_group});
  };
  const auto code = [&] {
    for (size_t i = 0; i < std::size(patterns); ++i) {
      check(i, codecs[i % 7], 2 * chunk_size + 100, 2);
      check(i, codecs[7 + i % 2], 2 * chunk_size + 100, 2);
    }
    check(2, codecs[2], many, 1);
    check(0, codecs[7], many, 1);
  };
  comparison.expect("barriers", most_barriers_are_missed(code));
}

}  // namespace

// The argument: how many of the three orders each input is run in.
int main(int, char** arguments) {
  Comparison comparison(arguments[1] ? std::atoi(arguments[1]) : 1);
  for (const DType& dtype : dtypes) {
    check_modes(comparison, dtype);
    check_sizes(comparison, dtype);
    check_groups(comparison, dtype);
    check_together(comparison, dtype);
    check_altered(comparison, dtype);
  }
  comparison.check({"int8", elements[2], patterns[2], lossless, 100 * chunk_size});
  check_widths(comparison);
  check_placing(comparison);
  check_barriers(comparison, dtypes[6]);
  return comparison.finish() ? 0 : 1;
}
