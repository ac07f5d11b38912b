// The CUDA back end of a build without CUDA: the same functions, none of which works.
#include "backend.h"

namespace arrcomp::cuda {

bool is_built() { return false; }
int device_count() { return 0; }
const char* last_error() {
  return "this build of arrcomp has no CUDA kernels: install it where a CUDA compiler is found (ARRCOMP_CUDA=ON)";
}
Status scratch_bytes(const Plan&, int, uint64_t&) { return Status::unavailable; }
Status encode(const Plan&, const Settings&, const void*, uint8_t*, void*, void*, int) { return Status::unavailable; }
Status decode(const Plan&, const uint8_t*, uint64_t, void*, uint32_t*, void*, int) { return Status::unavailable; }

}  // namespace arrcomp::cuda
