// XXH3-64 with seed 0, the checksum of streams.
#pragma once
#include <cstdint>
#include <span>

namespace arrcomp::c {

constexpr size_t xxh3_min_bytes = 17;  // shorter inputs have rules of their own, and no stream is as short

// The hash of at least xxh3_min_bytes bytes.
uint64_t xxh3(std::span<const uint8_t> bytes);

}  // namespace arrcomp::c
