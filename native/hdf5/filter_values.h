// The numbers that HDF5 keeps of the filter for a dataset, its "cd_values":
//
//   1                        the version of this layout
//   seed                     two numbers, the lower 32 bits first
//   n                        bytes of the configuration, 0 for lossless
//   the configuration        as arrcomp_compress takes it, 4 bytes a number, the first the lowest; zeros behind the last
//   dtype, rank, sizes ...   of a chunk, which HDF5's call of set_local adds
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace arrcomp::hdf5 {

struct Chunk {
  int dtype;
  std::vector<uint64_t> sizes;
};

struct FilterValues {
  uint64_t seed = 0;
  std::string configuration;
  Chunk chunk;  // of dtype 0 before set_local

  // Throws std::invalid_argument where the numbers are no such list. No numbers at all mean lossless.
  static FilterValues read(std::span<const unsigned> values);

  std::vector<unsigned> written() const;
};

}  // namespace arrcomp::hdf5
