// Arrays that are coded against a reference, on the CPU (FORMAT.md, section 10).
#pragma once
#include "cpu/driver.h"
#include "stream/reference.h"

namespace arrcomp::cpu {

// Encodes to `payload`, of the codec's capacity; returns the payload's length.
uint64_t encode_referenced(const EncodeJob& job, const void* reference, uint8_t* payload, int threads);

// Throws WrongReference for the first array whose reference is another one than the payload's.
void check_references(const Element& element, std::span<const DecodeTask> arrays, int threads);

// Names what is corrupt in header or directories; null if nothing is.
const char* referenced_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count);

// Decodes a payload of `length` bytes, whose reference is checked; false where it is corrupt.
bool decode_referenced(const Element& element, const DecodeTask& array, uint64_t length, int threads);

}  // namespace arrcomp::cpu
