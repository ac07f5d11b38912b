// Which bytes of a payload some elements of its array are decoded from, for those who do not have all of it in memory.
#include <algorithm>

#include "cpu/buckets.h"
#include "cpu/driver.h"
#include "cpu/predicted.h"
#include "cpu/ranges.h"
#include "floating_point.h"

namespace arrcomp::cpu {
namespace {

class Spans {
 public:
  explicit Spans(uint64_t limit) : limit_(limit) {}

  void add(uint64_t begin, uint64_t end) {
    end = std::min(end, limit_);
    if (begin < end) spans_.push_back({begin, end});
  }
  std::vector<ByteRange> take() { return std::move(spans_); }

 private:
  uint64_t limit_;
  std::vector<ByteRange> spans_;
};

Plan plan_of_codes(const BucketPlan& plan) { return make_plan(code_element, plan.quantized); }

// Adds the groups that have elements [first, end), of a payload that begins at `offset` of the whole one.
void add_groups(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length, uint64_t offset,
                uint64_t first, uint64_t end, Spans& spans) {
  Groups groups{};
  if (first >= end || !groups.read(plan, codec, payload, length)) return;
  const uint64_t before = first / plan.group_size(), last = ceil_div(end, plan.group_size()) - 1;
  const uint64_t start = offset + plan.groups_offset();
  spans.add(start + (before == 0 ? 0 : groups.ends[before - 1]), start + groups.ends[last]);
}

// Adds the codes, or columns, that elements [first, end) depend on, and all of the mask and of the elements that are kept
// exactly: where those of a part are is not known before their directories are read.
void add_predicted(const Element& element, const DecodeTask& array, uint64_t first, uint64_t end, Spans& spans) {
  PredictedParts parts{};
  if (parts.read_head(element, array.payload, array.limit, array.count) != nullptr) return;
  const auto offset = static_cast<uint64_t>(parts.codes - array.payload);
  const Plan plan = parts.prediction.codes_plan(element);
  for (const IndexRange& codes : codes_of_range(parts.prediction, first, end))
    add_groups(plan, lossless_codec, parts.codes, parts.header.codes_bytes, offset, codes.first, codes.end, spans);
  spans.add(array.limit - parts.bytes_behind_codes(array.limit), array.limit);
}

void add_chunks(const BucketPlan& plan, const uint8_t* payload, uint64_t length, uint64_t first, uint64_t end,
                Spans& spans) {
  if (first >= end || !is_length_right(plan, payload, length)) return;
  const uint64_t before = first / chunk_size, last = ceil_div(end, chunk_size);
  const uint64_t last_element = std::min(last * chunk_size, plan.quantized) - 1;
  spans.add(plan.bucket_offset(before * chunk_size / plan.bucket_size),
            plan.bucket_offset(last_element / plan.bucket_size + 1));
  const uint64_t bytes = code_bytes(chunk_size, plan.code_bits);
  spans.add(plan.codes_offset + before * bytes, std::min(plan.codes_offset + last * bytes, plan.tail_offset));
  if (!plan.has_extras) return;
  const uint64_t* const ends = extras_directory(plan, payload);
  spans.add(plan.length + (before == 0 ? 0 : ends[before - 1]) * sizeof(uint32_t),
            plan.length + ends[last - 1] * sizeof(uint32_t));
}

}  // namespace

std::vector<ByteRange> directory_ranges(const Codec& codec, const Element& element, uint64_t count, uint64_t length) {
  const DefaultFloatingPoint environment;
  Spans spans(length);
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout)) {
    spans.add(0, make_plan(element, count).groups_offset());
    if (may_hold_predicted(codec, element))
      spans.add(0, most_codes_offset + std::max(make_codes_plan(element, count).groups_offset(),
                                                make_plan(element, count).groups_offset()));
    return spans.take();
  }
  const BucketPlan plan = make_bucket_plan(layout, element, count);
  if (layout.byte_codes) {
    spans.add(0, plan.codes_offset + plan_of_codes(plan).groups_offset());
  } else {
    spans.add(0, plan.buckets_offset);
    if (plan.has_extras) spans.add(plan.directory_offset, plan.length);
  }
  return spans.take();
}

std::vector<ByteRange> payload_ranges(const Codec& codec, const Element& element, const DecodeTask& array,
                                      uint64_t first, uint64_t count) {
  const DefaultFloatingPoint environment;
  const uint64_t length = array.limit, end = first + count;
  Spans spans(length);
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout)) {
    if (is_predicted(codec, array.payload, length, array.count)) {
      add_predicted(element, array, first, end, spans);
      return spans.take();
    }
    add_groups(make_plan(element, array.count), codec, array.payload, length, 0, first, end, spans);
    return spans.take();
  }
  const BucketPlan plan = make_bucket_plan(layout, element, array.count);
  const uint64_t coded_end = std::min(end, plan.quantized), item = element.width / 8;
  if (!layout.byte_codes) {
    add_chunks(plan, array.payload, length, first, coded_end, spans);
    const uint64_t tail = std::max(first, plan.quantized);
    if (tail < end)
      spans.add(plan.tail_offset + (tail - plan.quantized) * item, plan.tail_offset + (end - plan.quantized) * item);
  } else if (length >= plan.codes_offset) {
    const uint64_t codes_end = std::min(round_up(end, chunk_size), plan.quantized);
    add_groups(plan_of_codes(plan), code_codec(), array.payload + plan.codes_offset, length - plan.codes_offset,
               plan.codes_offset, first / chunk_size * chunk_size, codes_end, spans);
  }
  return spans.take();
}

}  // namespace arrcomp::cpu
