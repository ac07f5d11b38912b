#include "bindings/arrays.h"

#include <cstring>
#include <memory>
#include <vector>

namespace nb = nanobind;

namespace arrcomp {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

struct NamedType {
  int code;  // DLDataTypeCode
  int bits;
  const char* name;
};

// DLPack 1.1's data types that a stream can hold.
constexpr NamedType named_types[] = {
    {6, 8, "bool"},
    {0, 8, "int8"},
    {0, 16, "int16"},
    {0, 32, "int32"},
    {0, 64, "int64"},
    {1, 8, "uint8"},
    {1, 16, "uint16"},
    {1, 32, "uint32"},
    {1, 64, "uint64"},
    {2, 16, "float16"},
    {2, 32, "float32"},
    {2, 64, "float64"},
    {4, 16, "bfloat16"},
    {5, 64, "complex64"},
    {5, 128, "complex128"},
    {7, 8, "float8_e3m4"},
    {8, 8, "float8_e4m3"},
    {9, 8, "float8_e4m3b11fnuz"},
    {10, 8, "float8_e4m3fn"},
    {11, 8, "float8_e4m3fnuz"},
    {12, 8, "float8_e5m2"},
    {13, 8, "float8_e5m2fnuz"},
    {14, 8, "float8_e8m0fnu"},
};

const char* name_of(nb::dlpack::dtype dtype) {
  for (const NamedType& type : named_types)
    if (dtype.lanes == 1 && dtype.code == type.code && dtype.bits == type.bits) return type.name;
  return nullptr;
}

bool is_contiguous(const AnyArray& array) {
  int64_t expected = 1;
  for (size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) != 1 && array.stride(d) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(d));
  }
  return true;
}

// The elements in C order.
void copy_strided(const AnyArray& array, size_t dimension, const uint8_t* from, uint8_t*& to) {
  const size_t itemsize = array.itemsize();
  if (dimension == array.ndim()) {
    memcpy(to, from, itemsize);
    to += itemsize;
    return;
  }
  const int64_t step = array.stride(dimension) * static_cast<int64_t>(itemsize);
  for (size_t i = 0; i < array.shape(dimension); ++i)
    copy_strided(array, dimension + 1, from + static_cast<int64_t>(i) * step, to);
}

using ByteView = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

nb::object contiguous_bytes(const AnyArray& array) {
  const auto* data = static_cast<const uint8_t*>(array.data());
  const size_t nbytes = array.nbytes();
  if (nbytes > 0 && data == nullptr) throw nb::type_error("the array has no memory (a fake or abstract array?)");
  if (nbytes == 0 || is_contiguous(array)) {
    auto keep = std::make_unique<AnyArray>(array);
    nb::capsule owner(keep.get(), [](void* p) noexcept { delete static_cast<AnyArray*>(p); });
    keep.release();
    return nb::cast(ByteView(data, {nbytes}, owner));
  }
  auto copy = std::make_unique<std::vector<uint8_t>>(nbytes);
  uint8_t* to = copy->data();
  copy_strided(array, 0, data, to);
  nb::capsule owner(copy.get(), [](void* p) noexcept { delete static_cast<std::vector<uint8_t>*>(p); });
  const uint8_t* bytes = copy.release()->data();
  return nb::cast(ByteView(bytes, {nbytes}, owner));
}

}  // namespace

nb::tuple import_dlpack(nb::handle x) {
  AnyArray array;
  if (!nb::try_cast(x, array, false)) {
    const std::string type = nb::str(x.type()).c_str();
    throw nb::type_error(("x: " + type + " does not give a DLPack array in host memory").c_str());
  }
  const char* name = name_of(array.dtype());
  if (name == nullptr) {
    const auto dtype = array.dtype();
    const std::string given = "code " + std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) + " bits, " +
                              std::to_string(dtype.lanes) + " lanes";
    throw nb::type_error(("x: no support for the DLPack data type of " + given).c_str());
  }
  nb::list shape;
  for (size_t d = 0; d < array.ndim(); ++d) shape.append(array.shape(d));
  return nb::make_tuple(contiguous_bytes(array), name, nb::tuple(shape));
}

}  // namespace arrcomp
