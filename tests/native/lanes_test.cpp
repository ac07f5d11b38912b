// Runs every operation of native/lanes/lanes.h on plain lanes and, if LANES_TEST_ISA is defined, on that one
// too, over random and edge inputs, and compares both with straightforward scalar code. Prints a line for each
// operation that fails, and a summary.
//
//   c++ -std=c++20 -ffp-contract=off -I native -DLANES_TEST_ISA=avx2 (its flags) lanes_test.cpp
//   nvcc -std=c++20 -x cu -I native lanes_test.cpp     (cuda alone)
//
// Exits with 0 if all agree, with 1 if not, with 77 if there is no GPU to run on.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lanes_inputs.h"
#include "lanes_reference.h"

#ifdef __CUDACC__
#define ARRCOMP_ISA cuda
#else
#define ARRCOMP_ISA plain
#endif
#include "lanes/lanes.h"
#include "lanes_run.h"
#ifdef LANES_TEST_ISA
#undef ARRCOMP_ISA
#define ARRCOMP_ISA LANES_TEST_ISA
#include "lanes/lanes.h"
#include "lanes_run.h"
#endif

namespace test {

bool is_nan(uint64_t bits, int bytes) {
  return bytes == 4 ? (bits & 0x7fffffff) > 0x7f800000 : (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

std::string described(const char* what, int where, uint64_t got, uint64_t wanted) {
  char text[100];
  std::snprintf(text, sizeof text, "%s %d is %#llx, not %#llx", what, where, (unsigned long long)got,
                (unsigned long long)wanted);
  return text;
}

// What differs in a slot, or nothing.
std::string difference(const unsigned char* slot, const Expected& expected) {
  int offset = 0;
  for (const Item& item : expected.lanes) {
    uint64_t got = 0;
    std::memcpy(&got, slot + offset, item.bytes);
    bool good =
        item.allowed == Item::any || got == item.bits || (item.allowed == Item::any_nan && is_nan(got, item.bytes));
    if (!good) return described("value", offset / item.bytes, got, item.bits);
    offset += item.bytes;
  }
  for (; offset < lanes_bytes; offset++) {
    if (slot[offset] != untouched) return described("the byte beyond, at", offset, slot[offset], untouched);
  }
  uint64_t uniform;
  std::memcpy(&uniform, slot + lanes_bytes, sizeof uniform);
  return uniform == expected.uniform ? "" : described("uniform value", 0, uniform, expected.uniform);
}

struct Machine {
  const char* name;
  void (*run)(Inputs, unsigned char*);
};

#ifdef __CUDACC__
void run_on_device(Inputs in, unsigned char* slots) {
  arrcomp::cuda::run<<<1, 32>>>(in, slots);
  if (cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::printf("cuda: %s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}
bool device_missing() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
}
const Machine isas[] = {{"cuda", run_on_device}};
#else
bool device_missing() { return false; }
const Machine isas[] = {
    {"plain", arrcomp::plain::run},
#ifdef LANES_TEST_ISA
    {ARRCOMP_QUOTE(LANES_TEST_ISA), arrcomp::LANES_TEST_ISA::run},
#endif
};
#endif

int check(const Machine& isa, int rounds) {
  int failures[operation_count] = {};
  std::string first[operation_count];
  const size_t nbytes = (size_t)operation_count * slot_bytes;
  unsigned char* slots = allocate<unsigned char>(nbytes);
  Inputs in = allocate_inputs();
  Generator generator;
  for (int round = 0; round < rounds; round++) {
    generator.fill(in, round);
    std::memset(slots, untouched, nbytes);
    isa.run(in, slots);
    for (int i = 0; i < operation_count; i++) {
      std::string found = difference(slots + i * slot_bytes, operations[i].expect(in));
      if (!found.empty() && !failures[i]++) first[i] = "round " + std::to_string(round) + ": " + found;
    }
  }
  release_inputs(in);
  release(slots);
  int failed = 0;
  for (int i = 0; i < operation_count; i++) {
    if (!failures[i]) continue;
    failed++;
    std::printf("%s %s: wrong in %d of %d rounds; %s\n", isa.name, operations[i].name, failures[i], rounds,
                first[i].c_str());
  }
  std::printf("%s: %d of %d operations failed\n", isa.name, failed, operation_count);
  return failed;
}

}  // namespace test

int main() {
  if (test::device_missing()) {
    std::printf("no CUDA device\n");
    return 77;
  }
  int failed = 0;
  for (const test::Machine& isa : test::isas) failed += test::check(isa, 2000);
  return failed ? 1 : 0;
}
