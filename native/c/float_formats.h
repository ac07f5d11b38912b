// The number formats by name (FORMAT.md, section 5.3).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "stream/float_spec.h"

namespace arrcomp::c {

struct FloatFormat {
  std::string name;         // as streams have it
  FloatSpec spec;           // which saturates
  uint32_t block_size = 0;  // elements that share a scale of the format; 0 where it has none

  bool has_rule() const { return block_size == 32; }  // for its scales, which are powers of two
  bool has_nan() const { return spec.nan_code() != 0; }
};

// The format of a name or an alias; none where there is no such format.
std::optional<FloatFormat> find_float_format(std::string_view name);

}  // namespace arrcomp::c
