// What is chosen when the kernels are compiled, by -DNAME=VALUE: kernels that differ in it are measured side by side
// (bench/native/CMakeLists.txt), and what is here is what was chosen.
#pragma once

// Blocks of the groups' kernels that a processor shall hold at a time, which limits a thread's registers: 65,536 over
// this times 128 threads.
#ifndef ARRCOMP_MIN_BLOCKS
#define ARRCOMP_MIN_BLOCKS 4
#endif
