// The payload of an array that is coded against a reference: written and checked here alone (FORMAT.md, section 10.1).
// Shared by host and device.
#pragma once
#include "stream/payload.h"
#include "stream/prediction.h"

namespace arrcomp {

// How codes change the reference's elements; plain: they are none, and the reference is not used.
enum class ReferenceWay : uint8_t { plain = 0, difference = 1, exclusive_or = 2 };

struct ReferenceHeader {
  double bound;
  uint64_t hash;
  ReferenceWay way;
  uint8_t is_list;
  uint8_t zeros[6];
  uint64_t codes_count;  // of a list
  uint64_t exact_count;
  uint64_t part_bytes[4];
};
static_assert(sizeof(ReferenceHeader) == reference_header_bytes);

// The parts of a payload, in their order.
enum ReferencePart : int { codes_part, gaps_part, exact_part, exact_gaps_part, reference_parts };

// A block of the hash (10.4).
constexpr uint64_t hash_block_bytes = 65536;

// Entries of a list that are put together.
constexpr uint64_t list_unit = 1 << 14;

// Codes that are not 0 are listed where they are at most so many of `count`; and so many elements are exact at most.
ARRCOMP_SHARED constexpr uint64_t most_listed(uint64_t count) { return count / 4; }
ARRCOMP_SHARED constexpr uint64_t most_exact(uint64_t count) { return count / 8; }

ARRCOMP_SHARED constexpr Element code_element_of(const Element& element, double bound, ReferenceWay way) {
  const int width = bound == 0 ? element.width : element.width == 64 ? 64 : 32;
  return integer_element(width, way == ReferenceWay::difference);
}

ARRCOMP_SHARED constexpr Element gap_element_of(uint64_t count) {
  return integer_element(count > uint64_t{1} << 32 ? 64 : 32, false);
}

// Whether codes are made of bits, so that no element is exact. Else they are numbers of steps, of a bound that must be
// one of predicted arrays: with another, which is seen where the elements are, the way is plain.
ARRCOMP_SHARED bool codes_are_bits(const GroupSettings& settings, const Element& element) {
  const bool is_absolute = settings.kind == BoundKind::absolute && is_predictable(element, settings.bound);
  return !is_absolute && settings.kind != BoundKind::relative;
}

// The chunks of an array on which ways are tried.
constexpr uint64_t most_way_samples = 8;
struct WaySamples {
  uint64_t elements, number;

  ARRCOMP_SHARED explicit WaySamples(uint64_t count) : elements(count) {
    number = chunks() < most_way_samples ? chunks() : most_way_samples;
  }
  ARRCOMP_SHARED uint64_t first(uint64_t sample) const {
    return (2 * sample + 1) * chunks() / (2 * number) * chunk_size;
  }
  ARRCOMP_SHARED uint64_t count(uint64_t sample) const {
    const uint64_t left = elements - first(sample);
    return left < chunk_size ? left : chunk_size;
  }
  ARRCOMP_SHARED uint64_t chunks() const { return ceil_div(elements, chunk_size); }

  // What elements take that no code serves: themselves and their places.
  ARRCOMP_SHARED static uint64_t exact_bytes(const Element& element, uint64_t exact) {
    return exact * (element.width / 8 + 2);
  }

  // The first of the shortest ways, which take so many bytes. Of samples with few codes most is side data, which differs
  // by chance: differences may take a little more.
  ARRCOMP_SHARED ReferenceWay shortest(uint64_t plain, uint64_t difference, uint64_t exclusive_or) const {
    const uint64_t chance = 16 * number;
    const bool differs = difference <= plain && (difference <= exclusive_or || difference - exclusive_or <= chance);
    if (differs) return ReferenceWay::difference;
    return exclusive_or <= plain ? ReferenceWay::exclusive_or : ReferenceWay::plain;
  }
};

// How a list of so many elements is cut.
ARRCOMP_SHARED constexpr Plan make_list_plan(const Element& element, uint64_t count) {
  return make_plan(element, count, max_chunks_per_group);
}

// The elements of each part, and how they are cut.
struct ReferenceLayout {
  Plan parts[reference_parts];

  ARRCOMP_SHARED static ReferenceLayout of(const Element& element, const ReferenceHeader& header, uint64_t count) {
    const Element codes = code_element_of(element, header.bound, header.way), gaps = gap_element_of(count);
    const bool is_plain = header.way == ReferenceWay::plain;
    return {
        {header.is_list != 0 ? make_list_plan(codes, header.codes_count) : make_plan(is_plain ? element : codes, count),
         make_list_plan(gaps, header.codes_count), make_list_plan(element, header.exact_count),
         make_list_plan(gaps, header.exact_count)}};
  }

  // Whether there is such a part.
  ARRCOMP_SHARED bool has(int part, bool is_list) const {
    if (part == codes_part && !is_list) return true;
    return parts[part].count > 0;
  }
};

// Where the parts stand, from the payload's start, and where they end.
struct ReferencePlaces {
  uint64_t begin[reference_parts], end;

  ARRCOMP_SHARED explicit ReferencePlaces(const uint64_t (&part_bytes)[reference_parts])
      : begin{}, end(reference_header_bytes) {
    for (int part = 0; part < reference_parts; ++part) {
      begin[part] = round_up(end, 8);
      if (part_bytes[part] > 0) end = begin[part] + part_bytes[part];
    }
  }
};

// An array and its reference.
struct ReferenceJob {
  Element element;
  GroupSettings settings;  // decoding needs none
  double bound;            // absolute; 0: without loss
  int rounded_bits;        // of the mantissa
  ReferenceWay way;
  uint64_t count;      // elements
  const void* source;  // encoding alone
  const void* reference;
};

struct DeltaCounts {
  uint64_t codes, exact;  // codes that are not 0, and elements that no code serves
};

// Where a part of an array puts what it lists: places of 32 bits, or of 64 (gap_element_of).
struct DeltaLists {
  void *places, *codes, *exact_places, *exact;
};

// A payload's parts, checked but for the groups in them.
struct ReferencePayload {
  ReferenceHeader header;
  ReferenceLayout layout;
  const uint8_t* part[reference_parts];

  // What is corrupt, or null.
  ARRCOMP_SHARED const char* read(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
    if (length < sizeof header) return "payload length: shorter than the header of a delta";
    memcpy(&header, payload, sizeof header);
    if (!is_legal(element, count)) return "delta: not one of this data type and number of elements";
    for (const uint64_t bytes : header.part_bytes)
      if (bytes > length) return "parts of the delta: longer than the payload";
    layout = ReferenceLayout::of(element, header, count);
    const ReferencePlaces places(header.part_bytes);
    if (places.end != length) return "payload length: not that of the delta's parts";
    for (int p = 0; p < reference_parts; ++p) {
      if (layout.has(p, header.is_list != 0) != (header.part_bytes[p] > 0))
        return "parts of the delta: one is missing, or is not expected";
      part[p] = payload + places.begin[p];
      if (header.way != ReferenceWay::plain && header.part_bytes[p] > 0 && bound_of(p) != 0)
        return "bound of a part of the delta: not 0";
    }
    return nullptr;
  }

 private:
  ARRCOMP_SHARED bool is_legal(const Element& element, uint64_t count) const {
    uint8_t zeros = 0;
    for (const uint8_t zero : header.zeros) zeros |= zero;
    if (zeros != 0 || header.is_list > 1 || header.way > ReferenceWay::exclusive_or) return false;
    if (header.codes_count > (header.is_list != 0 ? most_listed(count) : 0)) return false;
    if (header.exact_count > (header.bound != 0 ? most_exact(count) : 0)) return false;
    if (header.way == ReferenceWay::plain && header.is_list != 0) return false;
    if (header.bound == 0) return true;
    return header.way == ReferenceWay::difference && is_predictable(element, header.bound) &&
           header.bound <= 1.7976931348623157e308;
  }

  // Of a part that is long enough to have one; else it is found corrupt later.
  ARRCOMP_SHARED double bound_of(int p) const {
    PayloadHeader head{};
    if (header.part_bytes[p] >= sizeof head) memcpy(&head, part[p], sizeof head);
    return head.bound;
  }
};

}  // namespace arrcomp
