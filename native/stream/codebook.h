// The parameters of codebooks, with their tables. They travel in the arguments of kernels: 4096 bytes is what these may
// have on every GPU.
#pragma once
#include "stream/buckets.h"
#include "stream/even_step_cells.h"
#include "stream/parameters.h"
#include "stream/step_cells.h"
#include "stream/step_halves.h"

namespace arrcomp {

enum class Scaling : int { none = 0, absmax = 1, tensor = 2 };

struct CodebookSettings {
  StepTables tables;
  uint64_t bucket_size;
  Scaling scaling;
  float at_least_largest;  // at least 1, and no level's magnitude is above it
  StepCells cells;
  uint32_t has_octaves;  // it is a CodebookAtHand, and cells are set

  static constexpr auto parameters() {
    using S = CodebookSettings;
    return std::tuple{integer("scaling", &S::scaling, 0, 2),
                      integer("bucket_size", &S::bucket_size, 16, max_bucket_size),
                      table("borders", "levels", &S::set_tables)};
  }

  bool set_tables(Reals borders, Reals levels) {
    cells.are_set = has_octaves = 0;
    at_least_largest = 1;
    for (const double level : levels)
      at_least_largest = std::max(at_least_largest, std::abs(static_cast<float>(level)));
    return tables.set(borders, levels);
  }

  // What a GPU takes of them to encode, which is not made for every call.
  void prepare_to_encode() { cells.set(tables); }

  BucketLayout layout(const Element& element) const {
    const uint32_t stored = scaling == Scaling::none ? 1 : scalar_bytes(element);
    return {scaling == Scaling::tensor ? 0 : bucket_size, stored, 0, static_cast<uint32_t>(tables.bits), false};
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return largest_magnitude; }
};

// With what lanes of a GPU look cells up by.
struct CodebookAtHand : CodebookSettings {
  StepOctaves octaves;

  // Made by so many threads together, of which this is one.
  ARRCOMP_SHARED void complete(uint32_t thread, uint32_t threads) {
    octaves.set(tables, cells, thread, threads);
    if (thread == 0) has_octaves = cells.are_set;
  }
};

// The same of a CPU that looks up numbers in memory.
struct CodebookWithCells : CodebookSettings {
  EvenStepCells even_cells;
  bool fit;  // the cells, the borders

  explicit CodebookWithCells(const CodebookSettings& settings) : CodebookSettings(settings) {
    fit = even_cells.set(tables);
  }
};

// The same of a CPU that searches 16 bits of numbers, and looks them up.
struct CodebookWithHalves : CodebookSettings {
  StepHalves halves;
  alignas(64) uint16_t lower_levels[StepTables::max_levels], upper_levels[StepTables::max_levels];
  bool fit;

  explicit CodebookWithHalves(const CodebookSettings& settings) : CodebookSettings(settings) {
    fit = halves.set(tables);
    for (int i = 0; i < StepTables::max_levels; ++i) {
      lower_levels[i] = static_cast<uint16_t>(tables.levels[i]);
      upper_levels[i] = static_cast<uint16_t>(tables.levels[i] >> 16);
    }
  }
};

static_assert(sizeof(CodebookSettings) <= 3520, "kernels have more arguments");

}  // namespace arrcomp
