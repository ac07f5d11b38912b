// What instruction sets without mask registers and without wide lookups share (plain, avx2, neon). Included once by
// each of them, after host.h, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

// A mask in both its forms, a bit a lane and all ones in a lane. The compiler drops the form that a caller does not
// use, so that comparing and selecting need no bits, and appending words needs no vector.
struct Mask {
  uint32_t bits;
  U32 lanes;
};

ARRCOMP_INLINE Mask from_lanes(U32 lanes) { return {to_bits(lanes), lanes}; }

ARRCOMP_INLINE U32 spread(uint32_t bits) {
  U32 all = splat<U32>(bits);
  ARRCOMP_EACH(U32, (u32r)((all.v[i] & lane_bits << (i * U32::width)) == lane_bits << (i * U32::width)));
}

ARRCOMP_INLINE Mask mask(uint32_t bits) { return {bits, spread(bits)}; }
ARRCOMP_INLINE uint32_t bits(Mask m) { return m.bits; }
ARRCOMP_INLINE int count(Mask m) { return __builtin_popcount(m.bits); }
ARRCOMP_INLINE Mask operator~(Mask m) { return {~m.bits, m.lanes ^ splat<U32>(~0u)}; }
ARRCOMP_INLINE Mask operator&(Mask a, Mask b) { return {a.bits & b.bits, a.lanes & b.lanes}; }
ARRCOMP_INLINE Mask operator|(Mask a, Mask b) { return {a.bits | b.bits, a.lanes | b.lanes}; }

ARRCOMP_INLINE bool any(Mask m) {
  u32r all = m.lanes.v[0];
#pragma GCC unroll 16
  for (int i = 1; i < U32::registers; i++) all |= m.lanes.v[i];
  return any_set(all);
}

// --- rows that are not full

template <class T>
ARRCOMP_INLINE auto load_first(const T* p, int n) {
  T all[32], last;
  __builtin_memcpy(&last, p + n - 1, sizeof last);
  for (T& lane : all) lane = last;
  copy_few(all, p, n);
  return load(all);
}

template <class T, class V>
ARRCOMP_INLINE void store_first(T* p, V x, int n) {
  T all[32];
  store(all, x);
  copy_few(p, all, n);
}

// The mask's bits of register i.
template <class V>
ARRCOMP_INLINE uint32_t part(Mask m, int i) {
  return m.bits >> (i * V::width) & ((1u << V::width) - 1);
}

// --- comparisons: the compiler's give all ones or zeros in each lane; those of 64 bits keep their low half

#define ARRCOMP_COMPARE32(V, name, op)                                                       \
  ARRCOMP_INLINE U32 name##_lanes(V x, V y) { ARRCOMP_EACH(U32, (u32r)(x.v[i] op y.v[i])); } \
  ARRCOMP_INLINE Mask name(V x, V y) { return from_lanes(name##_lanes(x, y)); }
#define ARRCOMP_COMPARE64(V, name, op)                                                       \
  ARRCOMP_INLINE U64 name##_lanes(V x, V y) { ARRCOMP_EACH(U64, (u64r)(x.v[i] op y.v[i])); } \
  ARRCOMP_INLINE Mask name(V x, V y) { return from_lanes(lo(name##_lanes(x, y))); }
ARRCOMP_COMPARE32(U32, eq, ==)
ARRCOMP_COMPARE32(U32, lt, <)
ARRCOMP_COMPARE32(U32, ge_varying, >=)
ARRCOMP_COMPARE32(F32, le, <=)
ARRCOMP_COMPARE32(F32, lt, <)
ARRCOMP_COMPARE64(U64, eq, ==)
ARRCOMP_COMPARE64(U64, lt, <)
ARRCOMP_COMPARE64(F64, le, <=)
ARRCOMP_COMPARE64(F64, lt, <)
#undef ARRCOMP_COMPARE32
#undef ARRCOMP_COMPARE64

template <class T>
ARRCOMP_INLINE Mask ne(Lanes<T> x, Lanes<T> y) {
  return ~eq(x, y);
}
template <class T>
ARRCOMP_INLINE Mask ge(Lanes<T> x, Lanes<T> y) {
  return ~lt(x, y);
}

ARRCOMP_INLINE U32 select(Mask m, U32 yes, U32 no) { ARRCOMP_EACH(U32, blend(m.lanes.v[i], yes.v[i], no.v[i])); }
ARRCOMP_INLINE F32 select(Mask m, F32 yes, F32 no) { ARRCOMP_EACH(F32, blend(m.lanes.v[i], yes.v[i], no.v[i])); }
ARRCOMP_INLINE U64 select(Mask m, U64 yes, U64 no) {
  U64 lanes = join(m.lanes, m.lanes);
  ARRCOMP_EACH(U64, blend((u32r)lanes.v[i], yes.v[i], no.v[i]));
}
ARRCOMP_INLINE F64 select(Mask m, F64 yes, F64 no) { return as_double(select(m, as_bits(yes), as_bits(no))); }

// --- tables

struct Table64 {
  const uint32_t* entries;
};
ARRCOMP_INLINE Table64 table(const uint32_t* entries) { return {entries}; }
ARRCOMP_INLINE U32 lookup(Table64 t, U32 i) { return gather(t.entries, i); }

}  // namespace arrcomp::ARRCOMP_ISA
