#include "c/parameters.h"

#include <cmath>

#include "c/failure.h"

namespace arrcomp::c {
namespace {

using Kind = json::Value::Kind;

std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

std::string range_of(uint64_t min, uint64_t max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

Parameters::Parameters(const json::Object& object, std::string_view codec) : object_(object), codec_(codec) {
  known_.insert("codec");
  write("codec", json::written(codec));
}

uint64_t Parameters::integer(std::string_view key, uint64_t min, uint64_t max, uint64_t otherwise) {
  const json::Value* const value = find(key, false);
  const uint64_t found = value == nullptr ? otherwise : checked_integer(key, *value, min, max);
  write(key, std::to_string(found));
  return found;
}

std::optional<uint64_t> Parameters::integer(std::string_view key, uint64_t min, uint64_t max) {
  const json::Value* const value = find(key, true);
  if (value == nullptr) return std::nullopt;
  return integer(key, min, max, 0);
}

std::optional<double> Parameters::number(std::string_view key) {
  const json::Value* const value = find(key, true);
  if (value == nullptr) return std::nullopt;
  const double found = checked_number(key, *value, "a finite number");
  write(key, json::written(found));
  return found;
}

std::optional<double> Parameters::positive_number(std::string_view key, const char* what) {
  const json::Value* const value = find(key, true);
  if (value == nullptr) return std::nullopt;
  const double found = checked_number(key, *value, what);
  if (!(found > 0)) refuse(key, what);
  write(key, json::written(found));
  return found;
}

double Parameters::number_between(std::string_view key, double min, double max, double otherwise) {
  const json::Value* const value = find(key, false);
  const std::string what = "a number from " + json::written(min) + " to " + json::written(max);
  const double found = value == nullptr ? otherwise : checked_number(key, *value, what);
  if (!(found >= min && found <= max)) refuse(key, what);
  write(key, json::written(found));
  return found;
}

int Parameters::choice(std::string_view key, Choices choices, int otherwise) {
  const json::Value* const value = find(key, false);
  const int found = value == nullptr ? otherwise : checked_choice(key, *value, choices);
  write(key, json::written(choices.begin()[found]));
  return found;
}

std::optional<int> Parameters::choice(std::string_view key, Choices choices) {
  const json::Value* const value = find(key, true);
  if (value == nullptr) return std::nullopt;
  return choice(key, choices, 0);
}

bool Parameters::flag(std::string_view key, bool otherwise) {
  const json::Value* const value = find(key, false);
  if (value != nullptr && value->kind != Kind::boolean) refuse(key, "true or false");
  const bool found = value == nullptr ? otherwise : value->is_true;
  write(key, found ? "true" : "false");
  return found;
}

std::string Parameters::string(std::string_view key, std::string_view what) {
  const json::Value* const value = find(key, false);
  if (value == nullptr || value->kind != Kind::string) refuse(key, what);
  return value->string;
}

std::vector<double> Parameters::numbers(std::string_view key, std::string_view what) {
  std::vector<double> numbers;
  for (const json::Value& value : checked_list(key, what)) numbers.push_back(checked_number(key, value, what));
  return numbers;
}

std::vector<uint64_t> Parameters::integers(std::string_view key, uint64_t min, uint64_t max) {
  const std::string what = "a list of one or more integers from " + std::to_string(min) + " to " + std::to_string(max);
  const auto& list = checked_list(key, what);
  if (list.empty()) refuse(key, what);
  std::vector<uint64_t> integers;
  for (const json::Value& value : list) integers.push_back(checked_integer(key, value, min, max));
  return integers;
}

void Parameters::expect_none(std::string_view key, std::string_view condition) {
  if (find(key, true) != nullptr) refuse(key, "none " + std::string(condition));
}

void Parameters::refuse(std::string_view key, std::string_view what) const {
  const auto found = object_.find(key);
  fail(ARRCOMP_INVALID_ARGUMENT, expected(key, what, found == object_.end() ? "none" : found->second.shown()));
}

std::string Parameters::finish() {
  for (const auto& [key, value] : object_) {
    if (known_.contains(key)) continue;
    const std::string names = joined(known_, ", ", [](const std::string& name) { return name; });
    fail(ARRCOMP_INVALID_ARGUMENT, expected("configuration", std::string(codec_) + "'s keys: " + names, quoted(key)));
  }
  const auto member = [](const auto& entry) { return json::written(entry.first) + ":" + entry.second; };
  return list_of(written_, member, '{', '}');
}

const json::Value* Parameters::find(std::string_view key, bool may_be_null) {
  known_.emplace(key);
  const auto found = object_.find(key);
  if (found == object_.end() || (may_be_null && found->second.kind == Kind::null)) return nullptr;
  return &found->second;
}

uint64_t Parameters::checked_integer(std::string_view key, const json::Value& value, uint64_t min, uint64_t max) const {
  const bool is_integer = value.kind == Kind::number && value.is_integer;
  if (!is_integer || value.number < static_cast<double>(min) || value.number > static_cast<double>(max))
    refuse(key, range_of(min, max));
  return static_cast<uint64_t>(value.number);
}

double Parameters::checked_number(std::string_view key, const json::Value& value, std::string_view what) const {
  if (value.kind != Kind::number || !std::isfinite(value.number)) refuse(key, what);
  return value.number;
}

int Parameters::checked_choice(std::string_view key, const json::Value& value, Choices choices) const {
  int index = 0;
  for (const std::string_view choice : choices) {
    if (value.kind == Kind::string && value.string == choice) return index;
    ++index;
  }
  refuse(key, joined(choices, " or ", quoted));
}

const std::vector<json::Value>& Parameters::checked_list(std::string_view key, std::string_view what) {
  const json::Value* const value = find(key, false);
  if (value == nullptr || value->kind != Kind::list) refuse(key, what);
  return value->list;
}

}  // namespace arrcomp::c
