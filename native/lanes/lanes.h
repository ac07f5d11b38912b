// The vocabulary of 32 lanes: everything a codec may do. A codec is written once on these types and functions; each
// instruction set implements them in one header, bit for bit alike:
//
//   plain.h   compiler vectors, any CPU    avx2.h, avx512.h   x86-64    neon.h   AArch64    cuda.h   one warp
//
// Include this file with ARRCOMP_ISA defined as plain, avx2, avx512, neon or cuda: all of it lands in the namespace
// arrcomp::ARRCOMP_ISA. A program, or a translation unit, may hold several: redefine ARRCOMP_ISA
// and include this file again. Its functions are ARRCOMP_INLINE: always inlined, and never shared between translation
// units, which are compiled for different instruction sets.
//
// A value that is not a lane type (a pointer, a count, the result of `any`) is *uniform*: the same in all lanes. On a
// GPU all 32 threads of the warp call every function together. Memory that other lanes have written is read only after
// `sync()`.
//
//   constants   int streams            how many independent streams to interleave to hide latency when decoding
//               int encoder_streams    the same when encoding
//               int rows_at_once       rows that a loop keeps in variables: 8, or 1 where registers have no addresses
//               int rows_side_by_side  rows whose values stay in registers together: 4, or 1
//               bool keeps_rows        memory is near: what is needed again of a chunk's rows is kept there, not made again
//               bool tiles_in_registers    a row is one register, so that those of a tile stay in registers
//               bool gathers_pairs     gather_pair takes less than two times `gather`, and gather_at and srl_modulo take few
//                                      instructions
//               bool wide_permutations     lookup_runs, lookup_alias, lookup_halves and numbers_below are faster than
//                                      `gather` from tables that serve instead
//               bool short_lookup      lookup<16> is a few instructions, which stay in registers
//               bool quick_powers       near_log2 and near_power are an instruction each
//               bool can_stream        StreamedRows leave the caches alone (else they are stored)
//
//   types       Mask  U32  U64  F32  F64  Table64        U32::scalar is uint32_t, and so on
//
//   Mask        any(m) count(m) bits(m) mask(bits) ~m m&m m|m       bit l of `bits` (a uniform uint32_t) is lane l
//   all types   splat<V>(scalar)  select(m, yes, no);  lane_numbers() -> U32, 0 to 31
//               in_registers(x)        x, told to the compiler: for what one of several branches has made
//               load(const scalar*)  store(scalar*, v)       any alignment of the scalar
//               load_first(p, n)       n of 1 to 32 elements, lanes from n on repeat the last;  store_first(p, v, n)
//               in_device_memory(p)    p, told to the compiler to be no memory of the warp (lanes of a CPU: p)
//   U32 memory  load_pair_if(first, second, const uint32_t* p, i, x, y)    x = load(p + 32 i) where `first` (uniform)
//                                      holds, y = load(p + 32 (i + 1)) where `second` does: without a branch and
//                                      without waiting for them; of memory that nobody writes meanwhile
//               load(const uint16_t*) load(const uint8_t*), zero-extended; store(uint16_t*, v) store(uint8_t*, v),
//               truncated;  load_first / store_first for these too
//   rows        n rows, one after the other in memory, at an address that is a multiple of 16 bytes; they fill a multiple
//               of 512 bytes. A GPU moves 16 bytes a lane, and gives each row its lanes through shared memory.
//               fetch_rows<n>(const scalar*) -> Fetched   reading begins;  arrive(fetched, V (&rows)[n])  has ended
//               load_rows(const scalar*, V (&rows)[n])    both in one;  store_rows(scalar*, V (&rows)[n]), also of
//                                      256 bytes
//               of U32 also at const uint16_t* and const uint8_t*, zero-extended and truncated as above
//               arrive_unsorted<T>(fetched, rows)     the same elements (T as in memory), without an exchange, in an
//                                      order of the machine's own.  store_unsorted<T>(uint16_t*, rows) puts what became
//                                      of them in order, the lower halves;  store_upper_unsorted<T>  the upper ones
//               nonzero_unsorted<T>(rows) -> Mask     where it has all lanes, no two rows 2b and 2b + 1 of memory are 0
//               load_apart(const scalar* p, d, n)     lane l gets p[l * d], l from n on p[0];  store_apart(scalar* p,
//                                      d, n, v)  the first n lanes, at p[l * d] (both slow on a CPU); of V (&rows)[k] each
//                                      lane's k values, one after the other from there on
//               load_places(const T* p, U64 i, n)   lane l gets p[i[l]], l from n on 0;  store_places(T* p, U64 i, n, v)
//                                      the first n lanes, at p[i[l]]. T the scalar or shorter, zero-extended and
//                                      truncated (slow on a CPU)
//               load_pairs(const scalar* p, x, y)      x gets the 32 elements at even places from p on, y the others;
//                                      store_pairs(scalar* p, x, y)    the same back
//               load_first_pairs(p, n, x, y)           of n elements, of 64, alone; other lanes get 0;
//                                      store_first_pairs(p, x, y, n)   the first n alone
//   streaming   StreamedRows<T>(p)     rows of elements T, one after the other, at p, aligned to 16 bytes: for what is not
//                                      read soon
//                 .add(v)              the next row;  .finish()   behind the last row
//               end_streaming()        behind the last rows of all, before other threads read what was stored
//   U32, U64    + - & | ^  x << k  x >> k  sar(x, k)       k uniform, 0 to (bits - 1);  modulo 2^bits
//               eq ne lt ge    unsigned                    min max    unsigned
//               ge_varying(x, y)       ge(x, y), in fewest instructions where y is not uniform
//               masked_or<mask, bits>(x)   (x & mask) | bits, of constants
//               merged<mask>(x, y)     (x & mask) | (y & ~mask)
//               shift_in(before, x)    lane 0 gets lane 31 of `before`, lane l gets lane l - 1 of x
//               prefix_sum(x)          inclusive, modulo 2^bits;  broadcast_last(x)  lane 31 in all lanes
//               prefix_sums(V (&rows)[n], before, step)   the same over n rows, one after the other, n = 4 or 8, of
//                                      x + step; each lane of `before` has what is added to all of them, then the last sum
//               or_all(x) max_all(x) min_all(x)   over the lanes, uniform
//               max_of_halves(x) -> Halves{lower, upper}   over lanes 0 to 15 and 16 to 31, uniform
//               max_of_halves(const U32 (&rows)[16]) -> U32    the same of each row, in lanes 2 j and 2 j + 1
//               compress(p, x, m)      appends the lanes of m, ascending, at p; returns the new end (writes up to 32
//                                      words from p on)
//               expand(p, x, m)        lanes of m take the words from p on into x, ascending, others 0; returns the
//                                      new p (reads up to 32 words from p on)
//               compress(p, at, x, m)  expand(p, at, x, m)     the same `at` bytes behind p, a uint32_t, of 32-bit
//                                      words; they return the new one
//               RowPlaces<T>(p, at)    the same of many rows, one after the other, T uint32_t or const uint32_t: a GPU
//                                      then counts each row's lanes once; T uint8_t: truncated (slow on a CPU)
//                 .compress(x, m)  .expand(x, m)     of the next row; lanes outside of m get anything from expand
//                 .end_behind(p)       the new `at`
//               store_planes<n>(uint32_t* p, const uint8_t* rows, k)    of 8 rows of bytes, at an address that is a
//                                      multiple of 8: p[n i + b] is bit k + b of row i, lane by lane, b below n, k + n
//                                      at most 8 (slow on a CPU)
//   U32         x * y (low half)  mulhi(x, y)  srlv(x, n) with n per lane, 0 to 31
//               funnel(x, y, k)        the lower half of the 64 bits of y above those of x, shifted right by k, uniform, 0
//                                      to 32;  funnel_wrapped(x, y, k)  by k mod 32
//               in_halves(x, y)        the lower halves of x and, above them, of y
//               put_above(x, k, y)     x << k | y, y below 2^k, k uniform, 0 to 31
//               minus_shifted(x, k)    -(x << k), k uniform, 0 to 31
//               bit_length(x)  0 for 0, else 1 + floor(log2 x);  of a uniform uint32_t or uint64_t too
//               sum(x) modulo 2^32, uniform
//               gather(const uint32_t* t, i)     i below 2^31; also of uint16_t and uint8_t, zero-extended: these may
//                                      read four bytes from t[i] on
//               gather_pair(const uint32_t (*t)[2], i, x, y)   x = t[i][0] and y = t[i][1], t aligned to 8 bytes
//               gather_at(const uint16_t* t, n)        t[n / 2], n even;  srl_modulo(x, n)   x >> n mod 32, n per lane
//               table(const uint32_t[64]) -> Table64, which may refer to its argument;  lookup(t, i) with i below 64
//               lookup<n>(const uint32_t* t, i)    t[i mod n], n = 16, 32, 64, 128 or 256 (with AVX2 8 too); faster than
//                                      `gather`, the more so the smaller n is
//               nearby<n>(const uint32_t* t)       the n entries of t for `gather`, where that is fastest: a GPU copies
//                                      them to memory of the warp, in place of those before; t aligned to 16 bytes, n
//                                      a multiple of 128
//               lookup_runs<n>(const uint16_t t[64 n], i)    i below 2^15: i.  2^15 + j with j below 2^11: (j + v) mod
//                                      2^11, v the lower 11 bits of the last of the entries t[64 k + j / 32], k below
//                                      n, whose upper 5 bits are j mod 32 at most (or of the first of all)
//               alias_table(const uint16_t t[3][64]) -> AliasTable, which may refer to its argument
//               lookup_alias(t, x) -> AliasSlots{symbol, frequency, rank}    with b = x / 32 mod 64 and r = x mod 32:
//                                      where r is t[0][b] / 2^11 at least, symbol = t[0][b] mod 64 and rank = r + t[1][b]
//                                      mod 2^16, else b and r;  frequency = t[2][symbol]
//               lookup_alias(const AliasTable (&t)[n], k, x)   the same in t[k], k below n per lane
//               lookup_halves<n>(const uint16_t* t, const uint16_t* u, i)    t[i] | u[i] << 16, i below 2^16, mod n, n =
//                                      128 or 256
//               numbers_below(const uint16_t t[3][256], F32 (&v)[n], found)    for each of n rows, of numbers or quiet NaN,
//                                      whose words x have the keys k = x ^ (sar(x, 31) | 2^31): with h the upper half
//                                      of k plus 64, mod 2^16, from node 1 of the tree t[0] eight times to the child
//                                      2i, or 2i + 1 where t[0][i] is below h. Then i - 256, and one more where
//                                      t[1][i - 256] is h and t[2][i - 256] below the lower half of k
//   U64         lo(x) hi(x) -> U32, join(lo, hi) -> U64,  bit_length(x) -> U32
//   words       append(uint16_t* p, x, m)              appends the low 16 bits of m's lanes, ascending; returns the new
//                                      end (writes up to 32 words from p on)
//               WordSource(const uint16_t* begin, const uint16_t* end)     the words [begin, end), which are taken from
//                                      the end backwards; one at a time for each warp; it reads no more than 64 bytes
//                                      behind the end and, where it has words, 15 before the beginning
//                 .bring_near()        before each (at most) 256 words that are taken
//                 .take(U32& x, m)     moves the end down by count(m); from there on the lanes of m, ascending, take a
//                                      word w each: x = (x << 16) | w
//                 .left(begin)         words that are left; negative where more were taken than there are: what lanes
//                                      got instead is not specified
//   F32, F64    + - * /  each rounded to nearest even, never contracted;  abs  le lt (false with NaN)
//               min(x, y) = y < x ? y : x     max(x, y) = x < y ? y : x
//               lower(x, y)  higher(x, y)     the smaller, the larger number; either where they are equal, or one is NaN
//               size(x)                |x| of a number; of NaN some NaN
//               as_bits(f) -> U32 / U64,  as_float(u) -> F32,  as_double(u) -> F64
//   F32         to_int(f) -> U32       nearest even int32; unspecified (but no trap) outside of int32
//               to_code(f, n) -> U32   nearest even, but at least 0 and at most n, which is below 2^23; 0 of NaN
//               to_float(u)            of an int32, rounded to nearest even
//               from_half(u) -> F32    exact, of float16 bits (NaN to some NaN of the same sign)
//               to_half(f) -> U32      float16 bits, rounded to nearest even (NaN to some NaN, 0x7fc00000 to
//                                      0x7e00)
//               to_double(f) -> F64    exact (NaN to some NaN)
//               near_log2(x)           log2 |x| of a normal number, off by 2^-22 of it, or of 1, at most; -infinity of 0,
//                                      and perhaps of subnormal numbers
//               exponents(x)           floor(log2 |x|) of a normal number; of others less than -126, or -infinity
//               near_power(x)          2^x of a number from -126 to 127, off by 2^-22 of it at most
//               near_sum(x, y, z)      x * y + z, rounded once or twice. What is near differs from one instruction
//                                      set to the next: no byte may depend on it
//   warp        sync()  leader()       true in one lane only, for uniform stores
//               copy_bytes(to, from, n)     all even, the two apart
//               uniform(n)             a uniform uint32_t, told to the compiler
//               set_bits(uint32_t* p, x, m)     sets bit x of p's, x a U32, in lanes of m (slow on a CPU)
//               add_ones(uint32_t* p, x, m)     adds 1 to p[x], x a U32, for each lane of m (slow on a CPU)
//               prefetch(p)            p is read soon, or may be no address at all;  prefetch_to_write(p)  written
//
// Arithmetic expects the default floating-point environment: rounding to nearest even, subnormals kept.
// There is no guard here: the header of each instruction set has its own.
#ifndef ARRCOMP_ISA
#error "define ARRCOMP_ISA as plain, avx2, avx512, neon or cuda before including lanes.h"
#endif

#define ARRCOMP_JOIN_TOKENS(a, b) a##b
#define ARRCOMP_JOIN(a, b) ARRCOMP_JOIN_TOKENS(a, b)
#define ARRCOMP_QUOTE_TOKENS(a) #a
#define ARRCOMP_QUOTE(a) ARRCOMP_QUOTE_TOKENS(a)

#define ARRCOMP_ON_DEVICE_plain 0
#define ARRCOMP_ON_DEVICE_avx2 0
#define ARRCOMP_ON_DEVICE_avx512 0
#define ARRCOMP_ON_DEVICE_neon 0
#define ARRCOMP_ON_DEVICE_cuda 1

#undef ARRCOMP_INLINE
#if ARRCOMP_JOIN(ARRCOMP_ON_DEVICE_, ARRCOMP_ISA)
#define ARRCOMP_INLINE static __device__ __forceinline__
#else
#define ARRCOMP_INLINE static inline __attribute__((always_inline))
#endif

#include "inline.h"
#include ARRCOMP_QUOTE(ARRCOMP_ISA.h)
