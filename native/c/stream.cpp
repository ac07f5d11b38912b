#include "c/stream.h"

#include <algorithm>
#include <cstring>

#include "c/dtypes.h"
#include "c/failure.h"
#include "c/xxh3.h"

namespace arrcomp::c {
namespace {

constexpr uint8_t major_version = 0, minor_version = 1;
constexpr uint64_t max_elements = uint64_t{1} << 60, max_span = uint64_t{1} << 63;  // one more than there may be
constexpr uint64_t max_configuration = 0xffff;
constexpr uint64_t max_frame_growth = 1 << 15;

// The first bytes of a stream.
struct Fixed {
  char magic[4] = {'A', 'R', 'R', 'C'};
  uint8_t major = major_version, minor = minor_version;
  uint8_t codec_id = 0, dtype_id = 0, dimensions = 0, frame = 0;
  uint16_t configuration_bytes = 0;
  uint32_t reserved = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Fixed) == 24);

enum Frame : uint8_t { no_frame = 0, zstandard = 1 };

[[noreturn]] void corrupt(std::string_view name, std::string_view what, std::string_view got) {
  fail(ARRCOMP_CORRUPT, expected(name, what, got));
}
[[noreturn]] void corrupt(std::string_view name, std::string_view what, uint64_t got) {
  corrupt(name, what, std::to_string(got));
}

uint64_t number_at(const uint8_t* bytes) {
  uint64_t number;
  memcpy(&number, bytes, sizeof number);
  return number;
}

// The product of sizes and a factor; `limit` where it is as large or larger.
uint64_t limited_product(std::span<const uint64_t> sizes, uint64_t factor, uint64_t limit) {
  uint64_t product = factor;
  for (const uint64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product) || product >= limit) return limit;
  return product;
}

bool is_empty(std::span<const uint64_t> shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// A size of 0 does not hide others that are too large.
bool is_too_large(int dtype_id, std::span<const uint64_t> shape) {
  const uint64_t parts = parts_of(dtype_id), item = elements[dtype_id].width / 8 * parts;
  std::vector<uint64_t> sizes(shape.begin(), shape.end());
  std::replace(sizes.begin(), sizes.end(), uint64_t{0}, uint64_t{1});
  if (limited_product(sizes, item, max_span) == max_span) return true;
  return !is_empty(shape) && limited_product(shape, parts, max_elements) == max_elements;
}

// Reads a stream's fields in order, and knows how many bytes are behind them.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Fixed fixed() {
    const Fixed right;
    const size_t known = std::min(bytes_.size(), sizeof right.magic);
    if (!std::equal(right.magic, right.magic + known, bytes_.begin()))
      corrupt("magic", "'ARRC'", "other bytes, which are no arrcomp stream");
    Fixed fixed;
    memcpy(&fixed, take(sizeof fixed, "header").data(), sizeof fixed);
    if (fixed.major <= major_version) return fixed;
    const std::string got = std::to_string(fixed.major) + "." + std::to_string(fixed.minor);
    fail(ARRCOMP_NEWER_FORMAT, expected("format version", "at most 0.1", got + "; a newer arrcomp reads it"));
  }

  std::vector<uint64_t> shape(int dimensions) {
    if (dimensions > max_dimensions) corrupt("number of dimensions", "at most 64", uint64_t(dimensions));
    std::vector<uint64_t> shape(static_cast<size_t>(dimensions));
    const std::span<const uint8_t> sizes = take(8 * shape.size(), "shape");
    if (!shape.empty()) memcpy(shape.data(), sizes.data(), sizes.size());
    return shape;
  }

  std::span<const uint8_t> configuration(uint64_t size) {
    const std::span<const uint8_t> text = take(size, "configuration");
    padding_ = take(-at_ % 8, "padding");
    return text;
  }

  // The payload or its frame, which must end where the checksum begins.
  std::span<const uint8_t> body(const Fixed& fixed) {
    uint64_t size = fixed.payload_bytes;
    if (fixed.frame == zstandard) size = number_at(take(8, "frame length").data());
    if (fixed.frame > zstandard) corrupt("frame", "0 (none) or 1 (Zstandard)", uint64_t(fixed.frame));
    const std::span<const uint8_t> body = take(size, "payload");
    if (at_ + checksum_bytes < bytes_.size())
      corrupt("stream", std::to_string(at_ + checksum_bytes) + " bytes", bytes_.size());
    return body;
  }

  void check_padding() const {
    if (std::any_of(padding_.begin(), padding_.end(), [](uint8_t byte) { return byte != 0; }))
      corrupt("padding", "zeros after the configuration", "other bytes");
  }

 private:
  // The next bytes, behind which a checksum has room.
  std::span<const uint8_t> take(uint64_t size, const char* field) {
    const uint64_t left = bytes_.size() - at_;
    if (left < checksum_bytes || left - checksum_bytes < size)
      fail(ARRCOMP_CORRUPT,
           "stream is truncated: got " + std::to_string(bytes_.size()) + " bytes, too few for its " + field);
    const std::span<const uint8_t> taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  std::span<const uint8_t> bytes_, padding_;
  uint64_t at_ = 0;
};

void check_checksum(std::span<const uint8_t> bytes) {
  const uint64_t end = bytes.size() - checksum_bytes;
  if (xxh3(bytes.first(end)) != number_at(bytes.data() + end))
    corrupt("checksum", "that of these bytes", "another one; the stream was altered");
}

// What a stream's configuration says, of the codec that its header names.
Configuration configuration_of(const Fixed& fixed, std::span<const uint8_t> text, int dtype_id) {
  const char* const name = codec_name(fixed.codec_id);
  if (name == nullptr) fail(ARRCOMP_UNKNOWN_CODEC, expected("codec id", "a known one", uint64_t(fixed.codec_id)));
  try {
    Configuration configuration = read_configuration({reinterpret_cast<const char*>(text.data()), text.size()});
    if (configuration.codec_id != fixed.codec_id)
      corrupt("codec", std::string(name) + ", as in the header's codec id", codec_name(configuration.codec_id));
    check_takes(configuration, dtype_id);
    return configuration;
  } catch (const Failure& failure) {
    fail(ARRCOMP_CORRUPT, "configuration: " + failure.message);
  }
}

void check_payload_bytes(const Codec& codec, const Layout& layout, uint64_t bytes) {
  const bool is_fixed = has_fixed_rate(codec, layout.element());
  const uint64_t needed = min_length(codec, layout.element(), layout.count);
  if (is_fixed ? bytes == needed : bytes >= needed) return;
  corrupt("payload length", (is_fixed ? "" : "at least ") + std::to_string(needed) + " bytes for this shape", bytes);
}

void check_frame_bytes(const Layout& layout, uint64_t payload_bytes, uint64_t bytes) {
  const bool is_too_long = ceil_div(payload_bytes, 2) > layout.nbytes() + 512;  // no codec writes as much
  if (is_too_long) corrupt("payload length", "less for this shape", payload_bytes);
  if (bytes < ceil_div(payload_bytes, max_frame_growth) || bytes >= payload_bytes)
    corrupt("frame", "a length that goes with its payload", bytes);
}

}  // namespace

Layout::Layout(arrcomp_status status, int id, std::span<const uint64_t> sizes)
    : dtype_id(id), shape(sizes.begin(), sizes.end()) {
  if (!is_dtype(id)) fail(status, expected("dtype", "1 to 28", std::to_string(id)));
  if (is_too_large(id, shape))
    fail(status,
         expected("shape", "fewer than 2^60 values (complex: 2^59), and without sizes of 0 fewer than 2^63 bytes",
                  list_of(shape, [](uint64_t size) { return std::to_string(size); }, '(', ')')));
  count = is_empty(shape) ? 0 : limited_product(shape, parts_of(id), max_elements);
}

uint64_t header_bytes(const Layout& layout, const Configuration& configuration) {
  return round_up(sizeof(Fixed) + 8 * layout.shape.size() + configuration.text.size(), 8);
}

void write_header(uint8_t* stream, const Layout& layout, const Configuration& configuration, uint64_t payload_bytes) {
  const std::string& text = configuration.text;
  if (text.size() > max_configuration)
    fail(ARRCOMP_INVALID_ARGUMENT, expected("configuration", "at most 65535 bytes", text.size()));
  Fixed fixed;
  fixed.codec_id = static_cast<uint8_t>(configuration.codec_id);
  fixed.dtype_id = static_cast<uint8_t>(layout.dtype_id);
  fixed.dimensions = static_cast<uint8_t>(layout.shape.size());
  fixed.configuration_bytes = static_cast<uint16_t>(text.size());
  fixed.payload_bytes = payload_bytes;
  memset(stream, 0, header_bytes(layout, configuration));
  memcpy(stream, &fixed, sizeof fixed);
  uint8_t* const sizes = stream + sizeof fixed;
  std::copy_n(reinterpret_cast<const uint8_t*>(layout.shape.data()), 8 * layout.shape.size(), sizes);
  std::copy(text.begin(), text.end(), sizes + 8 * layout.shape.size());
}

void write_checksum(uint8_t* stream, uint64_t bytes) {
  const uint64_t checksum = xxh3({stream, bytes});
  memcpy(stream + bytes, &checksum, sizeof checksum);
}

Stream read_stream(std::span<const uint8_t> bytes, bool check) {
  Reader reader(bytes);
  const Fixed fixed = reader.fixed();
  const std::vector<uint64_t> shape = reader.shape(fixed.dimensions);
  const std::span<const uint8_t> text = reader.configuration(fixed.configuration_bytes);
  const std::span<const uint8_t> body = reader.body(fixed);
  if (check) check_checksum(bytes);
  if (fixed.reserved != 0) corrupt("reserved field", "0", uint64_t(fixed.reserved));
  reader.check_padding();
  Layout layout(ARRCOMP_CORRUPT, fixed.dtype_id, shape);
  Configuration configuration = configuration_of(fixed, text, fixed.dtype_id);
  check_payload_bytes(configuration.codec, layout, fixed.payload_bytes);
  const bool is_framed = fixed.frame == zstandard;
  if (is_framed) check_frame_bytes(layout, fixed.payload_bytes, body.size());
  return {std::move(layout), std::move(configuration), is_framed, body};
}

}  // namespace arrcomp::c
