// Bit lengths on instruction sets whose vectors cannot count leading zeros (plain, avx2). Included once by each of
// them, after its Mask, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

// By the exponent of a float. With the second highest bit gone, the conversion cannot round up to the next power of
// two.
ARRCOMP_INLINE U32 bit_length(U32 x) {
  U32 exponent = as_bits(to_float(x & (x >> 1 ^ splat<U32>(~0u)))) >> 23;
  U32 length = select(eq(x, splat<U32>(0)), splat<U32>(0), exponent - splat<U32>(126));
  return select(eq(x >> 31, splat<U32>(1)), splat<U32>(32), length);
}

}  // namespace arrcomp::ARRCOMP_ISA
