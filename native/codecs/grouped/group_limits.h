// How many chunks a group may have on these lanes, and the memory of an encoder of such groups.
#pragma once
#include "codecs/grouped/group_memory.h"
#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

// A GPU has memory for groups of arrays alone.
constexpr int most_chunks = keeps_rows ? max_chunks_of_codes : max_chunks_per_group;

// Of any codec in groups.
template <class Scalar>
using MemoryOfGroup = GroupMemory<Scalar, most_chunks>;

}  // namespace arrcomp::ARRCOMP_ISA
