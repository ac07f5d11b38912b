// The instruction set in use.
#pragma once
#include "cpu/machine.h"

namespace arrcomp::cpu {
const Machine& machine();
}
