// What the kernels of arrays with a reference are told (FORMAT.md, section 10). How an array is coded, and how much is
// listed, is known on the device alone: the host launches kernels for as much as there may be.
#pragma once
#include "cuda/arguments.h"
#include "stream/reference.h"

namespace arrcomp::cuda {

// What is known of an array on its way to a payload, or back, in device memory.
struct ReferenceState {
  uint64_t hash;  // of the reference
  DeltaCounts all;
  ReferenceHeader header;
  bool has_codes;  // else the array is kept without its reference; decoding: it is not corrupt
  uint64_t part_bytes[reference_parts], plain_bytes;
  uint64_t sample_bytes[most_way_samples][3];  // of each way
  DeltaCounts sample_counts[most_way_samples];
};

constexpr int most_samples_of_ways = 3 * static_cast<int>(most_way_samples);

// Arrays that are encoded or decoded as parts, in the order of the lists in device memory: gaps are two. When codes are
// decoded, steps of elements of 16 bits have their own place, as they have another width.
enum ReferenceList : int {
  plain_of_list,
  codes_of_list,
  gaps_of_list,
  exact_of_list = 4,
  steps_of_list,
  lists_of_reference
};

// The memory of an array that is encoded. Its parts are made at places of their own, and copied together.
struct ReferenceMemory {
  uint64_t codes, places[2], gaps[2], exact;  // bytes of each; places and gaps of codes and of exact elements
  uint64_t coded[reference_parts];
  uint64_t samples;  // codes of all samples in two ways
  uint64_t coded_samples;

  // Codes of bits leave no exact elements.
  static ReferenceMemory to_encode(const Element& element, const Element& code, bool are_bits, uint64_t count) {
    const Element gap = gap_element_of(count);
    const uint64_t listed = most_listed(count), exact = are_bits ? 0 : most_exact(count);
    const uint64_t gaps = even(listed * (gap.width / 8)), exact_gaps = even(exact * (gap.width / 8));
    return {even(count * (code.width / 8)),
            {gaps, exact_gaps},
            {gaps, exact_gaps},
            even(exact * (element.width / 8)),
            {even(capacity_of_groups(code, count)), capacity_of_list(gap, listed), capacity_of_list(element, exact),
             capacity_of_list(gap, exact)},
            2 * most_way_samples * sample(code),
            3 * most_way_samples * coded_sample(element, code)};
  }

  static uint64_t sample(const Element& code) { return chunk_size * (code.width / 8); }
  static uint64_t coded_sample(const Element& element, const Element& code) {
    return even(std::max(capacity_of_groups(element, chunk_size), capacity_of_groups(code, chunk_size)));
  }

  uint64_t bytes() const {
    uint64_t sum = codes + exact + samples + coded_samples;
    for (int i = 0; i < 2; ++i) sum += places[i] + gaps[i];
    for (const uint64_t part : coded) sum += part;
    return sum;
  }

 private:
  static uint64_t even(uint64_t bytes) { return round_up(bytes, 256); }
  static uint64_t capacity_of_list(const Element& element, uint64_t count) {
    return even(capacity_of_groups(element, count));
  }
};

// Where things stand in that memory.
struct ReferenceBuffers {
  uint8_t *codes, *places[2], *gaps[2], *exact, *coded[reference_parts], *samples, *coded_samples;
  uint64_t sample_bytes, coded_sample_bytes;

  ReferenceBuffers(const ReferenceMemory& memory, uint8_t* at) {
    const auto take = [&](uint64_t bytes) {
      uint8_t* const begin = at;
      at += bytes;
      return begin;
    };
    codes = take(memory.codes);
    for (int i = 0; i < 2; ++i) places[i] = take(memory.places[i]);
    for (int i = 0; i < 2; ++i) gaps[i] = take(memory.gaps[i]);
    exact = take(memory.exact);
    for (int p = 0; p < reference_parts; ++p) coded[p] = take(memory.coded[p]);
    samples = take(memory.samples);
    coded_samples = take(memory.coded_samples);
    sample_bytes = memory.samples / (2 * most_way_samples);
    coded_sample_bytes = memory.coded_samples / (3 * most_way_samples);
  }
};

// An array that is encoded.
struct ReferenceArguments {
  ReferenceJob job;  // without its bound, where that follows from the range
  ReferenceState* state;
  DeltaCounts* blocks;  // of each block of the hash, then of all those before
  EncodeArray* lists;   // lists_of_reference, of which the first knows the range; then the samples
  uint8_t* payload;
  uint64_t* length;
  ReferenceBuffers buffers;

  ARRCOMP_SHARED uint64_t block_size() const { return hash_block_bytes / (job.element.width / 8); }
  ARRCOMP_SHARED uint64_t number_of_blocks() const { return ceil_div(job.count, block_size()); }
  ARRCOMP_SHARED EncodeArray* samples() const { return lists + lists_of_reference; }
};

// An array that is decoded, in device memory.
struct ReferenceDecoding {
  ReferenceState state;
  DecodeArray lists[lists_of_reference];
};

struct ReferenceDecodeArguments {
  DecodeTask task;
  Element element;
  ReferenceDecoding* decoding;
  uint8_t *codes, *gaps[2], *exact;
  uint64_t* passed[2];  // elements before each unit of the lists
  uint32_t* status;

  ARRCOMP_SHARED ReferenceJob job() const {
    const ReferenceHeader& header = decoding->state.header;
    return {element, {}, header.bound, 0, header.way, task.count, nullptr, task.reference};
  }
};

// Where they stand in the scratch memory of a call.
struct ReferenceDecodeScratch {
  uint64_t codes, gaps[2], exact, passed[2], end;

  ReferenceDecodeScratch(const Element& element, uint64_t count) {
    const uint64_t width = element.width == 64 ? 8 : 4, gap_width = gap_element_of(count).width / 8;
    const uint64_t most[] = {most_listed(count), most_exact(count)};  // of both lists
    uint64_t at = round_up(sizeof(ReferenceDecoding), 256);
    const auto take = [&](uint64_t bytes) {
      const uint64_t begin = at;
      at = round_up(at + bytes, 256);
      return begin;
    };
    codes = take(count * width);
    for (int list = 0; list < 2; ++list) gaps[list] = take(most[list] * gap_width);
    exact = take(most[1] * (element.width / 8));
    for (int list = 0; list < 2; ++list) passed[list] = take(ceil_div(most[list], list_unit) * sizeof(uint64_t));
    end = at;
  }
};

}  // namespace arrcomp::cuda
