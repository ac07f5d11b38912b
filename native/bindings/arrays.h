// Arrays that come from Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace arrcomp {

using Bytes = nanobind::ndarray<const uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using WritableBytes = nanobind::ndarray<uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// The bytes (a read-only NumPy array that keeps `x` alive), the data type's name and the shape of a DLPack producer in
// host memory.
nanobind::tuple import_dlpack(nanobind::handle x);

}  // namespace arrcomp
