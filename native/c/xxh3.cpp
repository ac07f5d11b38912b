// XXH3 is specified in the xxHash project's doc/xxhash_spec.md; the names of primes and steps are those of that page.
#include "c/xxh3.h"

#include <array>
#include <cstring>

namespace arrcomp::c {
namespace {

constexpr uint64_t prime32_1 = 0x9E3779B1, prime32_2 = 0x85EBCA77, prime32_3 = 0xC2B2AE3D;
constexpr uint64_t prime64_1 = 0x9E3779B185EBCA87, prime64_2 = 0xC2B2AE3D27D4EB4F, prime64_3 = 0x165667B19E3779F9,
                   prime64_4 = 0x85EBCA77C2B2AE63, prime64_5 = 0x27D4EB2F165667C5;
constexpr uint64_t prime_mx1 = 0x165667919E3779F9;

constexpr size_t stripe_bytes = 64, secret_bytes = 192, secret_step = 8;
constexpr size_t stripes_per_block = (secret_bytes - stripe_bytes) / secret_step;
constexpr size_t block_bytes = stripes_per_block * stripe_bytes;
constexpr size_t medium_bytes = 128, long_bytes = 240;  // what is longer is hashed otherwise

constexpr uint8_t secret[secret_bytes] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

using Accumulators = std::array<uint64_t, 8>;

uint64_t word(const uint8_t* bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

// Both halves of the 128-bit product, xored.
uint64_t folded_product(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t avalanche(uint64_t hash) {
  hash ^= hash >> 37;
  hash *= prime_mx1;
  return hash ^ hash >> 32;
}

uint64_t mixed(const uint8_t* input, const uint8_t* key) {
  return folded_product(word(input) ^ word(key), word(input + 8) ^ word(key + 8));
}

uint64_t hash_short(const uint8_t* input, size_t size) {
  uint64_t hash = size * prime64_1;
  for (size_t i = (size - 1) / 32 + 1; i-- > 0;)
    hash += mixed(input + 16 * i, secret + 32 * i) + mixed(input + size - 16 * (i + 1), secret + 32 * i + 16);
  return avalanche(hash);
}

uint64_t hash_medium(const uint8_t* input, size_t size) {
  uint64_t hash = size * prime64_1;
  for (size_t i = 0; i < 8; ++i) hash += mixed(input + 16 * i, secret + 16 * i);
  hash = avalanche(hash);
  for (size_t i = 8; i < size / 16; ++i) hash += mixed(input + 16 * i, secret + 16 * (i - 8) + 3);
  return avalanche(hash + mixed(input + size - 16, secret + 136 - 17));
}

// Adds so many stripes. Accumulators go by value: in memory, the input's bytes might be theirs.
Accumulators with_stripes(Accumulators acc, const uint8_t* input, const uint8_t* key, size_t stripes) {
  for (; stripes > 0; --stripes, input += stripe_bytes, key += secret_step) {
    for (size_t i = 0; i < acc.size(); ++i) {
      const uint64_t value = word(input + 8 * i), keyed = value ^ word(key + 8 * i);
      acc[i ^ 1] += value;
      acc[i] += (keyed & 0xffffffff) * (keyed >> 32);
    }
  }
  return acc;
}

Accumulators scrambled(Accumulators acc) {
  const uint8_t* const key = secret + secret_bytes - stripe_bytes;
  for (size_t i = 0; i < acc.size(); ++i) acc[i] = (acc[i] ^ acc[i] >> 47 ^ word(key + 8 * i)) * prime32_1;
  return acc;
}

uint64_t merged(const Accumulators& acc, size_t size) {
  uint64_t hash = size * prime64_1;
  for (size_t i = 0; i < acc.size(); i += 2)
    hash += folded_product(acc[i] ^ word(secret + 11 + 8 * i), acc[i + 1] ^ word(secret + 19 + 8 * i));
  return avalanche(hash);
}

uint64_t hash_long(const uint8_t* input, size_t size) {
  Accumulators acc{prime32_3, prime64_1, prime64_2, prime64_3, prime64_4, prime32_2, prime64_5, prime32_1};
  const size_t blocks = (size - 1) / block_bytes;  // but for the last
  for (size_t block = 0; block < blocks; ++block)
    acc = scrambled(with_stripes(acc, input + block * block_bytes, secret, stripes_per_block));
  const size_t done = blocks * block_bytes;
  acc = with_stripes(acc, input + done, secret, (size - 1 - done) / stripe_bytes);
  // The last stripe may overlap the one before.
  acc = with_stripes(acc, input + size - stripe_bytes, secret + secret_bytes - stripe_bytes - 7, 1);
  return merged(acc, size);
}

}  // namespace

uint64_t xxh3(std::span<const uint8_t> bytes) {
  if (bytes.size() <= medium_bytes) return hash_short(bytes.data(), bytes.size());
  return (bytes.size() <= long_bytes ? hash_medium : hash_long)(bytes.data(), bytes.size());
}

}  // namespace arrcomp::c
