#include "bindings/checks.h"

#include "bindings/messages.h"

namespace nb = nanobind;

namespace arrcomp {

[[noreturn]] void raise_ours(const char* type, const std::string& message) {
  const nb::object error = nb::module_::import_("arrcomp.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

const Element& element_of(int dtype_id) {
  if (!is_dtype(dtype_id)) throw nb::value_error(unexpected_dtype(dtype_id).c_str());
  return elements[dtype_id];
}

uint64_t checked_count(int64_t elements) {
  if (elements < 0 || elements >= max_elements) throw nb::value_error(unexpected_count("elements", elements).c_str());
  return static_cast<uint64_t>(elements);
}

void check_cuda(cuda::Status status) {
  if (status == cuda::Status::ok) return;
  if (status == cuda::Status::unavailable) raise_ours("DeviceUnavailableError", cuda::last_error());
  throw std::runtime_error(cuda::last_error());
}

}  // namespace arrcomp
