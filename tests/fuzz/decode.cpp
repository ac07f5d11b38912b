// Decodes what libFuzzer makes up, on two instruction sets: they must agree, and touch no byte that is not theirs.
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend.h"
#include "cpu/driver.h"
#include "floating_point.h"
#include "input.h"

namespace arrcomp {

// Instruction sets have these too: they are not fuzzed.
const ActivationFunctions plain::activation_functions{};
#ifdef ARRCOMP_AVX2
const ActivationFunctions avx2::activation_functions{};
#endif
#ifdef ARRCOMP_AVX512
const ActivationFunctions avx512::activation_functions{};
#endif
#ifdef ARRCOMP_NEON
const ActivationFunctions neon::activation_functions{};
#endif

namespace fuzz {
namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "arrcomp_fuzz: %s\n", what);
  std::abort();
}

// Memory of which no byte may be touched but those that were asked for last: the others are poisoned, and behind them is
// a page that faults, for instructions that AddressSanitizer does not know.
class Guarded {
 public:
  explicit Guarded(size_t most) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_ = round_up(most, page);
    void* const memory = mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("no memory");
    begin_ = static_cast<uint8_t*>(memory);
    if (mprotect(begin_ + size_, page, PROT_NONE) != 0) fail("no page that faults");
  }

  uint8_t* take(size_t bytes, size_t alignment) {
    uint8_t* const end = begin_ + size_;
    uint8_t* const start = end - round_up(bytes, alignment);
    ASAN_UNPOISON_MEMORY_REGION(start, bytes);
    ASAN_POISON_MEMORY_REGION(begin_, start - begin_);
    ASAN_POISON_MEMORY_REGION(start + bytes, end - (start + bytes));
    return start;
  }

 private:
  size_t size_;
  uint8_t* begin_;
};

// What arrays are coded against.
const void* zeros(size_t bytes) {
  static Guarded memory(max_elements * sizeof(double));
  uint8_t* const start = memory.take(bytes, 1);
  memset(start, 0, bytes);
  return start;
}

// The elements that one instruction set makes of an input. What was there before is in those that it leaves out.
struct Decoded {
  Guarded memory{max_elements * sizeof(double)};
  uint8_t* elements = nullptr;
  bool ok = false;

  void start(size_t bytes, uint8_t before) {
    elements = memory.take(bytes, 1);
    memset(elements, before, bytes);
  }
};

class Trial {
 public:
  Trial(const Input& input, Guarded& memory)
      : input_(input),
        item_(input.element.width / 8u),
        payload_(memory.take(input.payload.size(), 8)),
        reference_(input.has_reference() ? zeros(input.count * item_) : nullptr) {
    if (!input.payload.empty()) memcpy(payload_, input.payload.data(), input.payload.size());
  }

  void run(const char* first, const char* second) const {
    static Decoded one, other;
    decode(first, one, 0x00);
    decode(second, other, 0xff);
    check_same(one, other, input_.count, "instruction sets decode differently");
    if (input_.has_reference()) return check_in_place(one, other);
    if (is_decoded_as_users_do() || input_.has_usual_plan()) check_range(one, other);
    if (has_sums(input_.codec)) check_sums(first, second, one, other);
  }

 private:
  // Others are decoded by a plan that arrays of so few elements do not have.
  bool is_decoded_as_users_do() const {
    return input_.has_buckets() || has_predictor(input_.codec) || input_.has_reference();
  }

  void decode(const char* name, Decoded& into, uint8_t before) const {
    const DefaultFloatingPoint environment;
    cpu::use_instruction_set(name);
    into.start(input_.count * item_, before);
    if (is_decoded_as_users_do()) {
      into.ok = decodes(decoding(into.elements));
    } else {
      into.ok = cpu::decode_array(input_.plan(), input_.codec, payload_, input_.payload.size(), into.elements, 1);
    }
  }

  bool decodes(const DecodeTask& array) const {
    try {
      return cpu::decode(input_.codec, input_.element, {&array, 1}, 1) == 1;
    } catch (const WrongReference&) {
      return false;
    }
  }

  // On the instruction set that decoded last: the elements may replace the reference.
  void check_in_place(const Decoded& whole, Decoded& again) const {
    const DefaultFloatingPoint environment;
    again.start(input_.count * item_, 0x00);
    DecodeTask array = decoding(again.elements);
    array.reference = again.elements;
    again.ok = decodes(array);
    check_same(whole, again, input_.count, "a reference is changed in place into other elements");
  }

  // On the instruction set that decoded last. A part may be sound though the array is not.
  void check_range(const Decoded& whole, Decoded& part) const {
    const uint64_t first = input_.count * (input_.header.choice >> 4) / 16, count = (input_.count - first) / 2;
    part.start(count * item_, 0x55);
    part.ok = cpu::decode_range(input_.codec, input_.element, decoding(part.elements), first, count, 1);
    check_told_bytes(part, first, count);
    if (!whole.ok) return;
    if (!part.ok) fail("a part of a sound array is found corrupt");
    if (is_defined() && memcmp(whole.elements + first * item_, part.elements, count * item_) != 0)
      fail("a part of the array is decoded differently");
  }

  // Who has no other bytes of the payload than those that are told decodes the same.
  void check_told_bytes(const Decoded& part, uint64_t first, uint64_t count) const {
    static Guarded memory(max_payload_bytes);
    static Decoded again;
    const size_t size = input_.payload.size();
    uint8_t* const told = memory.take(size, 8);
    memset(told, 0xa5, size);
    const auto fetch = [&](const std::vector<ByteRange>& ranges) {
      for (const ByteRange& range : ranges) {
        if (range.begin > range.end || range.end > size) fail("bytes are told that the payload does not have");
        memcpy(told + range.begin, payload_ + range.begin, range.end - range.begin);
      }
    };
    again.start(count * item_, 0x55);
    const DecodeTask array{told, size, nullptr, again.elements, input_.count};
    fetch(cpu::directory_ranges(input_.codec, input_.element, input_.count, size));
    fetch(cpu::payload_ranges(input_.codec, input_.element, array, first, count));
    again.ok = cpu::decode_range(input_.codec, input_.element, array, first, count, 1);
    check_same(part, again, count, "the bytes that are told make other elements");
  }

  void check_sums(const char* first, const char* second, Decoded& one, Decoded& other) const {
    add(first, one, 0x00);
    add(second, other, 0xff);
    check_same(one, other, input_.count, "instruction sets add differently");
  }

  void add(const char* name, Decoded& into, uint8_t before) const {
    cpu::use_instruction_set(name);
    into.start(input_.count * item_, before);
    const Summand terms[] = {{payload_, input_.payload.size(), nullptr, 1.0},
                             {payload_, input_.payload.size(), nullptr, -0.75}};
    const Sum sum{input_.codec, input_.element, terms, input_.count};
    into.ok = cpu::accumulate(sum, nullptr, into.elements, 1) == 2;
  }

  // Both are sound, with the same elements, or both are corrupt.
  void check_same(const Decoded& one, const Decoded& other, uint64_t count, const char* what) const {
    if (one.ok != other.ok) fail(what);
    if (one.ok && is_defined() && memcmp(one.elements, other.elements, count * item_) != 0) fail(what);
  }

  // Whether the format says what the elements are: not of levels above 2^50 in float64 (FORMAT.md, 3.4).
  bool is_defined() const {
    if (input_.element.width < 64 || input_.has_buckets()) return true;
    return bound_at(0) == 0 && (!input_.has_reference() || bound_at(reference_header_bytes) == 0);
  }

  // A number of the payload; 0 behind its end.
  double bound_at(size_t offset) const {
    double bound = 0;
    if (input_.payload.size() >= offset + sizeof bound) memcpy(&bound, payload_ + offset, sizeof bound);
    return bound;
  }

  DecodeTask decoding(uint8_t* target) const {
    return {payload_, input_.payload.size(), nullptr, target, input_.count, reference_};
  }

  const Input& input_;
  const size_t item_;  // bytes
  uint8_t* const payload_;
  const void* const reference_;  // null where there is none
};

const char* instruction_set(size_t choice) {
  const char* const* const names = cpu::instruction_sets();
  size_t count = 0;
  while (names[count] != nullptr) ++count;
  return names[choice % count];
}

}  // namespace
}  // namespace fuzz
}  // namespace arrcomp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace arrcomp::fuzz;
  static Guarded memory(max_payload_bytes);
  Input input;
  if (!input.read({data, size})) return -1;
  Trial(input, memory).run(instruction_set(0), instruction_set(input.header.choice & 15));
  return 0;
}
