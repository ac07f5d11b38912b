#include "hdf5/hdf5.h"

#include <dlfcn.h>

namespace arrcomp::hdf5 {

template <class Symbol>
void Library::find(const char* name, Symbol& symbol) {
  symbol = reinterpret_cast<Symbol>(dlsym(handle_, name));
  is_complete_ = is_complete_ && symbol != nullptr;
}

Library::Library(const void* address) {
  Dl_info library;
  if (dladdr(address, &library) == 0) return;
  handle_ = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle_ == nullptr) handle_ = dlopen(nullptr, RTLD_LAZY);  // the program itself, which has no such name
  is_complete_ = handle_ != nullptr;
  if (!is_complete_) return;
  find("H5allocate_memory", allocate);
  find("H5free_memory", free);
  find("H5Pget_filter_by_id2", get_filter);
  find("H5Pmodify_filter", modify_filter);
  find("H5Pget_chunk", get_chunk);
  find("H5Tget_class", get_class);
  find("H5Tget_super", get_super);
  find("H5Tclose", close_type);
  find("H5Tget_size", get_size);
  find("H5Tget_precision", get_precision);
  find("H5Tget_order", get_order);
  find("H5Tget_sign", get_sign);
  find("H5Tget_fields", get_fields);
  find("H5Tget_ebias", get_bias);
  find("H5Epush2", push_);
  find("H5E_ERR_CLS_g", error_class_);
  find("H5E_PLINE_g", filters_);
  find("H5E_CANTFILTER_g", cannot_filter_);
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

void Library::push_error(const char* function, unsigned line, const char* message) const {
  constexpr Id default_stack = 0;
  push_(default_stack, "arrcomp", function, line, *error_class_, *filters_, *cannot_filter_, "%s", message);
}

}  // namespace arrcomp::hdf5
