// The bytes of a stream around its payload (FORMAT.md, section 1).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "c/arrcomp.h"
#include "c/configuration.h"

namespace arrcomp::c {

constexpr int max_dimensions = 64;
constexpr uint64_t checksum_bytes = 8;

// An array's data type and shape, checked.
struct Layout {
  int dtype_id;
  std::vector<uint64_t> shape;
  uint64_t count;  // elements

  // Throws Failure with this status where a stream may not have this shape, or there is no such data type.
  Layout(arrcomp_status status, int dtype_id, std::span<const uint64_t> shape);

  const Element& element() const { return elements[dtype_id]; }
  uint64_t nbytes() const { return count * (element().width / 8); }
};

// Bytes of a stream before its payload, a multiple of 8.
uint64_t header_bytes(const Layout& layout, const Configuration& configuration);

// Writes these bytes.
void write_header(uint8_t* stream, const Layout& layout, const Configuration& configuration, uint64_t payload_bytes);

// Writes the checksum behind so many bytes of a stream.
void write_checksum(uint8_t* stream, uint64_t bytes);

struct Stream {
  Layout layout;
  Configuration configuration;
  bool is_framed;
  std::span<const uint8_t> payload;  // or the frame around it
};

// Reads untrusted bytes: `Stream::payload` views them, and its length is one that the codec may have written for this
// layout. Without `check` the checksum is not checked. Throws Failure.
Stream read_stream(std::span<const uint8_t> bytes, bool check);

}  // namespace arrcomp::c
