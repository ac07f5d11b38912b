// The instruction set in use.
#pragma once
#include "cpu/isa.h"

namespace arrcomp::cpu {
const Isa& isa();
}
