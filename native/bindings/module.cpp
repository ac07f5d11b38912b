// The Python module arrcomp._core: checks of arguments, nothing else. Its contract is arrcomp/_core.pyi.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <string>

#include "backend.h"
#include "bindings/arrays.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

[[noreturn]] void raise_ours(const char* type, const std::string& message) {
  const nb::object error = nb::module_::import_("arrcomp.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

[[noreturn]] void raise_corrupt() {
  raise_ours("CorruptStreamError", "payload: not one of this data type and number of elements");
}

Plan plan_of(int dtype_id, int64_t elements) {
  if (!is_dtype(dtype_id)) throw nb::value_error(("dtype_id=" + std::to_string(dtype_id) + ": 1 to 28").c_str());
  if (elements < 0 || elements >= int64_t{1} << 60)
    throw nb::value_error(("elements=" + std::to_string(elements) + ": 0 to 2^60 - 1").c_str());
  return make_plan(arrcomp::elements[dtype_id], static_cast<uint64_t>(elements));
}

uint64_t array_bytes(const Plan& plan) { return plan.count * (plan.element.width / 8); }

void check_size(const char* name, uint64_t given, uint64_t expected) {
  if (given == expected) return;
  throw nb::value_error(
      (std::string(name) + " has " + std::to_string(given) + " bytes, not " + std::to_string(expected)).c_str());
}

Settings settings_of(int bound_kind, double bound, bool fast) {
  if (bound_kind < 0 || bound_kind > 3)
    throw nb::value_error(("bound_kind=" + std::to_string(bound_kind) + ": 0 to 3").c_str());
  return {static_cast<BoundKind>(bound_kind), bound, fast};
}

uint64_t capacity(int dtype_id, int64_t elements) { return plan_of(dtype_id, elements).capacity(); }

uint64_t encode(int dtype_id, Bytes source, int64_t elements, int bound_kind, double bound, bool fast,
                WritableBytes out, int threads) {
  const Plan plan = plan_of(dtype_id, elements);
  const Settings settings = settings_of(bound_kind, bound, fast);
  check_size("source", source.nbytes(), array_bytes(plan));
  if (out.nbytes() < plan.capacity())
    throw nb::value_error(("out has " + std::to_string(out.nbytes()) + " bytes, at least " +
                           std::to_string(plan.capacity()) + " are needed")
                              .c_str());
  nb::gil_scoped_release release;
  return cpu::encode(plan, settings, source.data(), out.data(), threads);
}

// Decoding reads words of 4 bytes: a payload that stands elsewhere is moved.
bool decode_aligned(const Plan& plan, const Bytes& payload, void* target, int threads) {
  if (reinterpret_cast<uintptr_t>(payload.data()) % 8 == 0)
    return cpu::decode(plan, payload.data(), payload.nbytes(), target, threads);
  const auto copy = std::make_unique<uint64_t[]>(payload.nbytes() / 8 + 1);
  memcpy(copy.get(), payload.data(), payload.nbytes());
  return cpu::decode(plan, reinterpret_cast<const uint8_t*>(copy.get()), payload.nbytes(), target, threads);
}

void decode(int dtype_id, Bytes payload, int64_t elements, WritableBytes out, int threads) {
  const Plan plan = plan_of(dtype_id, elements);
  check_size("out", out.nbytes(), array_bytes(plan));
  bool ok;
  {
    nb::gil_scoped_release release;
    ok = decode_aligned(plan, payload, out.data(), threads);
  }
  if (!ok) raise_corrupt();
}

nb::list instruction_sets() {
  nb::list names;
  for (const char* const* name = cpu::instruction_sets(); *name; ++name) names.append(*name);
  return names;
}

void use_instruction_set(const std::string& name) {
  if (cpu::use_instruction_set(name.c_str())) return;
  const std::string known = nb::repr(instruction_sets()).c_str();
  throw nb::value_error(("name='" + name + "': this processor has " + known).c_str());
}

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

void check(cuda::Status status) {
  if (status == cuda::Status::ok) return;
  if (status == cuda::Status::unavailable) raise_ours("DeviceUnavailableError", cuda::last_error());
  throw std::runtime_error(cuda::last_error());
}

uint64_t cuda_scratch(int dtype_id, int64_t elements, int device) {
  uint64_t bytes = 0;
  check(cuda::scratch_bytes(plan_of(dtype_id, elements), device, bytes));
  return bytes;
}

void encode_cuda(int dtype_id, uint64_t source, int64_t elements, int bound_kind, double bound, bool fast, uint64_t out,
                 uint64_t scratch, uint64_t stream, int device) {
  const Plan plan = plan_of(dtype_id, elements);
  check(cuda::encode(plan, settings_of(bound_kind, bound, fast), pointer(source), static_cast<uint8_t*>(pointer(out)),
                     pointer(scratch), pointer(stream), device));
}

void decode_cuda(int dtype_id, uint64_t payload, uint64_t nbytes, int64_t elements, uint64_t out, uint64_t status,
                 uint64_t stream, int device) {
  check(cuda::decode(plan_of(dtype_id, elements), static_cast<const uint8_t*>(pointer(payload)), nbytes, pointer(out),
                     static_cast<uint32_t*>(pointer(status)), pointer(stream), device));
}

}  // namespace

NB_MODULE(_core, m) {
  using nb::arg;
  m.def("capacity", &capacity, arg("dtype_id"), arg("elements"));
  m.def("encode", &encode, arg("dtype_id"), arg("source"), arg("elements"), arg("bound_kind"), arg("bound"),
        arg("fast"), arg("out").noconvert(), arg("threads"));
  m.def("decode", &decode, arg("dtype_id"), arg("payload"), arg("elements"), arg("out").noconvert(), arg("threads"));
  m.def("import_dlpack", &import_dlpack, arg("x"));
  m.def("instruction_set", &cpu::instruction_set);
  m.def("instruction_sets", &instruction_sets);
  m.def("use_instruction_set", &use_instruction_set, arg("name"));
  m.def("cuda_built", &cuda::is_built);
  m.def("cuda_device_count", &cuda::device_count);
  m.def("cuda_scratch", &cuda_scratch, arg("dtype_id"), arg("elements"), arg("device"));
  m.def("encode_cuda", &encode_cuda, arg("dtype_id"), arg("source_pointer"), arg("elements"), arg("bound_kind"),
        arg("bound"), arg("fast"), arg("out_pointer"), arg("scratch_pointer"), arg("stream"), arg("device"));
  m.def("decode_cuda", &decode_cuda, arg("dtype_id"), arg("payload_pointer"), arg("payload_nbytes"), arg("elements"),
        arg("out_pointer"), arg("status_pointer"), arg("stream"), arg("device"));
}

}  // namespace arrcomp
