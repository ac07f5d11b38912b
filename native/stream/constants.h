// Numbers of the format (FORMAT.md), in one place.
#pragma once
#include <cstdint>

#include "inline.h"

namespace arrcomp {

constexpr int lanes_per_row = 32;
constexpr int rows_per_chunk = 128;
constexpr int rows_per_tile = 8;   // one width of the packed coder, or one table
constexpr int rows_per_block = 2;  // one bit of the block mask
constexpr int chunk_size = lanes_per_row * rows_per_chunk;
constexpr int tiles_per_chunk = rows_per_chunk / rows_per_tile;
constexpr int max_chunks_per_group = 4;
constexpr int max_chunks_of_codes = 16;  // in a group of the codes of a predicted array
constexpr int max_exceptions = 256;      // more, and storing the chunk without loss is cheaper

constexpr int symbol_count = 64;
constexpr int long_escape = 0xffff;  // announces the rest of an escaped value in full width
constexpr int precision = 11;        // bits of a frequency
constexpr int slot_count = 1 << precision;
constexpr int slots_per_bucket = slot_count / symbol_count;
constexpr uint32_t lowest_state = 1u << 16;
constexpr int quantized_tables = 128;
constexpr int exponent_tables = 64;
constexpr int table_count = quantized_tables + exponent_tables;
constexpr int table_of_classes = 253;    // stands for a table of the chunk's own
constexpr int tables_of_contexts = 254;  // stands for a table for each context
constexpr int tables_of_tiles = 255;     // stands for a table of each tile's own
constexpr int context_count = 4;

// Classes of words.
constexpr int least_told = 1, most_told = 5;  // bits below the highest one
constexpr int bits_of_frequency_code = 6;
constexpr int most_bits_at_once = 16;  // that a state gives beside classes

constexpr int carried_rows = 8;  // rows whose two lowest bits travel in the initial states
constexpr int carried_bits = 2;

// Rows after which states give no words away: as many as a chunk's head stands for.
constexpr int most_dry = 56;
constexpr uint32_t first_dry_state = 1;
ARRCOMP_SHARED constexpr int dry_rows_of(int dry) { return dry <= 32 ? dry : 4 * dry - 96; }

// Of elements that have numbers.
constexpr int least_width_of_multiples = 32;
constexpr int most_entries = 4096;   // of a dictionary
constexpr int bits_of_entries = 16;  // of a chunk whose elements have numbers: kinds of multiples stand above them

constexpr int least_missing = 4;  // fewer equal elements are not left out of a chunk
constexpr int max_mark_shift = 11;

constexpr int states_bytes = lanes_per_row * 4;
constexpr int payload_header_bytes = 16;
constexpr int reference_header_bytes = 72;  // of a payload that is coded against a reference

enum class Transform : uint8_t { quantized = 0, integer = 1, exponent = 2, numbered = 3 };
enum class Coder : uint8_t { none = 0, packed = 1, entropy = 2 };
enum class MaskKind : uint8_t { none = 0, blocks = 1, values = 2, marks = 3 };

}  // namespace arrcomp
