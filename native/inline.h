// How functions of headers are declared.
#pragma once

// SHARED   on host and device. Always inlined: these headers are compiled for several instruction sets, and a copy
//          left out of line by one of them could be linked into code for another.
// METHOD   a small member function on lanes: always inlined, so that lanes stay in registers
// PART     a larger function on lanes (a template, or a member of one): inlined or not, as a CPU's compiler sees fit
// APART    a larger one that is never inlined on a CPU: for what is rare, or would crowd what is not
// CALLED   a function that is rarely called, and by no method: never inlined anywhere, so that it takes no registers
// LAMBDA   behind the parameters of a lambda on lanes: always inlined
// UNROLL   before a loop over a short array, which then is registers
// ROLLED   before a loop each round of which is made once on a GPU: over rows or tiles, as its instructions are counted
//          (bench/gpu_instructions.py, by the comment `counted: name, n rows` on the loop's first line), or of a large body
#ifdef __CUDACC__
#define ARRCOMP_SHARED __host__ __device__ __forceinline__
#define ARRCOMP_METHOD __device__ __forceinline__
#define ARRCOMP_PART __device__ __forceinline__
#define ARRCOMP_APART __device__ __forceinline__
#define ARRCOMP_CALLED static __device__ __noinline__
#define ARRCOMP_LAMBDA
#define ARRCOMP_UNROLL _Pragma("unroll")
#ifdef __CUDA_ARCH__
#define ARRCOMP_ROLLED _Pragma("unroll 1")
#else
#define ARRCOMP_ROLLED  // SHARED functions are compiled for the host too, whose compiler knows no such pragma
#endif
#else
#define ARRCOMP_SHARED inline __attribute__((always_inline))
#define ARRCOMP_PART inline
#define ARRCOMP_APART inline __attribute__((noinline))
#define ARRCOMP_CALLED static __attribute__((noinline))
// ARRCOMP_COMPACT: what is rarely run, in a build that shall not take long (cmake/targets.cmake).
// ARRCOMP_SANITIZED: checks in functions that are one would take a compiler ten minutes.
#if defined(ARRCOMP_COMPACT) || defined(ARRCOMP_SANITIZED)
#define ARRCOMP_METHOD inline
#define ARRCOMP_LAMBDA
#else
#define ARRCOMP_METHOD inline __attribute__((always_inline))
#define ARRCOMP_LAMBDA __attribute__((always_inline))
#endif
#define ARRCOMP_UNROLL _Pragma("GCC unroll 8")
#define ARRCOMP_ROLLED
#endif
