// What the programs that run on a GPU without Python share: memory, and codecs as bench/gpu_check.py writes them.
#pragma once
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "backend.h"

namespace {

// What inputs.h asks for.
inline uint16_t half_of_float(float x) { return __half_as_ushort(__float2half_rn(x)); }

}  // namespace

#include "inputs.h"

namespace {

constexpr uint8_t untouched = 0xa5;
constexpr uint64_t random_key = 0x0123456789abcdef;
constexpr int without_gpu = 2;  // exit status

// The program ends where a call of CUDA fails: what comes after would fail too.
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void check(cuda::Status status, const char* what) {
  if (status == cuda::Status::ok) return;
  std::printf("FAILED: %s: %s\n", what, cuda::last_error());
  std::exit(1);
}

// Whether memory is filled with what no kernel writes; else a checker sees what nothing wrote.
inline bool fills_memory = true;

// Bytes on the device, in an allocation of their own: a checker of memory sees an access beyond them.
class DeviceBytes {
 public:
  explicit DeviceBytes(uint64_t size) : size_(size) {
    check(cudaMalloc(&data_, size > 0 ? size : 1), "taking memory");
    if (size > 0 && fills_memory) check(cudaMemset(data_, untouched, size), "filling memory");
  }
  explicit DeviceBytes(const Bytes& bytes) : DeviceBytes(bytes.size()) { assign(bytes); }
  DeviceBytes(DeviceBytes&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(data_); }

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  uint64_t size() const { return size_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

  void assign(const Bytes& bytes) {
    if (!bytes.empty()) check(cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "copying there");
  }
  // The first bytes; waits for what runs.
  Bytes host(uint64_t count) const {
    Bytes bytes(count);
    check(cudaDeviceSynchronize(), "running kernels");
    if (count > 0) check(cudaMemcpy(bytes.data(), data_, count, cudaMemcpyDeviceToHost), "copying back");
    return bytes;
  }
  Bytes host() const { return host(size_); }
  template <class T>
  T number() const {
    T number;
    memcpy(&number, host(sizeof number).data(), sizeof number);
    return number;
  }

 private:
  void* data_ = nullptr;
  uint64_t size_;
};

// A codec for elements of a type, with its name on the page of figures.
struct Example {
  std::string name;
  int dtype;
  Codec codec;

  const Element& element() const { return elements[dtype]; }
};

std::optional<Example> parsed_example(const std::string& line) {
  std::istringstream words(line);
  int id = 0;
  size_t count = 0;
  Example example;
  if (!(words >> id >> example.dtype >> count)) return std::nullopt;
  std::vector<double> parameters;
  for (std::string word; parameters.size() < count && words >> word;)
    parameters.push_back(std::strtod(word.c_str(), nullptr));  // streams read no hexadecimal numbers
  std::getline(words >> std::ws, example.name);
  if (parameters.size() != count || !is_dtype(example.dtype) || !codec_of(id, parameters, example.codec))
    return std::nullopt;
  return example;
}

// All codecs of a file, a line each: id, data type, the number of parameters, the parameters, the name.
std::vector<Example> read_examples(const char* path) {
  std::ifstream file(path);
  std::vector<Example> examples;
  for (std::string line; std::getline(file, line);) {
    const std::optional<Example> example = parsed_example(line);
    if (!example) {
      std::printf("FAILED: %s: no codec: %s\n", path, line.c_str());
      std::exit(1);
    }
    examples.push_back(*example);
  }
  if (examples.empty()) {
    std::printf("FAILED: %s: no codecs: python bench/gpu_check.py --examples writes them\n", path);
    std::exit(1);
  }
  return examples;
}

bool has_gpu() {
  if (cuda::device_count() > 0) return true;
  std::printf("No GPU: nothing was checked.\n");
  return false;
}

// ---- the CPU's codecs

// The axes of an array of so many elements: slices of 64 x 64 where it has a whole number of them.
Axes axes_of_elements(uint64_t count) {
  return count % 4096 == 0 ? Axes{{1, count / 4096, 64, 64}} : Axes{{1, 1, 1, count}};
}

Bytes encode_on_cpu(const Codec& codec, const Element& element, const Bytes& source, uint64_t count) {
  Bytes payload(capacity(codec, element, count));
  uint64_t length = 0;
  const EncodeTask task{source.data(), payload.data(), count, axes_of_elements(count)};
  cpu::encode(codec, element, {&task, 1}, &length, Seed{random_key, nullptr}, 0);
  payload.resize(length);
  return payload;
}

// None where the payload is corrupt.
std::optional<Bytes> decode_on_cpu(const Codec& codec, const Element& element, const Bytes& payload, uint64_t count) {
  Bytes target(count * element.width / 8, untouched);
  const DecodeTask task{payload.data(), payload.size(), nullptr, target.data(), count};
  if (cpu::decode(codec, element, {&task, 1}, 0) == 0) return std::nullopt;
  return target;
}

}  // namespace
