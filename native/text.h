// Text of errors, all of one form: "<name>: expected X, got Y", and of lists.
#pragma once
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace arrcomp {

inline std::string expected(std::string_view name, std::string_view what, std::string_view got) {
  std::string message(name);
  message.append(": expected ").append(what).append(", got ").append(got);
  return message;
}
inline std::string expected(std::string_view name, std::string_view what, uint64_t got) {
  return expected(name, what, std::to_string(got));
}

// What write(item) gives of each item, with `between` between them.
template <class Items, class Write>
std::string joined(const Items& items, std::string_view between, const Write& write) {
  std::string text;
  for (const auto& item : items) {
    if (&item != &*std::begin(items)) text += between;
    text += write(item);
  }
  return text;
}

// In brackets and with commas.
template <class Items, class Write>
std::string list_of(const Items& items, const Write& write, char open = '[', char close = ']') {
  std::string text(1, open);
  text += joined(items, ",", write);
  return text += close;
}

}  // namespace arrcomp
