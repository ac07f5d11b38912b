// Messages of Python's errors.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "backend.h"
#include "text.h"

namespace arrcomp {

constexpr int64_t max_elements = int64_t{1} << 60;  // one more than there may be

inline std::string unexpected_dtype(int64_t dtype_id) {
  return expected("dtype_id", "1 to 28", std::to_string(dtype_id));
}
inline std::string unexpected_float(int64_t dtype_id) {
  return expected("dtype_id", "the id of float16, bfloat16, float32 or float64", std::to_string(dtype_id));
}
inline std::string unexpected_count(const char* name, int64_t count) {
  return expected(name, "0 to 2^60 - 1", std::to_string(count));
}

// Reads a codec that takes elements of this type. The message where there is none, else an empty one.
std::string read_codec(int64_t codec_id, std::span<const double> parameters, const Element& element, Codec& codec);

// What a WrongReference says, among so many arrays.
std::string wrong_reference(const WrongReference& wrong, size_t arrays);

// The same of the steps that stand for a derivative, and of an activation function.
std::string read_steps(std::span<const double> numbers, Steps& steps);
std::string read_activation(std::string_view function, std::span<const double> parameters, Activation& activation);

}  // namespace arrcomp
