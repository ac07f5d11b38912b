// Reads the parameters of a configuration by their keys, checks them and writes what streams have of them.
#pragma once
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "c/json.h"

namespace arrcomp::c {

// Every function takes a key with what is valid for it, and throws Failure where the value is something else. With a
// default, `otherwise`, the key may be missing, but not null; without one it may be both, and nothing is returned. What
// is returned becomes part of the text.
class Parameters {
 public:
  using Choices = std::initializer_list<std::string_view>;

  Parameters(const json::Object& object, std::string_view codec);

  uint64_t integer(std::string_view key, uint64_t min, uint64_t max, uint64_t otherwise);
  std::optional<uint64_t> integer(std::string_view key, uint64_t min, uint64_t max);

  // Finite, and for `positive_number` above 0.
  std::optional<double> number(std::string_view key);
  std::optional<double> positive_number(std::string_view key, const char* what = "a finite number above 0");
  double number_between(std::string_view key, double min, double max, double otherwise);

  // The index of a choice.
  int choice(std::string_view key, Choices choices, int otherwise);
  std::optional<int> choice(std::string_view key, Choices choices);

  bool flag(std::string_view key, bool otherwise);

  // What only the caller can check, of a key that is needed: it writes the text.
  std::string string(std::string_view key, std::string_view what);
  std::vector<double> numbers(std::string_view key, std::string_view what);
  std::vector<uint64_t> integers(std::string_view key, uint64_t min, uint64_t max);

  bool has(std::string_view key) const { return object_.contains(key); }
  bool has_value(std::string_view key) { return find(key, true) != nullptr; }  // that is not null

  // Fails where the key has a value; `condition` is what it goes with, such as "with scaling 'tensor'".
  void expect_none(std::string_view key, std::string_view condition);

  // Fails with the value of a key as what was given.
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;

  void write(std::string_view key, std::string text) { written_[std::string(key)] = std::move(text); }
  void leave_out(std::string_view key) { written_.erase(std::string(key)); }

  // The text; fails where there are keys that nobody asked for.
  std::string finish();

 private:
  // The value of a key; null where there is none or, if it `may_be_null`, JSON's null.
  const json::Value* find(std::string_view key, bool may_be_null);
  uint64_t checked_integer(std::string_view key, const json::Value& value, uint64_t min, uint64_t max) const;
  double checked_number(std::string_view key, const json::Value& value, std::string_view what) const;
  int checked_choice(std::string_view key, const json::Value& value, Choices choices) const;
  const std::vector<json::Value>& checked_list(std::string_view key, std::string_view what);

  const json::Object& object_;
  std::string_view codec_;
  std::map<std::string, std::string> written_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace arrcomp::c
