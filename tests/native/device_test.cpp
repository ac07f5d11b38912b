// GPUs are made ready as native/cuda/device.h says, on a CUDA that this program pretends to be: two devices, and the
// contexts of this process. Prints what does not hold, and then returns 1.
#include "cuda/device.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/shape.h"

namespace {

using arrcomp::cuda::DeviceGuard;
using arrcomp::cuda::ListedKernel;

constexpr int devices = 2, processors = 132;
int failures = 0;

void expect(bool holds, const char* what, int line) {
  if (holds) return;
  std::printf("line %d: %s\n", line, what);
  ++failures;
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__, __LINE__)

}  // namespace

// ---- the pretended CUDA

// A device's only context. What is made in it is gone once it is reset.
struct CUctx_st {
  bool exists = false, keeps_id = false;
  unsigned long long id = 0;
  int retained = 0;
  std::map<void*, unsigned long long> memory;  // and the ids of the buffers
};

namespace {

std::recursive_mutex all_threads;
CUctx_st contexts[devices];
unsigned long long last_id = 0, last_buffer = 0;
int kernels_loaded = 0, calls_until_failure = -1;
std::map<const void*, int> shared_bytes_allowed;
bool always_relaxed = true;  // whenever something was done that would end a capture

thread_local std::vector<CUctx_st*> stack;
thread_local int chosen_device = 0;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

int index_of(const CUctx_st* context) { return static_cast<int>(context - contexts); }

CUctx_st* make(int device) {
  CUctx_st& context = contexts[device];
  if (!context.exists && !(context.keeps_id && context.id > 0)) context.id = ++last_id;
  context.exists = true;
  return &context;
}

// What cudaDeviceReset does.
void reset(int device, bool keeps_id) {
  CUctx_st& context = contexts[device];
  for (const auto& [memory, buffer] : context.memory) std::free(memory);
  context.memory.clear();
  context.exists = false;
  context.keeps_id = keeps_id;
}

// The current context, for what would end a capture.
CUctx_st* used_context() {
  const std::lock_guard lock(all_threads);
  always_relaxed = always_relaxed && mode == cudaStreamCaptureModeRelaxed;
  if (stack.empty()) stack.push_back(make(chosen_device));
  return make(index_of(stack.back()));
}

int get_current(CUctx_st** context) {
  *context = stack.empty() ? nullptr : stack.back();
  return cudaSuccess;
}
int get_id(CUctx_st* context, unsigned long long* id) {
  const std::lock_guard lock(all_threads);
  *id = context->id;
  return context->exists ? cudaSuccess : cudaErrorContextIsDestroyed;
}
int push(CUctx_st* context) {
  stack.push_back(context);
  return cudaSuccess;
}
int pop(CUctx_st** context) {
  *context = stack.back();
  stack.pop_back();
  return cudaSuccess;
}
int retain(CUctx_st** context, int device) {
  const std::lock_guard lock(all_threads);
  if (device < 0 || device >= devices) return cudaErrorInvalidDevice;
  *context = make(device);
  ++(*context)->retained;
  return cudaSuccess;
}
int release(int device) {
  const std::lock_guard lock(all_threads);
  --contexts[device].retained;
  return cudaSuccess;
}
int get_pointer(void* data, int attribute, unsigned long long pointer) {
  const std::lock_guard lock(all_threads);
  EXPECT(attribute == 7);
  for (const CUctx_st& context : contexts)
    if (const auto found = context.memory.find(reinterpret_cast<void*>(pointer)); found != context.memory.end())
      return std::memcpy(data, &found->second, sizeof found->second), cudaSuccess;
  return 1;
}

}  // namespace

cudaError_t cudaGetDevice(int* device) {
  *device = stack.empty() ? chosen_device : index_of(stack.back());
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  const std::lock_guard lock(all_threads);
  chosen_device = device;
  stack = {make(device)};
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const std::map<std::string, void*> functions{{"cuCtxGetCurrent", reinterpret_cast<void*>(get_current)},
                                               {"cuCtxGetId", reinterpret_cast<void*>(get_id)},
                                               {"cuCtxPushCurrent", reinterpret_cast<void*>(push)},
                                               {"cuCtxPopCurrent", reinterpret_cast<void*>(pop)},
                                               {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain)},
                                               {"cuDevicePrimaryCtxRelease", reinterpret_cast<void*>(release)},
                                               {"cuPointerGetAttribute", reinterpret_cast<void*>(get_pointer)}};
  *function = functions.at(name);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  std::swap(*other, mode);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = processors;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  const std::lock_guard lock(all_threads);
  used_context();
  if (calls_until_failure-- == 0) return cudaErrorMemoryAllocation;
  ++kernels_loaded;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  used_context();
  shared_bytes_allowed[kernel] = value;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t shared_bytes) {
  used_context();
  EXPECT(threads == arrcomp::cuda::threads_per_block);
  *blocks = shared_bytes > 0 ? 2 : 6;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::lock_guard lock(all_threads);
  *memory = std::malloc(bytes);
  used_context()->memory[*memory] = ++last_buffer;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(all_threads);
  used_context()->memory.erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  used_context();
  EXPECT(flags == cudaStreamNonBlocking);  // another would wait for the default stream, which may be in a capture
  *stream = reinterpret_cast<cudaStream_t>(&last_id);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  used_context();
  EXPECT(stream != nullptr);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  used_context();
  EXPECT(stream != nullptr);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// ---- what is tested

namespace {

const int small_kernel = 0, large_kernel = 0;
const ListedKernel small{&small_kernel, 0}, large{&large_kernel, 16 << 10};
constexpr int all_kernels = 2;

// As a process that has done nothing yet.
void begin() {
  for (int i = 0; i < devices; ++i) reset(i, false);
  stack.clear();
  chosen_device = 0;
  kernels_loaded = 0;
  always_relaxed = true;
}

bool has_tables(const DeviceGuard& guard, int device) {
  const void* const tables = guard.device().tables;
  return contexts[device].memory.contains(const_cast<void*>(tables)) &&
         std::memcmp(tables, &arrcomp::tables(), sizeof(arrcomp::Tables)) == 0;
}

void test_everything_is_loaded_once_and_outside_of_captures() {
  begin();
  for (int i = 0; i < 3; ++i) {
    const DeviceGuard guard(arrcomp::cuda::current_device);
    EXPECT(guard.error() == cudaSuccess);
    EXPECT(guard.device().index == 0 && guard.device().processors == processors);
    EXPECT(guard.device().resident(small) == 6 * processors && guard.device().resident(large) == 2 * processors);
    EXPECT(has_tables(guard, 0));
    EXPECT(kernels_loaded == all_kernels);
    EXPECT(mode == cudaStreamCaptureModeGlobal);
  }
  EXPECT(always_relaxed);
  EXPECT(!shared_bytes_allowed.contains(&small_kernel));
  EXPECT(shared_bytes_allowed[&large_kernel] == 64 << 10);
}

void test_no_context_is_made_on_another_device() {
  begin();
  make(1);  // the caller's arrays are there
  for (int i = 0; i < 2; ++i) {
    {
      const DeviceGuard guard(1);
      EXPECT(guard.error() == cudaSuccess && guard.device().index == 1 && has_tables(guard, 1));
      EXPECT(contexts[1].retained == 1);
    }
    EXPECT(!contexts[0].exists && contexts[1].retained == 0 && stack.empty() && chosen_device == 0);
  }
  EXPECT(kernels_loaded == all_kernels && always_relaxed);
}

void test_the_callers_device_is_current_again() {
  begin();
  cudaSetDevice(0);
  {
    const DeviceGuard guard(1);
    EXPECT(guard.device().index == 1 && index_of(stack.back()) == 1);
    const DeviceGuard inner(arrcomp::cuda::current_device);
    EXPECT(&inner.device() == &guard.device());
  }
  EXPECT(stack.size() == 1 && index_of(stack.back()) == 0);
  const DeviceGuard guard(0);
  EXPECT(guard.device().index == 0 && has_tables(guard, 0) && kernels_loaded == 2 * all_kernels);
}

void test_all_is_made_again_after_a_reset() {
  for (const bool keeps_id : {false, true}) {
    begin();
    for (int i = 1; i <= 3; ++i) {
      const DeviceGuard guard(0);
      EXPECT(guard.error() == cudaSuccess && has_tables(guard, 0));
      EXPECT(kernels_loaded == i * all_kernels && always_relaxed);
      reset(0, keeps_id);
      if (i == 2) make(0);  // by somebody else
    }
  }
}

void test_failures_are_told_and_leave_nothing() {
  begin();
  EXPECT(DeviceGuard(devices).error() == cudaErrorInvalidDevice);
  EXPECT(std::strcmp(DeviceGuard(devices).what(), "no such CUDA device") == 0);
  for (int failing = 0; failing < all_kernels; ++failing) {
    calls_until_failure = failing;
    const DeviceGuard guard(1);
    EXPECT(guard.error() == cudaErrorMemoryAllocation && std::strcmp(guard.what(), "loading the kernels") == 0);
    EXPECT(contexts[1].memory.empty() && mode == cudaStreamCaptureModeGlobal);
  }
  EXPECT(stack.empty() && contexts[1].retained == 0);
  const DeviceGuard guard(1);
  EXPECT(guard.error() == cudaSuccess && has_tables(guard, 1));
}

void test_threads_make_a_device_ready_once() {
  begin();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int call = 0; call < 100; ++call) {
        const DeviceGuard guard(call % devices);
        const std::lock_guard lock(all_threads);
        EXPECT(guard.error() == cudaSuccess && has_tables(guard, call % devices));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT(kernels_loaded == devices * all_kernels && always_relaxed);
}

void test_warps_are_spread_over_processors() {
  arrcomp::cuda::Device device;
  device.processors = processors;
  for (uint64_t units = 0; units < 20 * processors; ++units) {
    const auto shape = arrcomp::cuda::shape_for(device, units);
    EXPECT(shape.warps >= 1 && shape.warps <= arrcomp::cuda::warps_per_block);
    EXPECT(shape.all_warps() >= units && shape.all_warps() < units + static_cast<uint64_t>(shape.warps));
    EXPECT(static_cast<uint64_t>(shape.blocks) >= std::min<uint64_t>(units, processors));
    const auto limited = arrcomp::cuda::shape_for(device, units, processors);
    EXPECT(limited.all_warps() <= static_cast<uint64_t>(processors * arrcomp::cuda::warps_per_block));
    EXPECT((limited.blocks == 0) == (units == 0));
  }
  const auto many = arrcomp::cuda::shape_for(device, uint64_t{1} << 40);
  EXPECT(many.blocks == arrcomp::cuda::max_blocks && many.warps == arrcomp::cuda::warps_per_block);
}

}  // namespace

int main() {
  test_everything_is_loaded_once_and_outside_of_captures();
  test_no_context_is_made_on_another_device();
  test_the_callers_device_is_current_again();
  test_all_is_made_again_after_a_reset();
  test_failures_are_told_and_leave_nothing();
  test_threads_make_a_device_ready_once();
  test_warps_are_spread_over_processors();
  begin();  // nothing is left behind
  return failures == 0 ? 0 : 1;
}
