#include "c/float_formats.h"

namespace arrcomp::c {
namespace {

struct Row {
  const char* name;
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
  uint32_t block_size;
};

constexpr Row rows[] = {
    {"fp8_e4m3", 4, 3, 7, Specials::one_nan, 0},
    {"fp8_e5m2", 5, 2, 15, Specials::ieee, 0},
    {"fp8_e4m3fnuz", 4, 3, 8, Specials::unsigned_zero, 0},
    {"fp8_e5m2fnuz", 5, 2, 16, Specials::unsigned_zero, 0},
    {"fp8_e4m3b11fnuz", 4, 3, 11, Specials::unsigned_zero, 0},
    {"fp6_e3m2", 3, 2, 3, Specials::none, 0},
    {"fp6_e2m3", 2, 3, 1, Specials::none, 0},
    {"fp4_e2m1", 2, 1, 1, Specials::none, 0},
    {"fp16", 5, 10, 15, Specials::ieee, 0},
    {"bf16", 8, 7, 127, Specials::ieee, 0},
    {"fp32", 8, 23, 127, Specials::ieee, 0},
    {"mxfp8_e4m3", 4, 3, 7, Specials::one_nan, 32},
    {"mxfp8_e5m2", 5, 2, 15, Specials::ieee, 32},
    {"mxfp6_e3m2", 3, 2, 3, Specials::none, 32},
    {"mxfp6_e2m3", 2, 3, 1, Specials::none, 32},
    {"mxfp4", 2, 1, 1, Specials::none, 32},
    {"mxint8", 1, 6, 1, Specials::integer, 32},
    {"nvfp4", 2, 1, 1, Specials::none, 16},
};

constexpr const char* aliases[][2] = {
    {"fp8", "fp8_e4m3"},     {"fp4", "fp4_e2m1"},     {"float16", "fp16"},  {"bfloat16", "bf16"}, {"float32", "fp32"},
    {"mxfp8", "mxfp8_e4m3"}, {"mxfp6", "mxfp6_e2m3"}, {"e5m2", "fp8_e5m2"}, {"e5m10", "fp16"},    {"e8m7", "bf16"},
};

// The digits behind `letter` as a number below 100 without leading zeros, which are then taken off; 0 where there is none.
int take_number(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return 0;
  text.remove_prefix(1);
  int number = 0;
  while (number < 10 && !text.empty() && text[0] >= (number == 0 ? '1' : '0') && text[0] <= '9') {
    number = 10 * number + (text[0] - '0');
    text.remove_prefix(1);
  }
  return number;
}

std::optional<FloatFormat> find_ieee_format(std::string_view name) {
  std::string_view rest = name;
  const int exponent_bits = take_number(rest, 'e'), mantissa_bits = take_number(rest, 'm');
  if (!rest.empty() || exponent_bits < 2 || exponent_bits > 8 || mantissa_bits < 1 ||
      exponent_bits + mantissa_bits > 15)
    return std::nullopt;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  return FloatFormat{std::string(name), {exponent_bits, mantissa_bits, bias, Specials::ieee, true}};
}

}  // namespace

std::optional<FloatFormat> find_float_format(std::string_view name) {
  for (const auto& [alias, meant] : aliases)
    if (name == alias) name = meant;
  for (const Row& row : rows)
    if (name == row.name)
      return FloatFormat{
          row.name, {row.exponent_bits, row.mantissa_bits, row.bias, row.specials, true}, row.block_size};
  return find_ieee_format(name);
}

}  // namespace arrcomp::c
