// Operations that follow from others on every instruction set. Included once by each, last, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE U32 bit_length(U64 x) {
  U32 upper = hi(x);
  Mask small = eq(upper, splat<U32>(0));
  return bit_length(select(small, lo(x), upper)) + select(small, splat<U32>(0), splat<U32>(32));
}

ARRCOMP_INLINE int bit_length(uint64_t x) {
  const auto upper = (uint32_t)(x >> 32);
  return upper == 0 ? bit_length((uint32_t)x) : 32 + bit_length(upper);
}

ARRCOMP_INLINE uint64_t or_all(U64 x) { return (uint64_t)or_all(hi(x)) << 32 | or_all(lo(x)); }

ARRCOMP_INLINE uint64_t max_all(U64 x) {
  uint32_t upper = max_all(hi(x));
  Mask largest = eq(hi(x), splat<U32>(upper));
  return (uint64_t)upper << 32 | max_all(select(largest, lo(x), splat<U32>(0)));
}

template <class Word>
ARRCOMP_INLINE typename Word::scalar min_all(Word x) {
  using Scalar = typename Word::scalar;
  return ~max_all(x ^ splat<Word>(~Scalar{0}));
}

ARRCOMP_INLINE Halves<uint64_t> max_of_halves(U64 x) {
  const Mask upper = mask(0xffff0000u);
  return {max_all(select(upper, splat<U64>(0), x)), max_all(select(upper, x, splat<U64>(0)))};
}

}  // namespace arrcomp::ARRCOMP_ISA
