// The CUDA back end of a build without CUDA: the same functions, none of which works.
#include "backend.h"

namespace arrcomp::cuda {

bool is_built() { return false; }
int device_count() { return 0; }
const char* last_error() {
  return "this build of arrcomp has no CUDA kernels: install it again with -C cmake.define.ARRCOMP_CUDA=ON";
}
Status encode_scratch_bytes(const Codec&, const Element&, std::span<const uint64_t>, int, uint64_t&) {
  return Status::unavailable;
}
Status encode(const Codec&, const Element&, std::span<const EncodeTask>, uint64_t*, const Seed&, void*, void*, int) {
  return Status::unavailable;
}
uint64_t decode_scratch_bytes(const Codec&, const Element&, std::span<const uint64_t>) { return 0; }
Status decode(const Codec&, const Element&, std::span<const DecodeTask>, uint32_t*, void*, void*, int) {
  return Status::unavailable;
}
uint64_t accumulate_scratch_bytes(size_t) { return 0; }
Status accumulate(const Sum&, const void*, void*, uint32_t*, void*, void*, int) { return Status::unavailable; }
Status encode_sum_scratch_bytes(const Codec&, const Codec&, const Element&, size_t, uint64_t, int, uint64_t&) {
  return Status::unavailable;
}
Status encode_sum(const Sum&, const Codec&, uint8_t*, uint64_t*, const Seed&, uint32_t*, void*, void*, int) {
  return Status::unavailable;
}
Status activate(const Activation&, const Steps&, const Element&, const ActivateTask&, void*, int) {
  return Status::unavailable;
}
Status step_grad(const Steps&, const Element&, const StepGradTask&, void*, int) { return Status::unavailable; }

}  // namespace arrcomp::cuda
