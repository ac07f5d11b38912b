// Times encoding and decoding of float32 weights on a GPU, without Python, once every byte was compared with the CPU's.
// bench/native/CMakeLists.txt links it with each variant of the kernels.
//
// Usage: time_kernels EXAMPLES --variant LABEL [--results FILE] [--mib N,...] [--once] NAME...
// EXAMPLES: the codecs, written by `python bench/gpu_check.py --examples EXAMPLES`; NAMEs choose among them.
// --once: each kernel runs once on the first size, and is not timed: for a profiler. --results: lines of JSON are
// appended there.
// Exit status: 0; 1 where a byte differs or a call fails; 2 without a GPU.
// clang-format off
#include "gpu_arrays.h"  // before what it offers
// clang-format on

namespace {

constexpr uint64_t mebibyte = 1 << 20;
constexpr int samples = 15, warm_up = 3, most_arrays = 32;
constexpr uint64_t lead_bytes =
    512 * mebibyte;  // of a copy in front of each sample: the host is ahead, the cache is not

struct Options {
  const char* examples = nullptr;
  std::string variant = "as built", results;
  std::vector<uint64_t> mebibytes{64, 256};
  bool once = false;
  std::vector<std::string> names;
};

Options parsed(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const bool has_value = i + 1 < count;
    if (word == "--variant" && has_value) {
      options.variant = arguments[++i];
    } else if (word == "--results" && has_value) {
      options.results = arguments[++i];
    } else if (word == "--mib" && has_value) {
      options.mebibytes.clear();
      std::istringstream sizes(arguments[++i]);
      for (std::string size; std::getline(sizes, size, ',');) options.mebibytes.push_back(std::stoull(size));
    } else if (word == "--once") {
      options.once = true;
    } else if (word.starts_with("--")) {
      std::printf("unknown option, or one without its value: %s\n", word.c_str());
      std::exit(1);
    } else if (options.examples == nullptr) {
      options.examples = arguments[i];
    } else {
      options.names.push_back(word);
    }
  }
  if (options.examples == nullptr || options.names.empty() || options.mebibytes.empty()) {
    std::printf("usage: time_kernels EXAMPLES --variant LABEL [--results FILE] [--mib N,...] [--once] NAME...\n");
    std::exit(1);
  }
  return options;
}

// Weights: normal random numbers times 0.02. Those asked for last are kept.
const Bytes& weights(uint64_t bytes) {
  static Bytes kept;
  if (kept.size() != bytes) kept = elements_of(elements[12], bytes / 4, patterns[0]);
  return kept;
}

// An array on the device with room for its payload and for what comes back.
struct Slot {
  DeviceBytes source, payload, length, target, status, scratch;

  Slot(const Example& example, const Bytes& values, uint64_t count, uint64_t scratch_bytes)
      : source(values),
        payload(capacity(example.codec, example.element(), count)),
        length(sizeof(uint64_t)),
        target(values.size()),
        status(sizeof(uint32_t)),
        scratch(scratch_bytes) {}

  void encode(const Example& example, uint64_t count) const {
    const EncodeTask task{source.data(), payload.data(), count, axes_of_elements(count)};
    check(cuda::encode(example.codec, example.element(), {&task, 1}, length.as<uint64_t>(), Seed{random_key, nullptr},
                       scratch.data(), nullptr, cuda::current_device),
          "encoding");
  }
  void decode(const Example& example, uint64_t count) const {
    const DecodeTask task{payload.data(), payload.size(), length.as<const uint64_t>(), target.data(), count};
    check(cuda::decode(example.codec, example.element(), {&task, 1}, status.as<uint32_t>(), scratch.data(), nullptr,
                       cuda::current_device),
          "decoding");
  }

  // What differs from the CPU's; nothing if all is the same.
  std::string wrong(const Example& example, const Bytes& values, uint64_t count) const {
    const Bytes wanted = encode_on_cpu(example.codec, example.element(), values, count);
    const Bytes found = payload.host(std::min(length.number<uint64_t>(), payload.size()));
    if (found != wanted) return "payload: " + difference(found, wanted);
    if (status.number<uint32_t>() != 0) return "decoding: the status says that the payload is corrupt";
    const std::optional<Bytes> back = decode_on_cpu(example.codec, example.element(), wanted, count);
    const Bytes decoded = target.host();
    return decoded != *back ? "array: " + difference(decoded, *back) : "";
  }
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "making an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record() const { check(cudaEventRecord(event_), "recording an event"); }
  double seconds_since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_), "running kernels");
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "reading a time");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_;
};

struct Timing {
  double median, least, most;
};

class Clock {
 public:
  Clock() : from_(lead_bytes), to_(lead_bytes) {
    copied_per_second = 2 * lead_bytes / time(1, [this](int) { lead(); }).median;
  }

  // Seconds of one of `calls` calls in a row, behind a copy.
  template <class Call>
  Timing time(int calls, Call call) const {
    std::vector<double> found;
    const Event start, end;
    for (int sample = 0; sample < warm_up + samples; ++sample) {
      for (int copy = 0; copy < lead_copies; ++copy) lead();
      start.record();
      for (int i = 0; i < calls; ++i) call(i);
      end.record();
      const double seconds = end.seconds_since(start) / calls;
      if (sample >= warm_up) found.push_back(seconds);
    }
    std::sort(found.begin(), found.end());
    return {found[found.size() / 2], found.front(), found.back()};
  }

  double copied_per_second = 1;

 private:
  static constexpr int lead_copies = 10;  // about 2 ms: longer than the host takes to enqueue a sample
  void lead() const {
    check(cudaMemcpyAsync(to_.data(), from_.data(), lead_bytes, cudaMemcpyDeviceToDevice), "copying");
  }
  DeviceBytes from_, to_;
};

std::string machine() {
  cudaDeviceProp properties;
  int version = 0;
  check(cudaGetDeviceProperties(&properties, 0), "asking for the device");
  check(cudaRuntimeGetVersion(&version), "asking for the runtime");
  return std::string(properties.name) + ", CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

int arrays_beyond_the_cache(uint64_t bytes) {
  int cache = 0;
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, 0), "asking for the device");
  return static_cast<int>(std::clamp<uint64_t>(ceil_div(4 * static_cast<uint64_t>(cache), bytes), 1, most_arrays));
}

std::string half_text(const char* half, const Timing& timing, uint64_t bytes, uint64_t payload) {
  std::ostringstream text;
  text << ", \"" << half << "\": {\"seconds\": " << timing.median << ", \"least\": " << timing.least
       << ", \"most\": " << timing.most << ", \"bytes_per_second\": " << static_cast<double>(bytes) / timing.median
       << ", \"moved\": " << static_cast<double>(bytes + payload) / timing.median << "}";
  return text.str();
}

// Prints a line of JSON, and appends it to the results. False where bytes differ.
bool measure(const Options& options, const Clock* clock, const Example& example, uint64_t bytes) {
  const uint64_t count = bytes / 4;
  const Bytes& values = weights(bytes);
  uint64_t scratch_bytes = 0;
  check(cuda::encode_scratch_bytes(example.codec, example.element(), {&count, 1}, cuda::current_device, scratch_bytes),
        "scratch");
  const uint64_t back = cuda::decode_scratch_bytes(example.codec, example.element(), {&count, 1});
  std::vector<Slot> slots;
  const int arrays = options.once ? 1 : arrays_beyond_the_cache(bytes);
  for (int i = 0; i < arrays; ++i) {
    slots.emplace_back(example, values, count, std::max(scratch_bytes, back));
    slots[i].encode(example, count);
    slots[i].decode(example, count);
  }
  std::ostringstream line;
  line << "{\"kind\": \"variant\", \"task\": \"variant " << options.variant << "\", \"variant\": \"" << options.variant
       << "\", \"machine\": \"" << machine() << "\", \"case\": \"" << example.name << "\", \"nbytes\": " << bytes;
  const std::string wrong = slots[0].wrong(example, values, count);
  if (!wrong.empty()) {
    line << ", \"wrong\": \"" << wrong << "\"";
  } else if (clock != nullptr) {
    const uint64_t payload = slots[0].length.number<uint64_t>();
    const Timing encode = clock->time(arrays, [&](int i) { slots[i].encode(example, count); });
    const Timing decode = clock->time(arrays, [&](int i) { slots[i].decode(example, count); });
    line << ", \"payload_nbytes\": " << payload << ", \"copy\": " << clock->copied_per_second
         << half_text("encode", encode, bytes, payload) << half_text("decode", decode, bytes, payload);
  } else {
    line << ", \"passed\": true";
  }
  line << "}";
  std::printf("%s\n", line.str().c_str());
  if (!options.results.empty()) std::ofstream(options.results, std::ios::app) << line.str() << "\n";
  return wrong.empty();
}

}  // namespace

int main(int count, char** arguments) {
  Options options = parsed(count, arguments);
  if (options.once) options.mebibytes = {options.mebibytes[0]};
  const std::vector<Example> examples = read_examples(options.examples);
  bool ok = true;
  for (const std::string& name : options.names) {
    const auto named = [&](const Example& example) { return example.name == name && example.dtype == 12; };
    if (std::none_of(examples.begin(), examples.end(), named)) {
      std::printf("FAILED: no codec for float32 is named %s\n", name.c_str());
      ok = false;
    }
  }
  if (!ok) return 1;
  if (!has_gpu()) return without_gpu;
  std::optional<Clock> clock;
  if (!options.once) clock.emplace();
  for (const uint64_t size : options.mebibytes)
    for (const Example& example : examples)
      if (example.dtype == 12 && std::count(options.names.begin(), options.names.end(), example.name) > 0)
        ok = measure(options, clock ? &*clock : nullptr, example, size * mebibyte) && ok;
  return ok ? 0 : 1;
}
