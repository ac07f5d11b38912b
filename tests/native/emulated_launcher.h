// Launches kernels on emulated warps, for calls that are sequences of them (cuda/predicted_calls.h).
#pragma once
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include "cuda/kernels.cuh"

namespace {

// As the driver launches them.
class EmulatedLauncher {
 public:
  EmulatedLauncher(Order order, uint64_t seed) : order_(order), seed_(seed) {}

  template <auto kernel, class... Arguments>
  void run(uint64_t units, const Arguments&... arguments) const {
    launch(units, order_, seed_++, [&] { kernel(arguments...); });
  }
  void widen_range(const cuda::EncodeArguments& a) const {
    cuda::visit_element(a.element,
                        [&]<class T>(T) { launch(a.groups, order_, seed_++, [&] { cuda::range_kernel<T>(a); }); });
  }
  void encode(const cuda::EncodeArguments& a) const {
    cuda::visit_element(a.element,
                        [&]<class T>(T) { launch(a.groups, order_, seed_++, [&] { cuda::encode_kernel<T>(a); }); });
  }
  void encode_codes(const cuda::EncodeArguments& a) const {
    visit_codes(a.element, [&]<class T>(T) {
      launch(a.groups, order_, seed_++, [&] { cuda::encode_kernel<T, max_chunks_of_codes>(a); });
    });
  }
  void decode(const Element& element, const cuda::DecodeArguments& a) const {
    cuda::visit_element(element, [&]<class T>(T) {
      launch(a.arrays.units, order_, seed_++, [&] { cuda::decode_regular_kernel<T>(a); });
      launch(a.arrays.units, order_, seed_++, [&] { cuda::decode_kernel<T>(a); });
    });
  }
  void decode_codes(const Element& element, const cuda::DecodeArguments& a) const {
    visit_codes(element, [&]<class T>(T) {
      launch(a.arrays.units, order_, seed_++, [&] { cuda::decode_regular_kernel<T, max_chunks_of_codes>(a); });
      launch(a.arrays.units, order_, seed_++, [&] { cuda::decode_kernel<T, max_chunks_of_codes>(a); });
    });
  }

 private:
  template <class Visitor>
  static void visit_codes(const Element& element, Visitor visitor) {
    if (element.width == 64) return visitor(cuda::Float64{});
    visitor(cuda::Float32{});
  }

  Order order_;
  mutable uint64_t seed_;
};

// Counts launches, and launches nothing.
struct CountingLauncher {
  mutable int launches = 0;

  template <auto kernel, class... Arguments>
  void run(uint64_t, const Arguments&...) const {
    ++launches;
  }
  void widen_range(const cuda::EncodeArguments&) const { ++launches; }
  void encode(const cuda::EncodeArguments&) const { ++launches; }
  void encode_codes(const cuda::EncodeArguments&) const { ++launches; }
  void decode(const Element&, const cuda::DecodeArguments&) const { launches += 2; }
  void decode_codes(const Element&, const cuda::DecodeArguments&) const { launches += 2; }
};

// Memory as the allocator gives it: with anything in it.
Bytes scratch_of(uint64_t bytes) { return Bytes(bytes + 256, untouched); }
uint8_t* aligned(Bytes& bytes) {
  return reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(bytes.data()), 256));
}

}  // namespace
