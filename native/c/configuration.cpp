#include "c/configuration.h"

#include <cmath>
#include <set>
#include <stdexcept>

#include "c/codebook_tables.h"
#include "c/dtypes.h"
#include "c/failure.h"
#include "c/float_formats.h"
#include "c/parameters.h"

namespace arrcomp::c {
namespace {

constexpr uint64_t max_size = uint64_t{1} << 40;
constexpr uint64_t min_bucket_size = 16, min_block_size = 32;

template <class Enum>
Enum numbered(int number) {
  return static_cast<Enum>(number);
}

bool read_speed(Parameters& given) { return given.choice("speed", {"default", "fast"}, 0) == 1; }

// As the core numbers them: 0 is none.
Predictor read_predictor(Parameters& given) {
  const std::optional<int> chosen =
      given.choice("predictor", {"auto", "interpolation", "lorenzo", "columns", "reference"});
  return numbered<Predictor>(chosen ? 1 + *chosen : 0);
}

bool read_is_stochastic(Parameters& given) { return given.choice("rounding", {"nearest", "stochastic"}, 0) == 1; }

LosslessSettings read(Parameters& given, LosslessSettings*) {
  return {.fast = read_speed(given), .predictor = read_predictor(given)};
}

void read_bound(Parameters& given, ErrorBoundedSettings& settings) {
  constexpr std::string_view names[] = {"abs", "rel", "pointwise"};
  constexpr const char* below_1 = "a number above 0 and below 1";
  int found = 0;
  for (int i = 0; i < 3; ++i) {
    const bool is_pointwise = i == 2;
    const auto bound = is_pointwise ? given.positive_number(names[i], below_1) : given.positive_number(names[i]);
    if (!bound) continue;
    if (is_pointwise && *bound >= 1) given.refuse(names[i], below_1);
    ++found;
    settings.kind = numbered<BoundKind>(1 + i);
    settings.bound = *bound;
  }
  if (found != 1)
    fail(ARRCOMP_INVALID_ARGUMENT, expected("bound", "exactly one of abs, rel and pointwise", std::to_string(found)));
}

ErrorBoundedSettings read(Parameters& given, ErrorBoundedSettings*) {
  ErrorBoundedSettings settings{};
  read_bound(given, settings);
  settings.fast = read_speed(given);
  const std::optional<double> fill = given.number("fill_value");
  settings.has_fill = fill.has_value();
  settings.fill = fill.value_or(0);
  settings.predictor = read_predictor(given);
  return settings;
}

QsgdSettings read(Parameters& given, QsgdSettings*) {
  QsgdSettings settings{};
  settings.bits = static_cast<int>(given.integer("bits", 1, 8, 4));
  settings.bucket_size = given.integer("bucket_size", min_bucket_size, max_size, 512);
  settings.norm = numbered<Norm>(given.choice("norm", {"minmax", "l2", "linf"}, 0));
  settings.stochastic = read_is_stochastic(given);
  settings.skip_incomplete = given.flag("skip_incomplete", false);
  settings.entropy = given.choice("coding", {"packed", "entropy"}, 0) == 1;
  if (!settings.entropy) given.leave_out("coding");  // streams had no such key before there was a choice
  return settings;
}

void read_thresholds(Parameters& given, SmaqSettings& settings) {
  constexpr double min = 0x1p-10, max = 0x1p10;
  settings.main_threshold = given.number_between("main_threshold", min, max, 1.0);
  settings.outlier_threshold = given.number_between("outlier_threshold", min, max, 2.5);
  if (settings.outlier_threshold <= settings.main_threshold)
    given.refuse("outlier_threshold", "a number above main_threshold, " + json::written(settings.main_threshold));
}

void read_statistics(Parameters& given, SmaqSettings& settings) {
  settings.statistics = numbered<Statistics>(given.choice("statistics", {"exact", "sampled", "range", "given"}, 0));
  settings.std = 1;
  if (settings.statistics != Statistics::given) {
    for (const char* key : {"mean", "std"}) given.expect_none(key, "unless statistics is 'given'");
    return;
  }
  const auto mean = given.number("mean"), std = given.positive_number("std");
  if (!mean) given.refuse("mean", "a finite number, as statistics is 'given'");
  if (!std) given.refuse("std", "a finite number above 0, as statistics is 'given'");
  settings.mean = *mean;
  settings.std = *std;
}

// A block size of null means the whole array, unlike that of a missing key.
uint64_t read_block_size(Parameters& given) {
  constexpr const char* key = "block_size";
  if (given.has_value(key) || !given.has(key)) return given.integer(key, min_block_size, max_size, 1024);
  given.write(key, "null");
  return 0;
}

SmaqSettings read(Parameters& given, SmaqSettings*) {
  SmaqSettings settings{};
  settings.main_bits = static_cast<int>(given.integer("main_bits", 3, 8, 6));
  settings.outlier_bits = static_cast<int>(given.integer("outlier_bits", 3, 12, 8));
  if (settings.outlier_bits < settings.main_bits)
    given.refuse("outlier_bits", "main_bits, " + std::to_string(settings.main_bits) + ", to 12");
  read_thresholds(given, settings);
  settings.extends = given.choice("overflow", {"clamp", "extend"}, 1) == 1;
  read_statistics(given, settings);
  settings.num_samples = static_cast<uint32_t>(given.integer("num_samples", 2, 4096, 16));
  settings.block_size = read_block_size(given);
  settings.rounding = numbered<Rounding>(given.choice("rounding", {"nearest", "stochastic", "truncate"}, 1));
  settings.preserve_zeros = given.flag("preserve_zeros", true);
  settings.all_positive = given.flag("all_positive", false);
  settings.min_size = given.integer("min_size", 0, max_size, 8);
  return settings;
}

FloatFormat read_format(Parameters& given) {
  constexpr const char* what =
      "the name of a number format, or eXmY with X from 2 to 8, Y at least 1, X + Y at most 15";
  const std::optional<FloatFormat> format = find_float_format(given.string("format", what));
  if (!format) given.refuse("format", what);
  given.write("format", json::written(format->name));
  return *format;
}

// The scales of a format of blocks.
ScaleKind read_rule(Parameters& given, const FloatFormat& format) {
  if (format.has_rule()) {
    const int rule = given.has_value("scale_rule") ? *given.choice("scale_rule", {"floor", "ceil"}) : 0;
    given.write("scale_rule", json::written(rule == 0 ? "floor" : "ceil"));
    return rule == 0 ? ScaleKind::floor : ScaleKind::ceil;
  }
  given.expect_none("scale_rule", "unless the format's name begins with 'mx'");
  return format.block_size > 0 ? ScaleKind::two_level : ScaleKind::none;
}

// The scales of any other format.
void read_scaling(Parameters& given, const FloatFormat& format, FloatFormatSettings& settings) {
  const std::optional<int> scaling = given.choice("scaling", {"tensor", "bucket"});
  if (!scaling && !format.has_nan()) given.refuse("scaling", "'tensor' or 'bucket', as the format has no NaN");
  if (!scaling) return given.expect_none("bucket_size", "without scaling 'bucket'");
  settings.scale = ScaleKind::number;
  if (*scaling == 0) return given.expect_none("bucket_size", "with scaling 'tensor'");
  settings.bucket_size = given.integer("bucket_size", min_bucket_size, max_size).value_or(512);
  given.write("bucket_size", std::to_string(settings.bucket_size));
}

FloatFormatSettings read(Parameters& given, FloatFormatSettings*) {
  FloatFormatSettings settings{};
  const FloatFormat format = read_format(given);
  settings.spec = format.spec;
  settings.scale = read_rule(given, format);
  if (format.block_size > 0) {
    for (const char* key : {"scaling", "bucket_size"}) given.expect_none(key, "with a format that has blocks");
    settings.bucket_size = format.block_size;
  } else {
    read_scaling(given, format, settings);
  }
  settings.stochastic = read_is_stochastic(given);
  settings.spec.saturates = given.choice("overflow", {"saturate", "infinity"}, 0) == 0;
  if (settings.is_scaled() && !settings.spec.saturates) given.refuse("overflow", "'saturate', as there are scales");
  return settings;
}

S2fp8Settings read(Parameters& given, S2fp8Settings*) {
  return {.bucket_size = given.integer("bucket_size", min_bucket_size, max_size).value_or(0),
          .stochastic = read_is_stochastic(given)};
}

// Bit d: deltas may have d bits; those of 0 and 64 bits always.
uint64_t read_widths(Parameters& given) {
  constexpr const char* key = "delta_bits";
  if (!given.has_value(key)) return ~uint64_t{0};
  const std::vector<uint64_t> list = given.integers(key, 1, 64);
  const std::set<uint64_t> widths(list.begin(), list.end());
  given.write(key, list_of(widths, [](uint64_t width) { return std::to_string(width); }));
  uint64_t mask = 1;
  for (const uint64_t width : widths) mask |= uint64_t{1} << width % 64;
  return mask;
}

BaseDeltaSettings read(Parameters& given, BaseDeltaSettings*) {
  return {.bases = static_cast<int>(given.integer("bases", 1, 2, 1)),
          .widths = read_widths(given),
          .drop_bits = static_cast<int>(given.integer("drop_bits", 0, 52, 0)),
          .rounding = numbered<DropRounding>(given.choice("rounding", {"nearest", "stochastic", "truncate"}, 0))};
}

std::vector<double> read_list(Parameters& given, std::string_view key) {
  constexpr std::string_view what = "a list of numbers in the range of float32, or a table";
  std::vector<double> numbers = given.numbers(key, what);
  for (double& number : numbers)
    if (number = shortest(number); !std::isfinite(number)) given.refuse(key, what);
  return numbers;
}

CodebookTable read_table(Parameters& given) {
  if (given.has("table")) {
    const int number = given.choice("table", {table_names[0], table_names[1], table_names[2]}, 0);
    for (const char* key : {"borders", "levels"})
      if (given.has(key)) given.refuse(key, "none beside a table");
    return table_named(table_names[number]);
  }
  CodebookTable table{read_list(given, "borders"), read_list(given, "levels")};
  for (const std::string_view name : table_names) {
    if (table != table_named(name)) continue;
    given.write("table", json::written(name));
    return table;
  }
  const auto written = [](double number) { return json::written(number); };
  given.write("borders", list_of(table.borders, written));
  given.write("levels", list_of(table.levels, written));
  return table;
}

CodebookSettings read(Parameters& given, CodebookSettings*) {
  CodebookSettings settings{};
  const auto [borders, levels] = read_table(given);
  if (levels.size() < 2 || levels.size() > 256) given.refuse("levels", "2 to 256 numbers");
  if (borders.size() != levels.size() - 1) given.refuse("borders", "one number fewer than levels");
  if (!settings.set_tables(borders, levels)) given.refuse("borders", "ascending numbers (in float32)");
  const std::optional<int> scaling = given.choice("scaling", {"absmax", "tensor"});
  settings.scaling = numbered<Scaling>(scaling ? 1 + *scaling : 0);
  settings.bucket_size = given.integer("bucket_size", min_bucket_size, max_size, 64);
  return settings;
}

json::Object parsed(std::string_view text) {
  try {
    return json::parse(text);
  } catch (const std::invalid_argument& error) {
    fail(ARRCOMP_INVALID_ARGUMENT, expected("configuration", error.what(), "other text"));
  }
}

template <class Settings>
Configuration configuration_of(const json::Object& object, int id, const char* name) {
  Parameters given(object, name);
  Configuration configuration{id, {read(given, static_cast<Settings*>(nullptr))}, {}};
  configuration.text = given.finish();
  return configuration;
}

std::string list_of_names() {
#define ARRCOMP_NAME(id, name, Type, text) text,
  constexpr const char* names[] = {ARRCOMP_CODECS(ARRCOMP_NAME)};
#undef ARRCOMP_NAME
  return joined(names, ", ", [](const char* name) { return name; });
}

}  // namespace

Configuration read_configuration(std::string_view text) {
  const json::Object object = parsed(text);
  const auto codec = object.find("codec");
  if (codec == object.end()) fail(ARRCOMP_INVALID_ARGUMENT, expected("codec", list_of_names(), "none"));
  const json::Value& name = codec->second;
  const bool is_string = name.kind == json::Value::Kind::string;
#define ARRCOMP_READ(id, type_name, Type, codec_text) \
  if (is_string && name.string == codec_text) return configuration_of<Type##Settings>(object, id, codec_text);
  ARRCOMP_CODECS(ARRCOMP_READ)
#undef ARRCOMP_READ
  fail(is_string ? ARRCOMP_UNKNOWN_CODEC : ARRCOMP_INVALID_ARGUMENT, expected("codec", list_of_names(), name.shown()));
}

void check_takes(const Configuration& configuration, int dtype_id) {
  const AnySettings& settings = configuration.codec.settings;
  const bool any_parts = std::holds_alternative<LosslessSettings>(settings) || base_delta_of(configuration.codec);
  const bool has_parts = any_parts || parts_of(dtype_id) == 1;
  if (has_parts && takes(configuration.codec, elements[dtype_id])) return;
  fail(ARRCOMP_INVALID_ARGUMENT, expected("dtype", "one that " + configuration.text + " takes", dtype_names[dtype_id]));
}

const char* codec_name(int codec_id) {
  switch (codec_id) {
#define ARRCOMP_NAME(id, name, Type, text) \
  case id: return text;
    ARRCOMP_CODECS(ARRCOMP_NAME)
#undef ARRCOMP_NAME
  }
  return nullptr;
}

}  // namespace arrcomp::c
