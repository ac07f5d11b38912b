#include "hdf5/filter_values.h"

#include <stdexcept>

#include "text.h"

namespace arrcomp::hdf5 {
namespace {

constexpr unsigned layout_version = 1;

// The numbers one after the other.
class Reader {
 public:
  explicit Reader(std::span<const unsigned> values) : values_(values) {}

  bool is_at_end() const { return values_.empty(); }

  unsigned next() {
    if (values_.empty()) throw std::invalid_argument("cd_values: expected more numbers, got none");
    const unsigned value = values_.front();
    values_ = values_.subspan(1);
    return value;
  }

  std::string text(unsigned size) {
    if (size > 4 * values_.size()) throw std::invalid_argument("cd_values: expected a configuration, got a part of it");
    std::string text;
    for (unsigned word = 0, i = 0; i < size; ++i, word >>= 8) {
      if (i % 4 == 0) word = next();
      text += static_cast<char>(word & 0xff);
    }
    return text;
  }

 private:
  std::span<const unsigned> values_;
};

}  // namespace

FilterValues FilterValues::read(std::span<const unsigned> values) {
  FilterValues found;
  Reader reader(values);
  if (reader.is_at_end()) return found;
  const unsigned version = reader.next();
  if (version != layout_version) throw std::invalid_argument(expected("cd_values[0]", "1", version));
  found.seed = reader.next();
  found.seed |= uint64_t{reader.next()} << 32;
  found.configuration = reader.text(reader.next());
  if (reader.is_at_end()) return found;
  found.chunk.dtype = static_cast<int>(reader.next());
  for (unsigned rank = reader.next(); rank > 0; --rank) found.chunk.sizes.push_back(reader.next());
  return found;
}

std::vector<unsigned> FilterValues::written() const {
  const auto size = static_cast<unsigned>(configuration.size());
  std::vector<unsigned> values{layout_version, static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32), size};
  for (unsigned i = 0; i < size; ++i) {
    if (i % 4 == 0) values.push_back(0);
    values.back() |= unsigned{static_cast<unsigned char>(configuration[i])} << 8 * (i % 4);
  }
  values.push_back(static_cast<unsigned>(chunk.dtype));
  values.push_back(static_cast<unsigned>(chunk.sizes.size()));
  for (const uint64_t chunk_size : chunk.sizes) values.push_back(static_cast<unsigned>(chunk_size));
  return values;
}

}  // namespace arrcomp::hdf5
