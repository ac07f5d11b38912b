// What the filter needs of HDF5, declared here: the same binary interface in all versions from 1.10 on. (From HDF5's
// reference manual: H5PLextern.h, and the pages of the H5E, H5P, H5PL, H5T and H5Z functions.)
//
// Functions are found at run time, in the library that called the plugin. Python's wheels of h5py and netCDF4 have an
// HDF5 each, under a name of its own: one that is linked would be a third one.
#pragma once
#include <cstddef>
#include <cstdint>

namespace arrcomp::hdf5 {

using Id = int64_t;               // hid_t
using Size = unsigned long long;  // hsize_t

enum class Class : int { integer = 0, floating_point = 1, enumeration = 8 };
enum class Order : int { little_endian = 0 };
enum class Sign : int { none = 0 };

constexpr int max_rank = 32;          // H5S_MAX_RANK
constexpr size_t max_values = 256;    // that H5Pget_filter_by_id2 returns of a filter
constexpr unsigned reverse = 0x0100;  // H5Z_FLAG_REVERSE
constexpr int class_version = 1;      // H5Z_CLASS_T_VERS
constexpr int filter_plugin = 0;      // H5PL_TYPE_FILTER

// H5Z_class2_t.
struct FilterClass {
  int version;
  int id;
  unsigned has_encoder, has_decoder;
  const char* name;
  int (*can_apply)(Id properties, Id type, Id space);
  int (*set_local)(Id properties, Id type, Id space);
  size_t (*filter)(unsigned flags, size_t count, const unsigned* values, size_t nbytes, size_t* buffer_size,
                   void** buffer);
};

// The functions of the library that this address is in.
class Library {
 public:
  explicit Library(const void* address);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Whether all of them are there.
  bool is_complete() const { return is_complete_; }

  // Puts a message on the stack of errors that HDF5 shows.
  void push_error(const char* function, unsigned line, const char* message) const;

  void* (*allocate)(size_t bytes, bool clear) = nullptr;
  int (*free)(void* memory) = nullptr;

  int (*get_filter)(Id properties, int filter, unsigned* flags, size_t* count, unsigned* values, size_t name_size,
                    char* name, unsigned* configuration) = nullptr;
  int (*modify_filter)(Id properties, int filter, unsigned flags, size_t count, const unsigned* values) = nullptr;
  int (*get_chunk)(Id properties, int max_rank, Size* sizes) = nullptr;

  Class (*get_class)(Id type) = nullptr;
  Id (*get_super)(Id type) = nullptr;
  int (*close_type)(Id type) = nullptr;
  size_t (*get_size)(Id type) = nullptr;
  size_t (*get_precision)(Id type) = nullptr;
  Order (*get_order)(Id type) = nullptr;
  Sign (*get_sign)(Id type) = nullptr;
  int (*get_fields)(Id type, size_t* sign, size_t* exponent, size_t* exponent_bits, size_t* mantissa,
                    size_t* mantissa_bits) = nullptr;
  size_t (*get_bias)(Id type) = nullptr;

 private:
  template <class Symbol>
  void find(const char* name, Symbol& symbol);

  void* handle_ = nullptr;
  bool is_complete_ = false;
  int (*push_)(Id stack, const char* file, const char* function, unsigned line, Id error_class, Id major, Id minor,
               const char* message, ...) = nullptr;
  const Id *error_class_ = nullptr, *filters_ = nullptr, *cannot_filter_ = nullptr;
};

}  // namespace arrcomp::hdf5
