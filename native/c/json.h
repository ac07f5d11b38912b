// The JSON of configurations: an object of numbers, strings, true, false, null and lists of these. Nested objects and
// lists are refused: no key has such values.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace arrcomp::c::json {

struct Value {
  enum class Kind { null, boolean, number, string, list };

  Kind kind = Kind::null;
  bool is_true = false;
  bool is_integer = false;  // a number without fraction and exponent
  double number = 0;        // infinite where the number is too large
  std::string string;
  std::vector<Value> list;
  std::string_view source;  // the text that it was read from

  // The text as errors show it: without its end where it is long.
  std::string shown() const;
};

// Of a key that occurs twice the last value counts.
using Object = std::map<std::string, Value, std::less<>>;

// Throws std::invalid_argument, which says what was expected. The values view the text.
Object parse(std::string_view text);

// A number of JSON's grammar, whatever the process' locale is; infinite where it is too large.
double number_of(std::string_view text);

// As Python writes them: the shortest text that is the same float64, with a fraction or an exponent; a string without
// characters that need an escape.
std::string written(double number);
std::string written(std::string_view string);

}  // namespace arrcomp::c::json
