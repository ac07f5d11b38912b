// Runs, aliases and searches, for instruction sets without permutations of 16-bit lanes: bit for bit what the others do, but no
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

template <int n>
ARRCOMP_INLINE AliasSlots lookup_alias(const AliasTable (&t)[n], U32 table, U32 x) {
  AliasSlots found = lookup_alias(t[0], x);
  for (int k = 1; k < n; k++) {
    const AliasSlots next = lookup_alias(t[k], x);
    const Mask own = eq(table, splat<U32>((uint32_t)k));
    found = {select(own, next.symbol, found.symbol), select(own, next.frequency, found.frequency),
             select(own, next.rank, found.rank)};
  }
  return found;
}

template <int n>
ARRCOMP_INLINE U32 lookup_halves(const uint16_t* lower, const uint16_t* upper, U32 i) {
  const U32 at = i & splat<U32>(n - 1);
  return gather(lower, at) | gather(upper, at) << 16;
}

template <int n>
ARRCOMP_INLINE void numbers_below(const uint16_t (*t)[256], const F32 (&v)[n], U32 (&found)[n]) {
  const U32 half = splat<U32>(0xffff), one = splat<U32>(1), none = splat<U32>(0);
  for (int j = 0; j < n; j++) {
    const U32 x = as_bits(v[j]), key = x ^ (sar(x, 31) | splat<U32>(1u << 31));
    const U32 upper = ((key >> 16) + splat<U32>(64)) & half;
    U32 node = one;
    for (int level = 0; level < 8; level++) node = node + node + select(lt(gather(t[0], node), upper), one, none);
    const U32 before = node - splat<U32>(256);
    const Mask is_below = eq(gather(t[1], before), upper) & lt(gather(t[2], before), key & half);
    found[j] = before + select(is_below, one, none);
  }
}

}  // namespace arrcomp::ARRCOMP_ISA
