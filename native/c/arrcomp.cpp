// The C library's functions: they check arguments, call the CPU's back end and make statuses of exceptions.
#include "c/arrcomp.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "backend.h"
#include "c/failure.h"
#include "c/stream.h"
#include "floating_point.h"
#include "memory.h"

namespace arrcomp::c {
namespace {

constexpr const char* lossless = "{\"codec\":\"lossless\"}";

thread_local char error_message[1024];

arrcomp_status failed(arrcomp_status status, const char* message) {
  std::snprintf(error_message, sizeof error_message, "%s", message);
  // Messages quote untrusted text.
  std::replace_if(error_message, error_message + strlen(error_message), [](char c) { return c < ' ' || c > '~'; }, '?');
  return status;
}

// Calls work(), in the floating-point environment that numbers are read in.
template <class Work>
arrcomp_status guarded(const Work& work) {
  const DefaultFloatingPoint environment;
  try {
    work();
    return ARRCOMP_OK;
  } catch (const Failure& failure) {
    return failed(failure.status, failure.message.c_str());
  } catch (const NoMemory& error) {
    return failed(ARRCOMP_NO_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return failed(ARRCOMP_NO_MEMORY, "no memory");
  } catch (const std::exception& error) {
    return failed(ARRCOMP_INTERNAL_ERROR, error.what());
  } catch (...) {
    return failed(ARRCOMP_INTERNAL_ERROR, "an unknown error");
  }
}

[[noreturn]] void refuse(std::string_view name, std::string_view what, std::string_view got) {
  fail(ARRCOMP_INVALID_ARGUMENT, expected(name, what, got));
}

void check_pointer(const char* name, const void* pointer) {
  if (pointer == nullptr) refuse(name, "an address", "NULL");
}

void check_room(const char* name, uint64_t capacity, uint64_t needed) {
  if (capacity >= needed) return;
  fail(ARRCOMP_BUFFER_TOO_SMALL, expected(name, "at least " + std::to_string(needed) + " bytes", capacity));
}

int checked_threads(int threads) {
  if (threads < 0) refuse("threads", "at least 1, or 0 for all cores", std::to_string(threads));
  return threads;
}

Layout checked_layout(const arrcomp_layout* layout) {
  check_pointer("layout", layout);
  const int dimensions = layout->dimensions;
  if (dimensions < 0 || dimensions > max_dimensions) refuse("dimensions", "0 to 64", std::to_string(dimensions));
  if (dimensions > 0) check_pointer("shape", layout->shape);
  return {ARRCOMP_INVALID_ARGUMENT, static_cast<int>(layout->dtype), {layout->shape, static_cast<size_t>(dimensions)}};
}

void check_has_no_reference(const Codec& codec) {
  if (!has_reference(codec)) return;
  fail(ARRCOMP_NOT_SUPPORTED, expected("predictor", "one without a reference", "'reference'"));
}

Configuration checked_configuration(const char* text, const Layout& layout) {
  Configuration configuration = read_configuration(text == nullptr ? lossless : text);
  check_takes(configuration, layout.dtype_id);
  check_has_no_reference(configuration.codec);
  return configuration;
}

// Memory of at least so many bytes, aligned to 8.
std::unique_ptr<uint64_t[]> aligned_memory(uint64_t bytes, const char* purpose) {
  return allocated<uint64_t>(bytes / 8 + 1, purpose);
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 8 == 0; }

// An array, and what it is compressed with.
struct Compression {
  Layout layout;
  Configuration configuration;
  uint64_t payload_offset, payload_capacity;

  Compression(const arrcomp_layout* given, const char* text)
      : layout(checked_layout(given)),
        configuration(checked_configuration(text, layout)),
        payload_offset(header_bytes(layout, configuration)),
        payload_capacity(capacity(configuration.codec, layout.element(), layout.count)) {}

  uint64_t bound() const { return payload_offset + payload_capacity + checksum_bytes; }

  // Writes the payload, and returns its length.
  uint64_t encode(uint8_t* payload, const void* array, uint64_t seed, int threads) const {
    const std::vector<int64_t> shape(layout.shape.begin(), layout.shape.end());
    const EncodeTask task{array, payload, layout.count, axes_of(shape, layout.count)};
    uint64_t length = 0;
    cpu::encode(configuration.codec, layout.element(), {&task, 1}, &length, {seed, nullptr}, threads);
    return length;
  }
};

void compress(uint8_t* stream, uint64_t room, uint64_t& bytes, const void* array, const Compression& compression,
              uint64_t seed, int threads) {
  const uint64_t offset = compression.payload_offset;
  const bool in_place = is_aligned(stream) && room >= compression.bound();
  std::unique_ptr<uint64_t[]> elsewhere;
  if (!in_place) elsewhere = aligned_memory(compression.payload_capacity, "a payload");
  uint8_t* const payload = in_place ? stream + offset : reinterpret_cast<uint8_t*>(elsewhere.get());
  const uint64_t length = compression.encode(payload, array, seed, threads);
  bytes = offset + length + checksum_bytes;
  check_room("capacity", room, bytes);
  write_header(stream, compression.layout, compression.configuration, length);
  if (!in_place) memcpy(stream + offset, payload, length);
  write_checksum(stream, offset + length);
}

Stream checked_stream(const void* stream, uint64_t bytes, bool check) {
  if (bytes > 0) check_pointer("stream", stream);
  return read_stream({static_cast<const uint8_t*>(stream), bytes}, check);
}

void check_supported(const Stream& stream) {
  if (stream.is_framed)
    fail(ARRCOMP_NOT_SUPPORTED, expected("frame", "none, as this library has no Zstandard", "a Zstandard frame"));
  check_has_no_reference(stream.configuration.codec);
}

void decompress(void* array, const Stream& stream, int threads) {
  const Codec& codec = stream.configuration.codec;
  const Element& element = stream.layout.element();
  const uint8_t* payload = stream.payload.data();
  const uint64_t length = stream.payload.size(), count = stream.layout.count;
  const char* const fault = cpu::payload_fault(codec, element, payload, length, count);
  if (fault != nullptr) fail(ARRCOMP_CORRUPT, fault);
  std::unique_ptr<uint64_t[]> copy;
  if (!is_aligned(payload)) {
    copy = aligned_memory(length, "a payload, to be aligned");
    memcpy(copy.get(), payload, length);
    payload = reinterpret_cast<const uint8_t*>(copy.get());
  }
  const DecodeTask task{payload, length, nullptr, array, count};
  if (cpu::decode(codec, element, {&task, 1}, threads) == 0)
    fail(ARRCOMP_CORRUPT, expected("payload", "one of this data type and number of elements", "another one"));
}

void write_info(arrcomp_info& info, const Stream& stream) {
  const Layout& layout = stream.layout;
  info = {};
  info.dtype = static_cast<arrcomp_dtype>(layout.dtype_id);
  info.dimensions = static_cast<int>(layout.shape.size());
  std::copy(layout.shape.begin(), layout.shape.end(), info.shape);
  info.array_bytes = layout.nbytes();
  info.codec = codec_name(stream.configuration.codec_id);
  info.is_framed = stream.is_framed;
}

}  // namespace
}  // namespace arrcomp::c

using namespace arrcomp::c;

const char* arrcomp_version() { return ARRCOMP_VERSION; }

const char* arrcomp_error_message() { return error_message; }

arrcomp_status arrcomp_array_bytes(uint64_t* bytes, const arrcomp_layout* layout) {
  return guarded([&] {
    check_pointer("bytes", bytes);
    *bytes = checked_layout(layout).nbytes();
  });
}

arrcomp_status arrcomp_compress_bound(uint64_t* bytes, const arrcomp_layout* layout, const char* configuration) {
  return guarded([&] {
    check_pointer("bytes", bytes);
    *bytes = Compression(layout, configuration).bound();
  });
}

arrcomp_status arrcomp_compress(void* stream, uint64_t room, uint64_t* bytes, const void* array,
                                const arrcomp_layout* layout, const char* configuration, uint64_t seed, int threads) {
  return guarded([&] {
    check_pointer("bytes", bytes);
    const Compression compression(layout, configuration);
    if (room > 0) check_pointer("stream", stream);
    if (compression.layout.count > 0) check_pointer("array", array);
    compress(static_cast<uint8_t*>(stream), room, *bytes, array, compression, seed, checked_threads(threads));
  });
}

arrcomp_status arrcomp_read_info(arrcomp_info* info, const void* stream, uint64_t bytes) {
  return guarded([&] {
    check_pointer("info", info);
    write_info(*info, checked_stream(stream, bytes, false));
  });
}

arrcomp_status arrcomp_decompress(void* array, uint64_t room, const void* bytes_of_stream, uint64_t bytes,
                                  int threads) {
  return guarded([&] {
    checked_threads(threads);
    const Stream stream = checked_stream(bytes_of_stream, bytes, true);
    check_supported(stream);
    check_room("capacity", room, stream.layout.nbytes());
    if (stream.layout.count > 0) check_pointer("array", array);
    decompress(array, stream, threads);
  });
}
