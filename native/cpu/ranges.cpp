// Some elements of an array, from those groups or chunks of its payload that have them.
#include "cpu/ranges.h"

#include <memory>

#include "cpu/buckets.h"
#include "cpu/predicted.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "floating_point.h"
#include "memory.h"

namespace arrcomp::cpu {
namespace {

// Decodes a part to `target`. decode(begin, end, array) decodes whole units of `size` elements to their places in an
// array: those that are wanted as a whole to the target itself, those at the ends through a window.
template <class Decode>
bool decode_units(const IndexRange& part, uint64_t size, uint8_t* target, Decode decode) {
  const auto address_of = [&](uint64_t index) { return target + (index - part.first) * part.item; };
  std::unique_ptr<uint8_t[]> window;
  for (uint64_t at = part.first; at < part.end;) {
    const uint64_t unit = at / size, begin = unit * size, end = std::min(begin + size, part.count);
    if (at == begin && end <= part.end) {
      const uint64_t last = part.end == part.count ? ceil_div(part.count, size) : part.end / size;
      if (!decode(unit, last, array_with(address_of(at), at, part.item))) return false;
      at = std::min(last * size, part.count);
      continue;
    }
    if (window == nullptr) window = allocated<uint8_t>(size * part.item, "a group");
    if (!decode(unit, unit + 1, array_with(window.get(), begin, part.item))) return false;
    const uint64_t wanted = std::min(end, part.end);
    memcpy(address_of(at), window.get() + (at - begin) * part.item, (wanted - at) * part.item);
    at = wanted;
  }
  return true;
}

bool decode_range_of_buckets(const BucketPlan& plan, const Codec& codec, const uint8_t* payload, uint64_t length,
                             const IndexRange& part, uint8_t* target, int threads) {
  if (!is_length_right(plan, payload, length)) return false;
  const IndexRange coded{part.first, std::min(part.end, plan.quantized), plan.quantized, part.item};
  const bool ok = decode_units(coded, chunk_size, target, [&](uint64_t begin, uint64_t end, uint8_t* array) {
    const BucketJob job{codec, plan, nullptr, const_cast<uint8_t*>(payload), array, 0};
    return all_of(
        Shares::of(end - begin, threads, min_elements / chunk_size), begin,
        [&](uint64_t first, uint64_t last) { return isa().buckets(job.plan.element).decode_chunks(job, first, last); });
  });
  const uint64_t tail = std::max(part.first, plan.quantized);
  if (ok && tail < part.end)
    memcpy(target + (tail - part.first) * part.item, payload + plan.tail_offset + (tail - plan.quantized) * part.item,
           (part.end - tail) * part.item);
  return ok;
}

// Of codes that are entropy coded those of the part's chunks are brought to their places in a payload of bytes, of which
// the rest is not touched.
bool decode_range_of_coded_buckets(const BucketPlan& plan, const Codec& codec, const uint8_t* payload, uint64_t length,
                                   const IndexRange& part, uint8_t* target, int threads) {
  if (length < plan.codes_offset) return false;
  const auto bytes = allocated<uint8_t>(plan.length, "codes");
  memcpy(bytes.get(), payload, plan.codes_offset);
  const IndexRange codes{std::min(part.first / chunk_size * chunk_size, plan.quantized),
                         std::min(round_up(part.end, chunk_size), plan.quantized), plan.quantized, 1};
  if (!decode_range_of_groups(make_plan(code_element, plan.quantized), code_codec(), payload + plan.codes_offset,
                              length - plan.codes_offset, codes, bytes.get() + plan.codes_offset + codes.first,
                              threads))
    return false;
  return decode_range_of_buckets(plan, codec, bytes.get(), plan.length, part, target, threads);
}

}  // namespace

bool decode_range_of_groups(const Plan& plan, const Codec& codec, const Groups& groups, const IndexRange& part,
                            uint8_t* target, int threads) {
  return decode_units(part, plan.group_size(), target, [&](uint64_t begin, uint64_t end, uint8_t* array) {
    const DecodeJob job = groups.job(plan, codec, array, false);
    return all_of(Shares::of(end - begin, threads, min_elements / plan.group_size()), begin,
                  [&](uint64_t first, uint64_t last) { return isa().decode_groups(job, first, last); });
  });
}

bool decode_range_of_groups(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length,
                            const IndexRange& part, uint8_t* target, int threads) {
  Groups groups{};
  return groups.read(plan, codec, payload, length) &&
         decode_range_of_groups(plan, codec, groups, part, target, threads);
}

bool decode_range(const Codec& codec, const Element& element, const DecodeTask& array, uint64_t first, uint64_t count,
                  int threads) {
  const DefaultFloatingPoint environment;
  threads = threads_for(count, threads);
  const uint64_t length = length_of(array);
  if (length > array.limit) return false;
  const IndexRange part{first, first + count, array.count, element.width / 8u};
  auto* const target = static_cast<uint8_t*>(array.target);
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout)) {
    if (is_predicted(codec, array.payload, length, array.count))
      return decode_range_of_predicted(element, array.payload, length, part, target, threads);
    return decode_range_of_groups(make_plan(element, array.count), codec, array.payload, length, part, target, threads);
  }
  const BucketPlan plan = make_bucket_plan(layout, element, array.count);
  const auto decode_buckets_range = layout.byte_codes ? decode_range_of_coded_buckets : decode_range_of_buckets;
  return decode_buckets_range(plan, codec, array.payload, length, part, target, threads);
}

}  // namespace arrcomp::cpu
