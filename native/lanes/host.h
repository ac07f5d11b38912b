// What the instruction sets of CPUs share: 32 lanes are a few registers of the compiler's vector type, and what works
// lane by lane is one operator or one of its register functions on each of them. Each includes this once, after its
// register functions (those on u32r and its kin), hence no guard.

// The loops are unrolled whole, so that the registers of a value never become an array in memory.
#undef ARRCOMP_EACH
#define ARRCOMP_EACH(V, ...)                                                                 \
  V result;                                                                                  \
  _Pragma("GCC unroll 16") for (int i = 0; i < V::registers; i++) result.v[i] = __VA_ARGS__; \
  return result

namespace arrcomp::ARRCOMP_ISA {

template <class T>
struct Lanes {
  using scalar = T;
  typedef T Register __attribute__((vector_size(register_bytes)));
  static constexpr int width = register_bytes / sizeof(T);
  static constexpr int registers = 32 / width;
  Register v[registers];
};
using U32 = Lanes<uint32_t>;
using U64 = Lanes<uint64_t>;
using F32 = Lanes<float>;
using F64 = Lanes<double>;

// The values of lanes 0 to 15 and of lanes 16 to 31.
template <class T>
struct Halves {
  T lower, upper;
};

// What lookup_alias finds.
struct AliasSlots {
  U32 symbol, frequency, rank;
};

constexpr bool keeps_rows = true;
constexpr bool tiles_in_registers = false;

ARRCOMP_INLINE void sync() {}
ARRCOMP_INLINE bool leader() { return true; }
ARRCOMP_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }
ARRCOMP_INLINE void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 2); }
ARRCOMP_INLINE void copy_bytes(void* to, const void* from, uint32_t bytes) { __builtin_memcpy(to, from, bytes); }

// Copies n elements, a few, at any address: by registers, then by half as many elements again and again. A call, or the
// instruction for strings, would take longer.
template <class T>
ARRCOMP_INLINE void copy_few(T* to, const T* from, int n) {
  constexpr int whole = register_bytes / (int)sizeof(T);
  int i = 0;
  for (; i + whole <= n; i += whole) __builtin_memcpy(to + i, from + i, register_bytes);
#pragma GCC unroll 8
  for (int part = whole / 2; part > 0; part /= 2) {
    if ((n & part) == 0) continue;
    __builtin_memcpy(to + i, from + i, part * sizeof(T));
    i += part;
  }
}

// --- values and memory

template <class V>
ARRCOMP_INLINE V splat(typename V::scalar s) {
  ARRCOMP_EACH(V, s - typename V::Register{});  // s + 0 would lose the sign of -0.0
}

template <class R>
ARRCOMP_INLINE R load_register(const void* p) {
  R r;
  __builtin_memcpy(&r, p, sizeof r);
  return r;
}
template <class R>
ARRCOMP_INLINE void store_register(void* p, R r) {
  __builtin_memcpy(p, &r, sizeof r);
}

template <class T>
ARRCOMP_INLINE Lanes<T> load(const T* p) {
  ARRCOMP_EACH(Lanes<T>, load_register<typename Lanes<T>::Register>(p + i * Lanes<T>::width));
}
ARRCOMP_INLINE void load_pair_if(bool first, bool second, const uint32_t* p, uint32_t i, U32& x, U32& y) {
  if (first) x = load(p + 32 * i);
  if (second) y = load(p + 32 * (i + 1));
}
ARRCOMP_INLINE U32 load(const uint16_t* p) { ARRCOMP_EACH(U32, load_widened(p + i * U32::width)); }
ARRCOMP_INLINE U32 load(const uint8_t* p) { ARRCOMP_EACH(U32, load_widened(p + i * U32::width)); }

ARRCOMP_INLINE U32 lane_numbers() {
  constexpr uint32_t numbers[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  return load(numbers);
}

template <class T>
ARRCOMP_INLINE T* in_device_memory(T* p) {
  return p;
}

template <class T>
ARRCOMP_INLINE void store(T* p, Lanes<T> x) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) store_register(p + i * x.width, x.v[i]);
}
ARRCOMP_INLINE void store(uint16_t* p, U32 x) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) store_narrowed(p + i * x.width, x.v[i]);
}
ARRCOMP_INLINE void store(uint8_t* p, U32 x) {
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) store_narrowed(p + i * x.width, x.v[i]);
}

// GCC 12 keeps what comes out of one of several branches in memory, unless each register is asked for.
template <class T>
ARRCOMP_INLINE Lanes<T> in_registers(Lanes<T> x) {
#if defined(__x86_64__) || defined(__aarch64__)
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    typename Lanes<T>::Register r = x.v[i];
#ifdef __x86_64__
    asm("" : "+v"(r));
#else
    asm("" : "+w"(r));
#endif
    x.v[i] = r;
  }
#endif
  return x;
}

// --- arithmetic

template <class T>
ARRCOMP_INLINE Lanes<T> operator+(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] + y.v[i]);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator-(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] - y.v[i]);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator&(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] & y.v[i]);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator|(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] | y.v[i]);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator^(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] ^ y.v[i]);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator<<(Lanes<T> x, int k) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] << k);
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator>>(Lanes<T> x, int k) {
  ARRCOMP_EACH(Lanes<T>, x.v[i] >> k);
}
template <class T>
ARRCOMP_INLINE Lanes<T> sar(Lanes<T> x, int k) {
  ARRCOMP_EACH(Lanes<T>, sar(x.v[i], k));
}
template <class T>
ARRCOMP_INLINE Lanes<T> min(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, min(x.v[i], y.v[i]));
}
template <class T>
ARRCOMP_INLINE Lanes<T> max(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, max(x.v[i], y.v[i]));
}

ARRCOMP_INLINE U32 funnel_wrapped(U32 low, U32 high, int k) { return low >> k % 32 | high << 1 << (31 - k % 32); }
ARRCOMP_INLINE U32 operator*(U32 x, U32 y) { ARRCOMP_EACH(U32, x.v[i] * y.v[i]); }
ARRCOMP_INLINE F32 operator*(F32 x, F32 y) { ARRCOMP_EACH(F32, x.v[i] * y.v[i]); }
ARRCOMP_INLINE F64 operator*(F64 x, F64 y) { ARRCOMP_EACH(F64, x.v[i] * y.v[i]); }
ARRCOMP_INLINE F32 operator/(F32 x, F32 y) { ARRCOMP_EACH(F32, x.v[i] / y.v[i]); }
ARRCOMP_INLINE F64 operator/(F64 x, F64 y) { ARRCOMP_EACH(F64, x.v[i] / y.v[i]); }
template <auto mask, auto bits, class V>
ARRCOMP_INLINE V masked_or(V x) {
  return (x & splat<V>(mask)) | splat<V>(bits);
}
template <auto mask, class T>
ARRCOMP_INLINE Lanes<T> merged(Lanes<T> x, Lanes<T> y) {
  ARRCOMP_EACH(Lanes<T>, merged(x.v[i], y.v[i], static_cast<T>(mask)));
}
ARRCOMP_INLINE U32 mulhi(U32 x, U32 y) { ARRCOMP_EACH(U32, mulhi(x.v[i], y.v[i])); }
ARRCOMP_INLINE U32 srlv(U32 x, U32 n) { ARRCOMP_EACH(U32, x.v[i] >> n.v[i]); }
ARRCOMP_INLINE U32 gather(const uint32_t* t, U32 x) { ARRCOMP_EACH(U32, gather(t, x.v[i])); }
ARRCOMP_INLINE U32 gather(const uint16_t* t, U32 x) { ARRCOMP_EACH(U32, gather(t, x.v[i])); }
ARRCOMP_INLINE U32 gather(const uint8_t* t, U32 x) { ARRCOMP_EACH(U32, gather(t, x.v[i])); }
template <int n>
ARRCOMP_INLINE const uint32_t* nearby(const uint32_t* t) {
  return t;
}
template <int n>
ARRCOMP_INLINE U32 lookup(const uint32_t* t, U32 x) {
  ARRCOMP_EACH(U32, lookup<n>(t, x.v[i]));
}

ARRCOMP_INLINE U32 put_above(U32 x, int k, U32 y) { return x << k | y; }
ARRCOMP_INLINE U32 minus_shifted(U32 x, int k) { return splat<U32>(0) - (x << k); }

ARRCOMP_INLINE U32 funnel(U32 x, U32 y, int k) { return k == 0 ? x : k == 32 ? y : x >> k | y << (32 - k); }

ARRCOMP_INLINE uint32_t uniform(uint32_t n) { return n; }
ARRCOMP_INLINE int bit_length(uint32_t x) { return x == 0 ? 0 : 32 - __builtin_clz(x); }

// --- floats

ARRCOMP_INLINE U32 as_bits(F32 f) { ARRCOMP_EACH(U32, (u32r)f.v[i]); }
ARRCOMP_INLINE U64 as_bits(F64 f) { ARRCOMP_EACH(U64, (u64r)f.v[i]); }
ARRCOMP_INLINE F32 as_float(U32 x) { ARRCOMP_EACH(F32, (f32r)x.v[i]); }
ARRCOMP_INLINE F64 as_double(U64 x) { ARRCOMP_EACH(F64, (f64r)x.v[i]); }
ARRCOMP_INLINE F32 abs(F32 f) { return as_float(as_bits(f) & splat<U32>(~0u >> 1)); }
ARRCOMP_INLINE F64 abs(F64 f) { return as_double(as_bits(f) & splat<U64>(~uint64_t(0) >> 1)); }
ARRCOMP_INLINE U32 to_int(F32 f) { ARRCOMP_EACH(U32, to_int(f.v[i])); }
// The order of max's arguments tells what NaN becomes.
ARRCOMP_INLINE U32 to_code(F32 f, uint32_t largest) {
  return to_int(min(max(splat<F32>(0), f), splat<F32>(static_cast<float>(largest))));
}
ARRCOMP_INLINE F32 to_float(U32 x) { ARRCOMP_EACH(F32, __builtin_convertvector((i32r)x.v[i], f32r)); }
ARRCOMP_INLINE F64 to_double(F32 f) {
  ARRCOMP_EACH(F64, i % 2 ? to_double_upper(f.v[i / 2]) : to_double_lower(f.v[i / 2]));
}
ARRCOMP_INLINE F32 from_half(U32 x) { ARRCOMP_EACH(F32, from_half(x.v[i])); }
ARRCOMP_INLINE U32 to_half(F32 f) { ARRCOMP_EACH(U32, to_half(f.v[i])); }

// --- across the lanes

template <class T>
ARRCOMP_INLINE Lanes<T> broadcast_last(Lanes<T> x) {
  ARRCOMP_EACH(Lanes<T>, broadcast_last(x.v[x.registers - 1]));
}

template <class T>
ARRCOMP_INLINE Lanes<T> shift_in(Lanes<T> before, Lanes<T> x) {
  ARRCOMP_EACH(Lanes<T>, shift_in(i ? x.v[i - 1] : before.v[x.registers - 1], x.v[i]));
}

template <class T>
ARRCOMP_INLINE Lanes<T> prefix_sum(Lanes<T> x) {
  typename Lanes<T>::Register before{};
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) {
    auto own = prefix_sum(x.v[i]);
    x.v[i] = own + before;
    before += broadcast_last(own);
  }
  return x;
}

ARRCOMP_INLINE U32 lo(U64 x) { ARRCOMP_EACH(U32, lo(x.v[2 * i], x.v[2 * i + 1])); }
ARRCOMP_INLINE U32 hi(U64 x) { ARRCOMP_EACH(U32, hi(x.v[2 * i], x.v[2 * i + 1])); }
ARRCOMP_INLINE U64 join(U32 lo, U32 hi) {
  ARRCOMP_EACH(U64, i % 2 ? join_upper(lo.v[i / 2], hi.v[i / 2]) : join_lower(lo.v[i / 2], hi.v[i / 2]));
}

template <class T>
ARRCOMP_INLINE Lanes<T> size(Lanes<T> x) {
  return abs(x);
}
template <class T>
ARRCOMP_INLINE Lanes<T> lower(Lanes<T> x, Lanes<T> y) {
  return min(x, y);
}
template <class T>
ARRCOMP_INLINE Lanes<T> higher(Lanes<T> x, Lanes<T> y) {
  return max(x, y);
}

// For what is written for those that have quick ones.
constexpr bool quick_powers = false;
template <class Function>
ARRCOMP_INLINE F32 each_number(F32 x, Function function) {
  for (int i = 0; i < x.registers; i++)
    for (int l = 0; l < x.width; l++) x.v[i][l] = function(x.v[i][l]);
  return x;
}
ARRCOMP_INLINE F32 near_log2(F32 x) {
  return each_number(x, [](float f) { return __builtin_log2f(__builtin_fabsf(f)); });
}
ARRCOMP_INLINE F32 near_power(F32 x) {
  return each_number(x, [](float f) { return __builtin_exp2f(f); });
}
ARRCOMP_INLINE F32 exponents(F32 x) { ARRCOMP_EACH(F32, exponents(x.v[i])); }
template <class T>
ARRCOMP_INLINE Lanes<T> near_sum(Lanes<T> x, Lanes<T> y, Lanes<T> z) {
  ARRCOMP_EACH(Lanes<T>, near_sum(x.v[i], y.v[i], z.v[i]));
}

template <class Operation>
ARRCOMP_INLINE uint32_t reduce(U32 x, Operation operation) {
  u32r all = x.v[0];
#pragma GCC unroll 16
  for (int i = 1; i < x.registers; i++) all = operation(all, x.v[i]);
  return fold(all, operation);
}
ARRCOMP_INLINE uint32_t sum(U32 x) {
  return reduce(x, [](auto a, auto b) { return a + b; });
}
ARRCOMP_INLINE uint32_t or_all(U32 x) {
  return reduce(x, [](auto a, auto b) { return a | b; });
}
ARRCOMP_INLINE uint32_t max_all(U32 x) {
  return reduce(x, [](auto a, auto b) { return a > b ? a : b; });
}
ARRCOMP_INLINE Halves<uint32_t> max_of_halves(U32 x) {
  constexpr int half = U32::registers / 2;
  const auto larger = [](auto a, auto b) { return a > b ? a : b; };
  u32r lower = x.v[0], upper = x.v[half];
#pragma GCC unroll 16
  for (int i = 1; i < half; i++) lower = larger(lower, x.v[i]), upper = larger(upper, x.v[half + i]);
  return {fold(lower, larger), fold(upper, larger)};
}
ARRCOMP_INLINE U32 max_of_halves(const U32 (&rows)[16]) {
  constexpr int half = U32::registers / 2;
  U32 found;
#pragma GCC unroll 16
  for (int i = 0; i < U32::registers; i++) {
    u32r halves[U32::width];
#pragma GCC unroll 16
    for (int l = 0; l < U32::width; l++) {
      const int of_row = i * U32::width + l;
      halves[l] = rows[of_row / 2].v[of_row % 2 * half];
#pragma GCC unroll 16
      for (int j = 1; j < half; j++) halves[l] = max(halves[l], rows[of_row / 2].v[of_row % 2 * half + j]);
    }
    found.v[i] = max_of_each(halves);
  }
  return found;
}

}  // namespace arrcomp::ARRCOMP_ISA
