// Reads streams that libFuzzer makes up as the C library does, up to their payloads: the checksum is made right first.
// Without libFuzzer it is a program that reads inputs, each after its length of 4 bytes, and prints for each whether it
// is refused (-) or not (+).
#include "c/stream.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "c/failure.h"

namespace arrcomp::c {
namespace {

constexpr size_t min_stream_bytes = 32;

// What was read is written alike, and read again.
void check_configuration(const Configuration& found) {
  if (read_configuration(found.text).text == found.text) return;
  std::fprintf(stderr, "a configuration changes when it is written and read: %s\n", found.text.c_str());
  std::abort();
}

// Whether it is a stream. The copy has no byte more, so that AddressSanitizer sees what is read behind it.
bool is_read(std::span<const uint8_t> input) {
  std::vector<uint8_t> bytes(input.begin(), input.end());
  if (bytes.size() >= min_stream_bytes) write_checksum(bytes.data(), bytes.size() - checksum_bytes);
  try {
    check_configuration(read_stream(bytes, true).configuration);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace
}  // namespace arrcomp::c

#ifdef ARRCOMP_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  arrcomp::c::is_read({data, size});
  return 0;
}
#else
int main() {
  const std::vector<char> all(std::istreambuf_iterator<char>(std::cin), {});
  std::span<const uint8_t> left(reinterpret_cast<const uint8_t*>(all.data()), all.size());
  while (!left.empty()) {
    const size_t size = left[0] | left[1] << 8 | left[2] << 16;
    std::putchar(arrcomp::c::is_read(left.subspan(4, size)) ? '+' : '-');
    left = left.subspan(4 + size);
  }
  return 0;
}
#endif
