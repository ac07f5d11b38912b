// Inputs of the fuzzer: eight bytes that say what is decoded, then a payload. tests/support/fuzz_inputs.py reads them too.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "stream/codec.h"

namespace arrcomp::fuzz {

struct InputHeader {
  uint8_t variant;       // which of the codec's; modulo their number
  uint8_t dtype;         // id
  uint16_t elements;     // modulo max_elements + 1
  uint16_t bucket_size;  // 0: the variant's, where it has one; else at least the least that is allowed
  uint8_t
      grouping;  // bits 0-1: logarithm of a group's chunks, if below 3, else 2; bit 2: the directory has entries of 8 bytes
  uint8_t choice;  // bits 0-3: the instruction set that decodes too; bits 4-7: where a part of the array begins
};
static_assert(sizeof(InputHeader) == 8);

constexpr uint64_t max_elements = 3 * chunk_size + 64;
constexpr size_t max_payload_bytes = 1 << 16;

struct Input {
  InputHeader header;
  Codec codec;
  Element element;
  uint64_t count;                    // elements
  std::span<const uint8_t> payload;  // of any length

  // False where no codec takes this.
  bool read(std::span<const uint8_t> data);

  // Whether the payload is coded against a reference: an array of zeros.
  bool has_reference() const { return arrcomp::has_reference(codec); }
  bool has_groups() const { return !has_reference() && (!has_buckets() || bucket_plan().byte_codes); }
  bool has_buckets() const;
  BucketPlan bucket_plan() const;

  // Where groups begin, in a payload that is them or has entropy-coded codes.
  uint64_t groups_at() const { return has_buckets() ? bucket_plan().codes_offset : 0; }
  // How groups are laid out: but for entropy-coded codes as in an array of any size, of which these are the first.
  Plan plan() const;
  bool has_usual_plan() const { return plan().chunks_per_group == 1 && plan().directory_entry_bytes == 4; }
};

// How many variants the codec has that is fuzzed: the one whose id is in the environment, in ARRCOMP_FUZZ_CODEC.
size_t variant_count();

}  // namespace arrcomp::fuzz
