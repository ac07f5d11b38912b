#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {
namespace {

constinit const ListedKernel* kernels = nullptr;

// Functions of the driver that the runtime has no others for. They are asked for by name: a machine without a GPU has
// no driver to link with.
struct Driver {
  using Context = struct CUctx_st*;
  using Result = int;  // the same numbers as a cudaError_t's

  Result (*get_current)(Context*);
  Result (*get_id)(Context, unsigned long long*);
  Result (*push)(Context);
  Result (*pop)(Context*);
  Result (*retain_primary)(Context*, int);
  Result (*release_primary)(int);
  Result (*get_pointer)(void*, int attribute, unsigned long long pointer);
  cudaError_t error;

  Driver() {
    error = cudaSuccess;
    find("cuCtxGetCurrent", get_current);
    find("cuCtxGetId", get_id);
    find("cuCtxPushCurrent", push);
    find("cuCtxPopCurrent", pop);
    find("cuDevicePrimaryCtxRetain", retain_primary);
    find("cuDevicePrimaryCtxRelease", release_primary);
    find("cuPointerGetAttribute", get_pointer);
  }

  template <class Function>
  void find(const char* name, Function& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    function = reinterpret_cast<Function>(found);
    if (error != cudaSuccess) return;
    error = status == cudaSuccess && result != cudaDriverEntryPointSuccess ? cudaErrorInsufficientDriver : status;
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

constexpr int pointer_attribute_buffer_id = 7;  // CU_POINTER_ATTRIBUTE_BUFFER_ID

unsigned long long address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

cudaError_t error_of(Driver::Result result) { return static_cast<cudaError_t>(result); }

// While this lives, this thread may do what is forbidden while a stream captures a graph: none of it is part of one.
class OutsideOfGraphs {
 public:
  OutsideOfGraphs() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideOfGraphs() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Loads all kernels: CUDA would load each at its first launch, where a graph may be captured.
cudaError_t load_kernels(Device& device) {
  device.resident_blocks.assign(kernels == nullptr ? 0 : kernels->index + 1, 0);
  cudaError_t error = cudaSuccess;
  for (const ListedKernel* k = kernels; k != nullptr && error == cudaSuccess; k = k->next) {
    constexpr int always_allowed = 48 << 10;
    cudaFuncAttributes attributes;
    error = cudaFuncGetAttributes(&attributes, k->function);
    if (error == cudaSuccess && k->shared_bytes > always_allowed)
      error = cudaFuncSetAttribute(k->function, cudaFuncAttributeMaxDynamicSharedMemorySize, k->shared_bytes);
    int& blocks = device.resident_blocks[k->index];
    if (error == cudaSuccess)
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k->function, threads_per_block,
                                                            static_cast<size_t>(k->shared_bytes));
    blocks = std::max(blocks, 1);
  }
  return error;
}

// Copies the tables there. They are in place when this returns, whatever stream uses them.
cudaError_t copy_tables(Device& device) {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaMalloc(&memory, sizeof(Tables));
  if (error != cudaSuccess) return error;
  error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(memory, &tables(), sizeof(Tables), cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  if (error != cudaSuccess) cudaFree(memory);
  device.tables = static_cast<const Tables*>(memory);
  return error;
}

cudaError_t make_ready(Device& device) {
  const OutsideOfGraphs outside;
  cudaError_t error = cudaDeviceGetAttribute(&device.processors, cudaDevAttrMultiProcessorCount, device.index);
  if (error == cudaSuccess) error = load_kernels(device);
  if (error == cudaSuccess) error = copy_tables(device);
  return error;
}

struct ReadyContext {
  unsigned long long id, tables_id;
  Device device;

  // cudaDeviceReset takes kernels and tables away. Of memory that is gone, and is another's now, this id is another.
  bool is_alive() const {
    unsigned long long found = 0;
    return driver().get_pointer(&found, pointer_attribute_buffer_id, address(device.tables)) == cudaSuccess &&
           found == tables_id;
  }
};

// Makes the context with this id, which is the current one, ready, unless it is.
cudaError_t find_or_make_ready(unsigned long long id, int index, const ReadyContext*& ready) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const ReadyContext>> all;
  const std::lock_guard lock(mutex);
  for (const auto& known : all)
    if (known->id == id && known->is_alive()) ready = known.get();
  if (ready != nullptr) return cudaSuccess;
  auto made = std::make_unique<ReadyContext>();
  made->id = id;
  made->device.index = index;
  const cudaError_t error = make_ready(made->device);
  if (error != cudaSuccess) return error;
  if (const auto result =
          driver().get_pointer(&made->tables_id, pointer_attribute_buffer_id, address(made->device.tables)))
    return error_of(result);
  ready = all.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

// The id of the thread's context. Where there is none, or cudaDeviceReset has ended it, the runtime makes one, as it
// would at the first launch.
cudaError_t current_context(int index, unsigned long long& id) {
  Driver::Context context = nullptr;
  cudaError_t error = error_of(driver().get_current(&context));
  if (error == cudaSuccess && context != nullptr && driver().get_id(context, &id) == cudaSuccess) return cudaSuccess;
  const OutsideOfGraphs outside;
  error = cudaSetDevice(index);
  if (error == cudaSuccess) error = error_of(driver().get_current(&context));
  return error == cudaSuccess ? error_of(driver().get_id(context, &id)) : error;
}

cudaError_t ready_device(int index, const Device*& device) {
  static std::atomic<const ReadyContext*> latest = nullptr;
  unsigned long long id = 0;
  cudaError_t error = current_context(index, id);
  if (error != cudaSuccess) return error;
  const ReadyContext* ready = latest.load(std::memory_order_acquire);
  if (ready == nullptr || ready->id != id || !ready->is_alive()) {
    ready = nullptr;
    error = find_or_make_ready(id, index, ready);
    if (error != cudaSuccess) return error;
    latest.store(ready, std::memory_order_release);
  }
  device = &ready->device;
  return cudaSuccess;
}

}  // namespace

ListedKernel::ListedKernel(const void* kernel, uint64_t shared_bytes_of_warp)
    : function(kernel),
      shared_bytes(static_cast<int>(warps_per_block * shared_bytes_of_warp)),
      index(kernels == nullptr ? 0 : kernels->index + 1),
      next(kernels) {
  kernels = this;
}

bool DeviceGuard::failed(cudaError_t error, const char* what) {
  error_ = error;
  what_ = what;
  return error != cudaSuccess;
}

DeviceGuard::DeviceGuard(int index) {
  int current = 0;
  if (failed(cudaGetDevice(&current), "no such CUDA device")) return;
  if (failed(driver().error, "finding the CUDA driver's functions")) return;
  if (index == current_device) index = current;
  if (index != current) {
    Driver::Context context = nullptr;
    if (failed(error_of(driver().retain_primary(&context, index)), "no such CUDA device")) return;
    if (failed(error_of(driver().push(context)), "making the CUDA device the current one")) {
      driver().release_primary(index);
      return;
    }
    pushed_ = index;
  }
  failed(ready_device(index, device_), "loading the kernels");
}

DeviceGuard::~DeviceGuard() {
  if (pushed_ < 0) return;
  Driver::Context context;
  driver().pop(&context);
  driver().release_primary(pushed_);
}

}  // namespace arrcomp::cuda
