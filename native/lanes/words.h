// Appending the lanes of a mask to memory and taking them back, register by register, for CPUs.
// Included once by each of them, after its Mask, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

// How many lanes of register i are in the mask. Machines of small registers have many of them, and may have no
// instruction that counts bits: they count those of all registers together.
template <class V>
ARRCOMP_INLINE int lanes_in(Mask m, int i) {
  if constexpr (register_bytes > 16) return __builtin_popcount(part<V>(m, i));
  const uint32_t pairs = bits(m) - (bits(m) >> 1 & 0x55555555);
  if constexpr (V::width == 2) return (int)(pairs >> (2 * i) & 3);
  const uint32_t fours = (pairs & 0x33333333) + (pairs >> 2 & 0x33333333);
  return (int)(fours >> (4 * i) & 15);
}

template <class T>
ARRCOMP_INLINE T* compress(T* p, Lanes<T> x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<Lanes<T>>(m, i);
    store_compressed(p, x.v[i], own);
    p += lanes_in<Lanes<T>>(m, i);
  }
  return p;
}

template <class T>
ARRCOMP_INLINE const T* expand(const T* p, Lanes<T>& x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<Lanes<T>>(m, i);
    x.v[i] = load_expanded(p, own);
    p += lanes_in<Lanes<T>>(m, i);
  }
  return p;
}
ARRCOMP_INLINE uint32_t compress(uint32_t* p, uint32_t at, U32 x, Mask m) {
  return (uint32_t)((uint8_t*)compress((uint32_t*)((uint8_t*)p + at), x, m) - (uint8_t*)p);
}
ARRCOMP_INLINE uint32_t expand(const uint32_t* p, uint32_t at, U32& x, Mask m) {
  return (uint32_t)((const uint8_t*)expand((const uint32_t*)((const uint8_t*)p + at), x, m) - (const uint8_t*)p);
}

ARRCOMP_INLINE uint8_t* compress(uint8_t* p, U32 x, Mask m) {
  uint32_t words[64];
  const auto n = compress(words, x, m) - words;
  for (int i = 0; i < n; i++) p[i] = (uint8_t)words[i];
  return p + n;
}

// Of rows, one after the other.
template <class T>
class RowPlaces {
 public:
  ARRCOMP_METHOD RowPlaces(T* p, uint32_t at) : next_(p + at / sizeof(T)) {}
  ARRCOMP_METHOD void compress(U32 x, Mask m) { next_ = ARRCOMP_ISA::compress(next_, x, m); }
  ARRCOMP_METHOD void expand(U32& x, Mask m) { next_ = ARRCOMP_ISA::expand(next_, x, m); }
  ARRCOMP_METHOD uint32_t end_behind(T* p) const { return (uint32_t)(next_ - p) * sizeof(T); }

 private:
  T* next_;
};

template <int n>
ARRCOMP_INLINE void store_planes(uint32_t* p, const uint8_t* rows, int k) {
  for (int i = 0; i < 8; i++) {
    const U32 row = load(rows + 32 * i) >> k;
    for (int b = 0; b < n; b++) p[n * i + b] = bits(ne(row & splat<U32>(1u << b), splat<U32>(0)));
  }
}

template <class V>  // U32, unless an instruction set has its own way
ARRCOMP_INLINE uint16_t* append(uint16_t* p, V x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<V>(m, i);
    store_compressed(p, x.v[i], own);
    p += lanes_in<V>(m, i);
  }
  return p;
}

ARRCOMP_INLINE const uint16_t* take(const uint16_t* p, U32& x, Mask m) {
#pragma GCC unroll 16
  for (int i = x.registers - 1; i >= 0; i--) {
    uint32_t own = part<U32>(m, i);
    p -= lanes_in<U32>(m, i);
    x.v[i] = take(p, x.v[i], own);
  }
  return p;
}

// All words are near: those that come next are asked for by whoever knows how fast they are taken.
struct WordSource {
  const uint16_t* begin = nullptr;
  const uint16_t* at = nullptr;
  bool failed = false;

  WordSource() = default;
  WordSource(const uint16_t* begin, const uint16_t* end) : begin(begin), at(end) {}

  ARRCOMP_METHOD void bring_near() {}
  ARRCOMP_METHOD void take(U32& x, Mask lanes) {
    if (at - begin < count(lanes)) {
      failed = true;
    } else {
      at = ARRCOMP_ISA::take(at, x, lanes);
    }
  }
  ARRCOMP_METHOD int64_t left(const uint16_t*) const { return failed ? -1 : at - begin; }
};

}  // namespace arrcomp::ARRCOMP_ISA
