#include "cpu/coded_buckets.h"

#include <cstring>

#include "cpu/buckets.h"
#include "cpu/driver.h"
#include "memory.h"

namespace arrcomp::cpu {

uint64_t encode_coded_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload,
                              uint64_t seed, int threads) {
  const auto bytes = allocated<uint8_t>(plan.length, "codes");
  encode_buckets(codec, plan, source, bytes.get(), seed, threads);
  memcpy(payload, bytes.get(), plan.codes_offset);
  const Plan codes = make_plan(code_element, plan.quantized);
  return plan.codes_offset +
         encode_array(codes, code_codec(), bytes.get() + plan.codes_offset, payload + plan.codes_offset, seed, threads);
}

bool decode_coded_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, uint64_t length,
                          void* target, int threads) {
  if (length < plan.codes_offset) return false;
  const auto bytes = allocated<uint8_t>(plan.length, "codes");
  memcpy(bytes.get(), payload, plan.codes_offset);
  if (!decode_array(make_plan(code_element, plan.quantized), code_codec(), payload + plan.codes_offset,
                    length - plan.codes_offset, bytes.get() + plan.codes_offset, threads))
    return false;
  return decode_buckets(codec, plan, bytes.get(), plan.length, target, threads);
}

}  // namespace arrcomp::cpu
