// What a configuration asks for (FORMAT.md, sections 1.2 and 5): its check, its defaults, and its text in streams.
#pragma once
#include <string>
#include <string_view>

#include "stream/codec.h"

namespace arrcomp::c {

struct Configuration {
  int codec_id;
  Codec codec;
  std::string text;  // as streams have it: all keys that are not left out, sorted, without white space
};

// Throws Failure: with ARRCOMP_UNKNOWN_CODEC, or with ARRCOMP_INVALID_ARGUMENT.
Configuration read_configuration(std::string_view text);

// The name of a codec with this id; null where there is none.
const char* codec_name(int codec_id);

// Throws Failure unless the codec takes values of this data type.
void check_takes(const Configuration& configuration, int dtype_id);

}  // namespace arrcomp::c
