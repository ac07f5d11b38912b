// Appending the lanes of a mask to memory and taking them back, register by register, for the machines of a CPU.
// Included once by each of them, after its Mask, hence no guard.
namespace arrcomp::ARRCOMP_MACHINE {

template <class T>
ARRCOMP_INLINE T* compress(T* p, Lanes<T> x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<Lanes<T>>(m, i);
    store_compressed(p, x.v[i], own);
    p += __builtin_popcount(own);
  }
  return p;
}

template <class T>
ARRCOMP_INLINE const T* expand(const T* p, Lanes<T>& x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<Lanes<T>>(m, i);
    x.v[i] = load_expanded(p, own);
    p += __builtin_popcount(own);
  }
  return p;
}

ARRCOMP_INLINE uint16_t* append(uint16_t* p, U32 x, Mask m) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<U32>(m, i);
    store_compressed(p, x.v[i], own);
    p += __builtin_popcount(own);
  }
  return p;
}

ARRCOMP_INLINE const uint16_t* take(const uint16_t* p, U32& x, Mask m) {
  p -= count(m);
  const uint16_t* next = p;
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    uint32_t own = part<U32>(m, i);
    x.v[i] = take(next, x.v[i], own);
    next += __builtin_popcount(own);
  }
  return p;
}

}  // namespace arrcomp::ARRCOMP_MACHINE
