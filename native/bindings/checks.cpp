#include "bindings/checks.h"

namespace nb = nanobind;

namespace arrcomp {

[[noreturn]] void raise_ours(const char* type, const std::string& message) {
  const nb::object error = nb::module_::import_("arrcomp.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

const Element& element_of(int dtype_id) {
  if (!is_dtype(dtype_id)) throw nb::value_error(("dtype_id=" + std::to_string(dtype_id) + ": 1 to 28").c_str());
  return elements[dtype_id];
}

uint64_t checked_count(int64_t elements) {
  if (elements < 0 || elements >= int64_t{1} << 60)
    throw nb::value_error(("elements=" + std::to_string(elements) + ": 0 to 2^60 - 1").c_str());
  return static_cast<uint64_t>(elements);
}

void check_cuda(cuda::Status status) {
  if (status == cuda::Status::ok) return;
  if (status == cuda::Status::unavailable) raise_ours("DeviceUnavailableError", cuda::last_error());
  throw std::runtime_error(cuda::last_error());
}

}  // namespace arrcomp
