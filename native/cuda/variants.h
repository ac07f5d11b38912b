// What is chosen when the kernels are compiled, by -DNAME=VALUE: kernels that differ in it are measured side by side
// (bench/native/CMakeLists.txt), and what is here is what was chosen.
#pragma once

// Blocks of the groups' kernels that a processor shall hold at a time, which limits a thread's registers: 65,536 over
// this times 128 threads.
#ifndef ARRCOMP_MIN_BLOCKS
#define ARRCOMP_MIN_BLOCKS 4
#endif

// The same for the kernel that decodes regular groups, of words of 32 bits. Its shared memory, 11 KB a warp, lets no
// more than 5 blocks into a processor with 228 KB: each may as well have more registers.
#ifndef ARRCOMP_REGULAR_BLOCKS
#define ARRCOMP_REGULAR_BLOCKS 8
#endif
