#include "input.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace arrcomp::fuzz {
namespace {

struct Variant {
  int codec;          // its id
  int size_at;        // which parameter is the bucket size, where inputs may choose it; else -1
  uint16_t min_size;  // of a bucket
  std::vector<double> parameters;
};

// Made by make_seeds.py.
const Variant all_variants[] = {
#include "variants.inc"
};

const std::vector<const Variant*>& variants() {
  static const std::vector<const Variant*> chosen = [] {
    const char* const codec = std::getenv("ARRCOMP_FUZZ_CODEC");
    std::vector<const Variant*> found;
    for (const Variant& variant : all_variants)
      if (codec != nullptr && variant.codec == std::atoi(codec)) found.push_back(&variant);
    if (found.empty()) {
      std::fputs("ARRCOMP_FUZZ_CODEC: expected the id of a codec\n", stderr);
      std::exit(2);
    }
    return found;
  }();
  return chosen;
}

constexpr bool is_complex(int dtype) { return dtype == 14 || dtype == 15; }

}  // namespace

size_t variant_count() { return variants().size(); }

bool Input::read(std::span<const uint8_t> data) {
  if (data.size() < sizeof header || data.size() - sizeof header > max_payload_bytes) return false;
  memcpy(&header, data.data(), sizeof header);
  payload = data.subspan(sizeof header);
  if (!is_dtype(header.dtype)) return false;
  element = elements[header.dtype];
  count = header.elements % (max_elements + 1);
  if (is_complex(header.dtype)) count -= count % 2;
  const Variant& variant = *variants()[header.variant % variant_count()];
  std::vector<double> parameters = variant.parameters;
  if (header.bucket_size > 0 && variant.size_at >= 0)
    parameters[static_cast<size_t>(variant.size_at)] = std::max(header.bucket_size, variant.min_size);
  return codec_of(variant.codec, parameters, codec) && takes(codec, element);
}

bool Input::has_buckets() const {
  BucketLayout layout;
  return bucket_layout(codec, element, layout);
}

BucketPlan Input::bucket_plan() const {
  BucketLayout layout{};
  bucket_layout(codec, element, layout);
  return make_bucket_plan(layout, element, count);
}

Plan Input::plan() const {
  if (has_buckets()) return make_plan(code_element, bucket_plan().quantized);
  Plan plan = make_plan(element, count);
  plan.chunks_per_group = 1u << std::min(header.grouping & 3, 2);
  plan.directory_entry_bytes = header.grouping & 4 ? 8 : 4;
  plan.groups = ceil_div(count, plan.group_size());
  return plan;
}

}  // namespace arrcomp::fuzz
