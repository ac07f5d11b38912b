// Runs, for instruction sets without permutations of 16-bit lanes: bit for bit what the others do, but no faster than a
// table. Included once by each of them, last, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool wide_runs = false;

template <int n>
ARRCOMP_INLINE U32 lookup_runs(const uint16_t* t, U32 i) {
  const U32 cell = i >> 5 & splat<U32>(63), position = i & splat<U32>(31);
  U32 run = gather(t, cell);
  for (int k = 1; k < n; k++) {
    const U32 next = gather(t + 64 * k, cell);
    run = select(lt(position, next >> 11), run, next);
  }
  return select(lt(i, splat<U32>(1u << 15)), i, (i + run) & splat<U32>(2047));
}

}  // namespace arrcomp::ARRCOMP_ISA
