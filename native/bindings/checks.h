// Checks that all functions of the module share: they raise Python's errors.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "backend.h"

namespace arrcomp {

// One of arrcomp.errors.
[[noreturn]] void raise_ours(const char* type, const std::string& message);

const Element& element_of(int dtype_id);
uint64_t checked_count(int64_t elements);
void check_cuda(cuda::Status status);

template <class T>
T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// Adds the functions of activations.cpp.
void add_activations(nanobind::module_& m);

}  // namespace arrcomp
