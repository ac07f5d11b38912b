// Tables and searches of AVX-512 whose entries are lanes of 16 bits, of which a register has 32. Included by avx512.h, hence no
// guard.
namespace arrcomp::avx512 {

// Entry i of 64 from t on: the lower 6 bits of i are seen alone.
ARRCOMP_INLINE __m512i entry_of_64(const uint16_t* t, __m512i i) {
  return _mm512_permutex2var_epi16(_mm512_loadu_si512(t), i, _mm512_loadu_si512(t + 32));
}

ARRCOMP_INLINE __m512i entry_of_128(const uint16_t* t, __m512i i, __mmask32 is_upper) {
  return _mm512_mask_blend_epi16(is_upper, entry_of_64(t, i), entry_of_64(t + 64, i));
}
ARRCOMP_INLINE __mmask32 has_bit(__m512i x, int bit) {
  return _mm512_test_epi16_mask(x, _mm512_set1_epi16((short)bit));
}

template <int n>
ARRCOMP_INLINE U32 lookup_halves(const uint16_t* lower, const uint16_t* upper, U32 i) {
  const __m512i at = (__m512i)(i.v[0] | i.v[1] << 16);
  const __mmask32 first = has_bit(at, 64), second = has_bit(at, 128);
  const auto entry = [&](const uint16_t* t) __attribute__((always_inline)) {
    const __m512i low = entry_of_128(t, at, first);
    return n == 128 ? low : _mm512_mask_blend_epi16(second, low, entry_of_128(t + n - 128, at, first));
  };
  const u32r low = (u32r)entry(lower), high = (u32r)entry(upper);
  U32 result;
  result.v[0] = merged(high << 16, low, 0xffff0000);
  result.v[1] = merged(high, low >> 16, 0xffff0000);
  return result;
}

// The way of a row in numbers_below, in lanes of 16 bits.
struct NumberSearch {
  __m512i lower, upper, node;

  ARRCOMP_METHOD void begin(U32 x) {
    const __m512i low = (__m512i)((x.v[0] & 0xffff) | x.v[1] << 16);
    const __m512i high = (__m512i)merged(x.v[1], x.v[0] >> 16, 0xffff0000);
    const __m512i negative = _mm512_srai_epi16(high, 15);
    lower = _mm512_xor_si512(low, negative);
    // high ^ (negative | 0x8000)
    upper = _mm512_ternarylogic_epi32(high, negative, _mm512_set1_epi16((short)0x8000), 0x1e);
    upper = _mm512_add_epi16(upper, _mm512_set1_epi16(64));
    node = _mm512_set1_epi16(1);
  }

  ARRCOMP_METHOD void descend(__m512i entry) {
    const __mmask32 is_right = _mm512_cmplt_epu16_mask(entry, upper);
    node = _mm512_add_epi16(node, node);
    node = _mm512_mask_add_epi16(node, is_right, node, _mm512_set1_epi16(1));
  }

  // The number at i - 256 of those in order is the first one whose upper half is not below.
  ARRCOMP_METHOD U32 found(const uint16_t* uppers, const uint16_t* lowers) const {
    const __mmask32 first = has_bit(node, 128), second = has_bit(node, 64);
    const auto entry = [&](const uint16_t* t) __attribute__((always_inline)) {
      return _mm512_mask_blend_epi16(first, entry_of_128(t, node, second), entry_of_128(t + 128, node, second));
    };
    const __mmask32 is_equal = _mm512_cmpeq_epi16_mask(entry(uppers), upper);
    const __mmask32 is_below = _mm512_mask_cmplt_epu16_mask(is_equal, entry(lowers), lower);
    const __m512i before = _mm512_sub_epi16(node, _mm512_set1_epi16(256));
    return parted(_mm512_mask_sub_epi16(before, is_below, node, _mm512_set1_epi16(255)));
  }
};

// Rows take each step together: what one waits for, others do.
template <int n>
ARRCOMP_INLINE void numbers_below(const uint16_t (*t)[256], const F32 (&v)[n], U32 (&found)[n]) {
  NumberSearch rows[n];
  const uint16_t* const tree = t[0];
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j].begin(as_bits(v[j]));
  const __m512i root = _mm512_set1_epi16((short)tree[1]), first = _mm512_loadu_si512(tree);
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j].descend(root);
#pragma GCC unroll 8
  for (int level = 1; level < 6; level++) {
    const __m512i entries = level < 5 ? first : _mm512_loadu_si512(tree + 32);
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) rows[j].descend(_mm512_permutexvar_epi16(rows[j].node, entries));
  }
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j].descend(entry_of_64(tree + 64, rows[j].node));
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j].descend(entry_of_128(tree + 128, rows[j].node, has_bit(rows[j].node, 64)));
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) found[j] = rows[j].found(t[1], t[2]);
}

}  // namespace arrcomp::avx512
