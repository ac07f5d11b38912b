// Whether runs give the slot of every symbol and rank of every table that the table of slots gives.
#include <cstdio>

#include "codecs/grouped/rans_tables.h"
#define ARRCOMP_ISA plain
#include "lanes/lanes.h"

using namespace arrcomp;

static uint32_t slot_by_runs(const EncodeTable& t, uint32_t position) {
  const auto slots = plain::lookup_runs<runs_per_cell>(t.runs[0], plain::splat<plain::U32>(position));
  return plain::max_all(slots);
}

int main() {
  int wrong = 0;
  for (const EncodeTable& t : tables().encode) {
    for (int s = 0; s < symbol_count; s++) {
      const uint32_t frequency = t.division[s] % slot_count;
      const uint32_t first = frequency == 1 ? 1 : 0;  // the only remainder, see rans_tables.cpp
      for (uint32_t r = first; r < first + frequency; r++) {
        const uint32_t expected = t.entries.slot[(t.division[s] >> (precision + 4)) + r];
        wrong += slot_by_runs(t, (t.run_division[s] >> (precision + 4)) + r) != expected;
      }
      wrong += t.run_division[s] % (1 << (precision + 4)) != t.division[s] % (1 << (precision + 4));
    }
  }
  std::printf("%d slots differ\n", wrong);
  return wrong != 0;
}
