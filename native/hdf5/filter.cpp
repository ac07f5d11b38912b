// The filter of HDF5: each chunk of a dataset becomes a stream. HDF5 loads it from HDF5_PLUGIN_PATH by its number.
#include <algorithm>
#include <stdexcept>

#include "c/arrcomp.h"
#include "hdf5/filter_values.h"
#include "hdf5/hdf5.h"
#include "text.h"

namespace arrcomp::hdf5 {
namespace {

// Of the numbers for tests and use inside one organization (256 to 511), until one is registered.
constexpr int filter_id = 428;

constexpr int all_cores = 0;  // HDF5 runs filters one after the other

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

void check(arrcomp_status status) {
  if (status != ARRCOMP_OK) refuse(arrcomp_error_message());
}

void check_call(bool succeeded, const char* name) {
  if (!succeeded) refuse(std::string(name) + " failed");
}

// Calls work(library), and pushes the message of what it throws. Returns false then, and where HDF5's functions are not
// found: there is nowhere to say why.
template <class Work>
bool reported(const void* caller, const char* function, const Work& work) {
  const Library library(caller);
  if (!library.is_complete()) return false;
  try {
    work(library);
    return true;
  } catch (const std::exception& error) {
    library.push_error(function, __LINE__, error.what());
    return false;
  }
}

// Memory of HDF5.
class Memory {
 public:
  Memory(const Library& library, uint64_t bytes) : library_(library), memory_(library.allocate(bytes, false)) {
    if (memory_ == nullptr) refuse("no memory for a chunk: " + std::to_string(bytes) + " bytes");
  }
  ~Memory() {
    if (memory_ != nullptr) library_.free(memory_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* get() const { return memory_; }

  // Puts it in the place of another one, which is freed.
  void replace(void** buffer) {
    library_.free(*buffer);
    *buffer = memory_;
    memory_ = nullptr;
  }

 private:
  const Library& library_;
  void* memory_;
};

arrcomp_dtype integer_dtype(const Library& library, Id type) {
  const bool is_signed = library.get_sign(type) != Sign::none;
  switch (library.get_size(type)) {
    case 1: return is_signed ? ARRCOMP_INT8 : ARRCOMP_UINT8;
    case 2: return is_signed ? ARRCOMP_INT16 : ARRCOMP_UINT16;
    case 4: return is_signed ? ARRCOMP_INT32 : ARRCOMP_UINT32;
    case 8: return is_signed ? ARRCOMP_INT64 : ARRCOMP_UINT64;
  }
  refuse(expected("dtype", "integers of 1, 2, 4 or 8 bytes", library.get_size(type)));
}

arrcomp_dtype float_dtype(const Library& library, Id type) {
  size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
  const int status = library.get_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
  check_call(status >= 0, "H5Tget_fields");
  const bool is_ieee = mantissa == 0 && exponent == mantissa_bits && sign == exponent + exponent_bits &&
                       library.get_bias(type) == (size_t{1} << (exponent_bits - 1)) - 1;
  struct {
    arrcomp_dtype dtype;
    size_t exponent_bits, mantissa_bits;
  } const known[] = {
      {ARRCOMP_FLOAT16, 5, 10}, {ARRCOMP_BFLOAT16, 8, 7}, {ARRCOMP_FLOAT32, 8, 23}, {ARRCOMP_FLOAT64, 11, 52}};
  for (const auto& row : known)
    if (is_ieee && exponent_bits == row.exponent_bits && mantissa_bits == row.mantissa_bits) return row.dtype;
  refuse(expected("dtype", "float16, bfloat16, float32 or float64", "another floating-point type"));
}

// The type under an enumeration: h5py's booleans are one of integers.
class BaseType {
 public:
  BaseType(const Library& library, Id type) : library_(library), id_(library.get_super(type)) {
    check_call(id_ >= 0, "H5Tget_super");
  }
  ~BaseType() { library_.close_type(id_); }
  BaseType(const BaseType&) = delete;
  BaseType& operator=(const BaseType&) = delete;

  Id id() const { return id_; }

 private:
  const Library& library_;
  const Id id_;
};

arrcomp_dtype dtype_of(const Library& library, Id type) {
  const Class kind = library.get_class(type);
  if (kind == Class::enumeration) {
    const BaseType base(library, type);
    return dtype_of(library, base.id());
  }
  if (kind != Class::integer && kind != Class::floating_point)
    refuse(expected("dtype", "integers, booleans or floating-point numbers",
                    "another class of types, such as strings, compounds or complex numbers"));
  const size_t size = library.get_size(type);
  if (library.get_precision(type) != 8 * size) refuse(expected("dtype", "one without padding", "one with padding"));
  if (size > 1 && library.get_order(type) != Order::little_endian)
    refuse(expected("dtype", "little-endian numbers", "another byte order"));
  return kind == Class::integer ? integer_dtype(library, type) : float_dtype(library, type);
}

Chunk chunk_of(const Library& library, Id properties, Id type) {
  Size sizes[max_rank];
  const int rank = library.get_chunk(properties, max_rank, sizes);
  check_call(rank > 0, "H5Pget_chunk");
  return {dtype_of(library, type), {sizes, sizes + rank}};
}

arrcomp_layout layout_of(const Chunk& chunk) {
  return {static_cast<arrcomp_dtype>(chunk.dtype), static_cast<int>(chunk.sizes.size()), chunk.sizes.data()};
}

const char* configuration_of(const FilterValues& values) {
  return values.configuration.empty() ? nullptr : values.configuration.c_str();
}

// Adds data type and sizes of the dataset's chunks, and checks that its codec takes them: HDF5 calls it once, when a
// dataset is made, also with the numbers of another dataset.
void prepare(const Library& library, Id properties, Id type) {
  unsigned given[max_values], flags = 0;
  size_t count = max_values;
  const int status = library.get_filter(properties, filter_id, &flags, &count, given, 0, nullptr, nullptr);
  check_call(status >= 0, "H5Pget_filter_by_id2");
  if (count > max_values) refuse(expected("cd_values", "at most 256 numbers", count));
  FilterValues values = FilterValues::read({given, count});
  values.chunk = chunk_of(library, properties, type);
  uint64_t bound;
  const arrcomp_layout layout = layout_of(values.chunk);
  check(arrcomp_compress_bound(&bound, &layout, configuration_of(values)));
  const std::vector<unsigned> written = values.written();
  if (written.size() > max_values) refuse(expected("configuration", "a shorter one", values.configuration));
  check_call(library.modify_filter(properties, filter_id, flags, written.size(), written.data()) >= 0,
             "H5Pmodify_filter");
}

// A chunk becomes a stream, whose length is returned.
uint64_t compress(const Library& library, const FilterValues& values, void** buffer, size_t* buffer_size) {
  const arrcomp_layout layout = layout_of(values.chunk);
  uint64_t bound, bytes;
  check(arrcomp_compress_bound(&bound, &layout, configuration_of(values)));
  Memory stream(library, bound);
  check(arrcomp_compress(stream.get(), bound, &bytes, *buffer, &layout, configuration_of(values), values.seed,
                         all_cores));
  stream.replace(buffer);
  *buffer_size = bound;
  return bytes;
}

void check_is_of(const Chunk& chunk, const arrcomp_info& info) {
  const bool same_rank = info.dimensions == static_cast<int>(chunk.sizes.size());
  if (info.dtype != chunk.dtype || !same_rank || !std::equal(chunk.sizes.begin(), chunk.sizes.end(), info.shape))
    refuse(expected("chunk", "a stream of the dataset's data type and of its chunks' shape", "another one"));
}

uint64_t decompress(const Library& library, const FilterValues& values, size_t nbytes, void** buffer,
                    size_t* buffer_size) {
  arrcomp_info info;
  check(arrcomp_read_info(&info, *buffer, nbytes));
  check_is_of(values.chunk, info);
  Memory array(library, info.array_bytes);
  check(arrcomp_decompress(array.get(), info.array_bytes, *buffer, nbytes, all_cores));
  array.replace(buffer);
  *buffer_size = info.array_bytes;
  return info.array_bytes;
}

// HDF5 hands chunks to its filters whole.
void check_chunk_bytes(const FilterValues& values, size_t nbytes) {
  if (values.chunk.dtype == 0) refuse(expected("cd_values", "those of a dataset", "those of none"));
  const arrcomp_layout layout = layout_of(values.chunk);
  uint64_t bytes;
  check(arrcomp_array_bytes(&bytes, &layout));
  if (bytes != nbytes)
    refuse(expected("chunk", std::to_string(bytes) + " bytes, as no filter before this one changes", nbytes));
}

int set_local(Id properties, Id type, Id) {
  const auto work = [&](const Library& library) { prepare(library, properties, type); };
  return reported(__builtin_return_address(0), "set_local", work) ? 0 : -1;
}

size_t filter(unsigned flags, size_t count, const unsigned* given, size_t nbytes, size_t* buffer_size, void** buffer) {
  uint64_t result = 0;
  const auto work = [&](const Library& library) {
    const FilterValues values = FilterValues::read({given, count});
    if ((flags & reverse) != 0) {
      result = decompress(library, values, nbytes, buffer, buffer_size);
    } else {
      check_chunk_bytes(values, nbytes);
      result = compress(library, values, buffer, buffer_size);
    }
  };
  return reported(__builtin_return_address(0), "filter", work) ? result : 0;
}

constexpr FilterClass filter_class{class_version, filter_id, 1,     1, "arrcomp: compression of arrays",
                                   nullptr,       set_local, filter};

}  // namespace
}  // namespace arrcomp::hdf5

extern "C" ARRCOMP_API int H5PLget_plugin_type() { return arrcomp::hdf5::filter_plugin; }
extern "C" ARRCOMP_API const void* H5PLget_plugin_info() { return &arrcomp::hdf5::filter_class; }
