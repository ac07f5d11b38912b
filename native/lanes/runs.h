// Runs and aliases, for instruction sets without permutations of 16-bit lanes: bit for bit what the others do, but no
// faster than a table. Included once by each of them, last, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool wide_permutations = false;

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

struct AliasTable {
  const uint16_t (*rows)[64];
};
ARRCOMP_INLINE AliasTable alias_table(const uint16_t (*t)[64]) { return {t}; }

ARRCOMP_INLINE AliasSlots lookup_alias(const AliasTable& t, U32 x) {
  const U32 bucket = x >> 5 & splat<U32>(63), position = x & splat<U32>(31);
  const U32 entry = gather(t.rows[0], bucket);
  const Mask aliased = ge(position, entry >> 11);
  const U32 symbol = select(aliased, entry & splat<U32>(63), bucket);
  const U32 moved = (position + gather(t.rows[1], bucket)) & splat<U32>(0xffff);
  return {symbol, gather(t.rows[2], symbol), select(aliased, moved, position)};
}

}  // namespace arrcomp::ARRCOMP_ISA
