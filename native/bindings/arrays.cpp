#include "bindings/arrays.h"

#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "memory.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

using nb::dlpack::dltensor;

constexpr uint32_t major_version = 1;  // of DLPack
constexpr int max_dimensions = 64;     // NumPy's limit

// What capsules named "dltensor" and "dltensor_versioned" hold.
struct Unversioned {
  dltensor tensor;
  void* context;
  void (*deleter)(Unversioned*);
};
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  dltensor tensor;
};

// A producer's tensor, given back with the last owner.
struct Tensor {
  std::shared_ptr<void> owner;
  const dltensor* view;
};

std::string class_of(nb::handle x) { return nb::str(x.type()).c_str(); }

// Calling by ourselves lets the producer's exception through. Nothing is said of a stream: host memory has none.
nb::object ask(nb::handle x) {
  const nb::object method = x.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(major_version, 1));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();  // of a producer older than DLPack 1.0
}

// Takes the tensor out of a capsule of this name; it is renamed, so that no one else takes it.
template <class Managed>
std::shared_ptr<Managed> take(nb::handle capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw nb::python_error();
  return {managed, [](Managed* given) {
            if (given->deleter != nullptr) given->deleter(given);
          }};
}

Tensor consume(nb::handle x) {
  const nb::object capsule = ask(x);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto managed = take<Versioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
    // Up to the deleter, all versions have one layout; what follows may be read only now.
    if (managed->major == major_version) return {managed, &managed->tensor};
    const std::string version = std::to_string(managed->major) + "." + std::to_string(managed->minor);
    throw nb::buffer_error(("x: expected DLPack version 1.x, got " + version).c_str());
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto managed = take<Unversioned>(capsule, "dltensor", "used_dltensor");
    return {managed, &managed->tensor};
  }
  const std::string given = nb::repr(capsule).c_str();
  throw nb::type_error(
      ("x: expected an unused DLPack capsule from __dlpack__ of " + class_of(x) + ", got " + given).c_str());
}

// Names of DLPack 1.1's type codes; those of the first seven go with a number of bits.
constexpr const char* type_codes[] = {
    "int",
    "uint",
    "float",
    "opaque",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};

std::string name_of(nb::dlpack::dtype dtype) {
  const std::string bits = std::to_string(dtype.bits);
  std::string name = "of type code " + std::to_string(dtype.code) + " and " + bits + " bits";
  if (dtype.code < std::size(type_codes)) {
    name = type_codes[dtype.code];
    if (dtype.code < 7 && !(name == "bool" && dtype.bits == 8)) name += bits;
  }
  return dtype.lanes == 1 ? name : name + " in lanes of " + std::to_string(dtype.lanes);
}

// Whether the format could have such a type: several values to a byte, or to an element, are another layout.
bool is_plain(nb::dlpack::dtype dtype) {
  const bool is_number = dtype.code != 3 && dtype.code < 15 && dtype.bits > 0 && dtype.bits % 8 == 0;
  return is_number && (dtype.code < 7 || dtype.bits == 8) && dtype.lanes == 1;
}

// Elements in C order from a strided array.
class Copier {
 public:
  Copier(const dltensor& tensor, uint8_t* to) : tensor_(tensor), size_(tensor.dtype.bits / 8), to_(to) {}

  void copy(int dimension, const uint8_t* from) {
    const int64_t step = tensor_.strides[dimension] * size_;
    const int64_t count = tensor_.shape[dimension];
    if (dimension + 1 == tensor_.ndim) return copy_row(from, step, count);
    for (int64_t i = 0; i < count; ++i) copy(dimension + 1, from + i * step);
  }

 private:
  void copy_row(const uint8_t* from, int64_t step, int64_t count) {
    switch (size_) {
      case 1: return copy_elements<1>(from, step, count);
      case 2: return copy_elements<2>(from, step, count);
      case 4: return copy_elements<4>(from, step, count);
      case 8: return copy_elements<8>(from, step, count);
      case 16: return copy_elements<16>(from, step, count);
    }
    for (int64_t i = 0; i < count; ++i, to_ += size_) memcpy(to_, from + i * step, static_cast<size_t>(size_));
  }

  template <size_t size>
  void copy_elements(const uint8_t* from, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; ++i, to_ += size) memcpy(to_, from + i * step, size);
  }

  const dltensor& tensor_;
  int64_t size_;
  uint8_t* to_;
};

bool is_contiguous(const dltensor& tensor) {
  int64_t expected = 1;
  for (int d = tensor.ndim; d-- > 0;) {
    if (tensor.strides != nullptr && tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

using ByteView = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

nb::object view(const uint8_t* data, size_t nbytes, std::shared_ptr<void> owner) {
  auto keep = std::make_unique<std::shared_ptr<void>>(std::move(owner));
  nb::capsule capsule(keep.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  keep.release();
  return nb::cast(ByteView(data, {nbytes}, capsule));
}

// Elements of a tensor that can be read.
int64_t checked_count(const dltensor& tensor) {
  const int kind = tensor.device.device_type;
  if (kind != 1 && kind != 3)  // kDLCPU and kDLCUDAHost
    throw nb::buffer_error(("x: expected host memory, got DLPack device type " + std::to_string(kind)).c_str());
  if (!is_plain(tensor.dtype))
    throw nb::type_error(("x: dtype " + name_of(tensor.dtype) + " is not supported").c_str());
  if (tensor.ndim < 0 || tensor.ndim > max_dimensions)
    throw nb::value_error(("x: expected 0 to 64 dimensions, got " + std::to_string(tensor.ndim)).c_str());
  int64_t count = 1;
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] < 0)
      throw nb::value_error(("x: expected sizes of 0 and above, got " + std::to_string(tensor.shape[d])).c_str());
    count *= tensor.shape[d];
  }
  if (count > 0 && tensor.data == nullptr)
    throw nb::type_error("x: expected an array with memory, got one without (a fake or abstract array?)");
  return count;
}

nb::object contiguous_bytes(const Tensor& tensor, int64_t count) {
  const dltensor& view_of = *tensor.view;
  const auto nbytes = static_cast<size_t>(count) * (view_of.dtype.bits / 8);
  const uint8_t* data = static_cast<const uint8_t*>(view_of.data) + view_of.byte_offset;
  if (count == 0 || is_contiguous(view_of)) return view(data, nbytes, tensor.owner);
  const std::shared_ptr<uint8_t[]> copy = allocated<uint8_t>(nbytes, "x in C order");
  Copier(view_of, copy.get()).copy(0, data);
  return view(copy.get(), nbytes, copy);
}

}  // namespace

nb::tuple import_dlpack(nb::handle x) {
  const Tensor tensor = consume(x);
  const nb::object bytes = contiguous_bytes(tensor, checked_count(*tensor.view));
  nb::list shape;
  for (int d = 0; d < tensor.view->ndim; ++d) shape.append(tensor.view->shape[d]);
  return nb::make_tuple(bytes, name_of(tensor.view->dtype).c_str(), nb::tuple(shape));
}

}  // namespace arrcomp
