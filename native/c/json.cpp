#include "c/json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>

namespace arrcomp::c::json {
namespace {

constexpr size_t max_shown = 60;  // characters of a value in an error

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  } else {  // half of a surrogate pair stays one: no key and no value has such characters
    text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
             static_cast<char>(0x80 | (code & 0x3f))};
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Object document() {
    Object object;
    skip_space();
    take('{', "an object");
    const auto member = [&] {
      std::string key = string();
      skip_space();
      take(':', "':'");
      object[std::move(key)] = value(true);
    };
    elements('}', member);
    skip_space();
    if (at_ < text_.size()) refuse("nothing behind the object");
    return object;
  }

 private:
  // What stands between commas, up to `end`.
  template <class Element>
  void elements(char end, const Element& element) {
    skip_space();
    if (next_is(end)) return;
    do {
      skip_space();
      element();
      skip_space();
    } while (next_is(','));
    take(end, end == '}' ? "',' or '}'" : "',' or ']'");
  }

  Value value(bool may_be_list) {
    skip_space();
    Value value;
    const size_t start = at_;
    if (peek() == '"') {
      value.kind = Value::Kind::string;
      value.string = string();
    } else if (peek() == '-' || is_digit(peek())) {
      read_number(value);
    } else if (may_be_list && next_is('[')) {
      value.kind = Value::Kind::list;
      elements(']', [&] { value.list.push_back(this->value(false)); });
    } else {
      read_word(value);
    }
    value.source = text_.substr(start, at_ - start);
    return value;
  }

  void read_word(Value& value) {
    for (const std::string_view word : {"null", "true", "false"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      value.kind = word == "null" ? Value::Kind::null : Value::Kind::boolean;
      value.is_true = word == "true";
      return;
    }
    refuse("a number, a string, true, false, null or a list of these");
  }

  void read_number(Value& value) {
    const size_t start = at_;
    next_is('-');
    if (!next_is('0')) digits();
    value.is_integer = true;
    if (next_is('.')) {
      value.is_integer = false;
      digits();
    }
    if (next_is('e') || next_is('E')) {
      value.is_integer = false;
      if (!next_is('-')) next_is('+');
      digits();
    }
    value.kind = Value::Kind::number;
    value.number = number_of(text_.substr(start, at_ - start));
    if (value.is_integer) value.number += 0.0;  // integers have one zero
  }

  void digits() {
    if (!is_digit(peek())) refuse("a digit");
    while (is_digit(peek())) ++at_;
  }

  std::string string() {
    take('"', "a string");
    std::string string;
    while (peek() != '"') {
      if (static_cast<unsigned char>(peek()) < 0x20) refuse("'\"'");  // 0: the text's end
      const char c = text_[at_++];
      if (c == '\\') {
        append_escaped(string);
      } else {
        string += c;
      }
    }
    ++at_;
    return string;
  }

  void append_escaped(std::string& string) {
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    if (next_is('u')) return append_utf8(string, hexadecimal());
    const size_t found = names.find(peek());
    if (found == names.npos || at_ == text_.size()) refuse("an escaped character");
    string += characters[found];
    ++at_;
  }

  unsigned hexadecimal() {
    unsigned code = 0;
    const char* const first = text_.data() + at_;
    const bool fits = text_.size() - at_ >= 4;
    if (!fits || std::from_chars(first, first + 4, code, 16).ptr != first + 4) refuse("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool next_is(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void take(char c, const char* what) {
    if (!next_is(c)) refuse(what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw std::invalid_argument(std::string(what) + " at byte " + std::to_string(at_));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string Value::shown() const {
  if (source.size() <= max_shown) return std::string(source);
  return std::string(source.substr(0, max_shown - 3)) + "...";
}

// Streams have a locale of their own; strtod has the process'.
double number_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  double number = 0;
  stream >> number;
  const bool is_too_large = stream.fail() && std::abs(number) > 1;  // some libraries fail at subnormal numbers too
  return is_too_large ? std::copysign(std::numeric_limits<double>::infinity(), number) : number;
}

Object parse(std::string_view text) { return Parser(text).document(); }

std::string written(double number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::scientific);
  std::string text(digits, end);
  const size_t mark = text.find('e');
  const int exponent = std::stoi(text.substr(mark + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed);
  text.assign(digits, fixed.ptr);
  return text.find('.') == text.npos ? text + ".0" : text;
}

std::string written(std::string_view string) {
  std::string text = "\"";
  return text.append(string).append("\"");
}

}  // namespace arrcomp::c::json
