// The encoder of float32 with another way of placing groups, to be timed beside look-back: each group is written to a
// slot of scratch memory, sizes are scanned, groups are copied. The encoder itself is the same kernel: it is told that
// each group is an array of its own, so that none waits for another. (It looks for a group's array among as many arrays
// as there are groups, about a dozen loads more a group.)
#include "cuda/header.h"
#include "cuda/launches.cuh"

namespace arrcomp::cuda {
namespace {

constexpr int scan_threads = 1024, copy_threads = 128, list_threads = 256;

// Groups as arrays, and where they go. In memory that is taken once and never given back.
struct Slots {
  EncodeArray* arrays;
  uint64_t* lengths;  // of the slots' payloads
  uint64_t* ends;     // of the groups, from the first group of their array on
  uint8_t* payloads;
  uint64_t stride;
};

ARRCOMP_SHARED Plan plan_of_group(const Plan& plan, uint64_t g) {
  Plan one = plan;
  one.count = plan.group_count(g);
  one.directory_entry_bytes = 4;
  one.groups = 1;
  return one;
}

__global__ void list_groups(const __grid_constant__ EncodeArguments a, const __grid_constant__ Slots slots) {
  const uint64_t unit = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (unit >= a.groups) return;
  const EncodeArray& array = a.arrays[array_of_unit(a.arrays, a.count, unit)];
  const uint64_t g = unit - array.first_unit;
  const auto* const source = static_cast<const float*>(array.source) + g * array.plan.group_size();
  slots.arrays[unit] = {plan_of_group(array.plan, g), source, slots.payloads + unit * slots.stride,
                        slots.lengths + unit,         unit,   {array.range_keys[0], array.range_keys[1]}};
}

// The sum of this thread's number and those of all threads before it; `sums` is shared, a number a warp.
__device__ uint64_t sum_up_to(uint64_t number, uint64_t* sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const uint64_t before = __shfl_up_sync(~0u, number, distance);
    if (lane >= distance) number += before;
  }
  if (lane == 31) sums[warp] = number;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) number += sums[w];
  __syncthreads();
  return number;
}

// A block for each array.
__global__ void scan_sizes(const __grid_constant__ EncodeArguments a, const __grid_constant__ Slots slots) {
  __shared__ uint64_t sums[scan_threads / 32];
  __shared__ uint64_t all;
  const EncodeArray& array = a.arrays[blockIdx.x];
  const Plan& plan = array.plan;
  uint64_t before = 0;
  for (uint64_t first = 0; first < plan.groups; first += scan_threads) {
    const uint64_t g = first + threadIdx.x, unit = array.first_unit + g;
    const uint64_t size = g < plan.groups ? slots.lengths[unit] - slots.arrays[unit].plan.groups_offset() : uint64_t{0};
    const uint64_t end = before + sum_up_to(size, sums);
    if (g < plan.groups) slots.ends[unit] = end;
    if (threadIdx.x == scan_threads - 1) all = end;
    __syncthreads();
    before = all;
    __syncthreads();
  }
  if (threadIdx.x == 0 && plan.groups > 0) *array.length = plan.groups_offset() + before;
}

// A block for each group.
__global__ void copy_groups(const __grid_constant__ EncodeArguments a, const __grid_constant__ Slots slots) {
  const uint64_t unit = blockIdx.x;
  const EncodeArray& array = a.arrays[array_of_unit(a.arrays, a.count, unit)];
  const Plan& plan = array.plan;
  const uint64_t g = unit - array.first_unit;
  const uint64_t begin = g > 0 ? slots.ends[unit - 1] : 0, end = slots.ends[unit];
  const EncodeArray& slot = slots.arrays[unit];
  const auto* const from = reinterpret_cast<const uint32_t*>(slot.payload + slot.plan.groups_offset());
  auto* const to = reinterpret_cast<uint32_t*>(array.payload + plan.groups_offset() + begin);
  const uint64_t words = (end - begin) / sizeof(uint32_t);
#pragma unroll 8
  for (uint64_t i = threadIdx.x; i < words; i += copy_threads) to[i] = from[i];
  if (threadIdx.x > 0) return;
  if (g == 0) write_header(array, a.settings);
  set_directory_entry(plan, array.payload, g, end);
}

// Room for so many groups; none of the memory where the device has too little.
Slots slots_for(uint64_t groups) {
  static uint8_t* memory = nullptr;
  static uint64_t taken = 0;
  Slots slots{};
  constexpr Plan largest = make_plan(elements[12], uint64_t{1} << 30);
  slots.stride = round_up(payload_header_bytes + 8 + largest.group_capacity(), 256);
  const uint64_t arrays = round_up(groups * sizeof(EncodeArray), 256), numbers = round_up(groups * 8, 256);
  const uint64_t bytes = arrays + 2 * numbers + groups * slots.stride;
  if (bytes > taken) {
    cudaFree(memory);
    taken = cudaMalloc(&memory, bytes) == cudaSuccess ? bytes : 0;
    if (taken == 0) memory = nullptr;
  }
  slots.arrays = reinterpret_cast<EncodeArray*>(memory);
  slots.lengths = reinterpret_cast<uint64_t*>(memory + arrays);
  slots.ends = reinterpret_cast<uint64_t*>(memory + arrays + numbers);
  slots.payloads = memory + arrays + 2 * numbers;
  return slots;
}

void encode_by_scan(const EncodeArguments& a, const Shape& shape, cudaStream_t stream) {
  const Slots slots = slots_for(a.groups);
  if (slots.arrays == nullptr) return;  // the caller's bytes differ, and cudaMalloc's error is the last one
  const auto groups = static_cast<unsigned>(a.groups);
  list_groups<<<static_cast<unsigned>(ceil_div(groups, list_threads)), list_threads, 0, stream>>>(a, slots);
  EncodeArguments of_groups = a;
  of_groups.arrays = slots.arrays;
  of_groups.count = a.groups;
  kernels_of<Float32>().encode(of_groups, shape, stream);
  scan_sizes<<<static_cast<unsigned>(a.count), scan_threads, 0, stream>>>(a, slots);
  copy_groups<<<groups, copy_threads, 0, stream>>>(a, slots);
}

constexpr Kernels kernels_with_scan() {
  Kernels kernels = kernels_of<Float32>();
  kernels.encode = encode_by_scan;
  return kernels;
}

}  // namespace

const Kernels float32_kernels = kernels_with_scan();

}  // namespace arrcomp::cuda
