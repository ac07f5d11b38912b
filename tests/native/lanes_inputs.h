// The inputs of all operations of the 32 lanes: edges, random values and both mixed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>

namespace test {

// A slot holds an operation's lanes, then one uniform value, and is aligned to 16 bytes. What an operation must not write
// stays `untouched`.
constexpr int lanes_bytes = 1088, slot_bytes = lanes_bytes + 16;
constexpr unsigned char untouched = 0xa5;

// Each array is an allocation of its own, exactly as long as an operation may read, so that sanitizers see any further
// read.
struct Inputs {
  uint32_t *x, *y, *index, *shifts, *table, *long_table;
  uint64_t *wide_x, *wide_y;
  float *f, *g;
  double *d, *e;
  uint16_t *half_words, *short_table, *runs, *halves;
  uint8_t* bytes;
  uint32_t mask_word, other_word, scalar;
  uint64_t wide_scalar;
  float float_scalar;
  double double_scalar;
  int k, wide_k, first;
};

template <class T>
T* allocate(size_t n) {
#ifdef __CUDACC__
  void* p = nullptr;
  if (cudaMallocManaged(&p, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
  return (T*)p;
#else
  return (T*)::operator new(n * sizeof(T));
#endif
}
inline void release(void* p) {
#ifdef __CUDACC__
  cudaFree(p);
#else
  ::operator delete(p);
#endif
}

// Its order is that of the numbers.
inline uint32_t order_key(float f) {
  uint32_t x;
  __builtin_memcpy(&x, &f, sizeof x);
  return x >> 31 ? ~x : x | 1u << 31;
}

inline Inputs allocate_inputs() {
  Inputs in{};
  for (auto p : {&in.x, &in.y, &in.index, &in.shifts}) *p = allocate<uint32_t>(32);
  in.table = allocate<uint32_t>(64);
  in.long_table = allocate<uint32_t>(256);
  for (auto p : {&in.wide_x, &in.wide_y}) *p = allocate<uint64_t>(32);
  for (auto p : {&in.f, &in.g}) *p = allocate<float>(32);
  for (auto p : {&in.d, &in.e}) *p = allocate<double>(32);
  in.half_words = allocate<uint16_t>(32);
  in.short_table = allocate<uint16_t>(65);
  in.runs = allocate<uint16_t>(64 * 5 + 1);
  in.halves = allocate<uint16_t>(3 * 256 + 1);
  in.bytes = allocate<uint8_t>(32);
  return in;
}
inline void release_inputs(const Inputs& in) {
  for (void* p : std::initializer_list<void*>{in.x, in.y, in.index, in.shifts, in.table, in.long_table, in.wide_x,
                                              in.wide_y, in.f, in.g, in.d, in.e, in.half_words, in.short_table, in.runs,
                                              in.halves, in.bytes}) {
    release(p);
  }
}

class Generator {
 public:
  void fill(Inputs& in, int round) {
    for (int l = 0; l < 32; l++) {
      in.x[l] = narrow();
      in.y[l] = next() % 4 ? narrow() : in.x[l];
      in.wide_x[l] = wide();
      in.wide_y[l] = next() % 4 ? wide() : next() % 2 ? in.wide_x[l] : in.wide_x[l] ^ narrow();
      in.f[l] = number<float>();
      in.g[l] = next() % 4 ? number<float>() : in.f[l];
      in.d[l] = number<double>();
      in.e[l] = next() % 4 ? number<double>() : in.d[l];
      in.index[l] = next() % 64;
      in.shifts[l] = next() % 32;
      in.half_words[l] = (uint16_t)(next() % 8 ? next() : next() % 2 << 15 | next() % 2 * 0x7c00);
      in.bytes[l] = (uint8_t)next();
    }
    for (int i = 0; i < 64; i++) in.table[i] = (uint32_t)next();
    for (int i = 0; i < 256; i++) in.long_table[i] = (uint32_t)next();
    for (int i = 0; i < 65; i++) in.short_table[i] = (uint16_t)next();
    for (int i = 0; i < 64 * 5 + 1; i++) in.runs[i] = (uint16_t)next();
    fill_halves(in);
    in.mask_word = mask(round);
    in.other_word = mask((int)(next() % 64));
    in.scalar = narrow();
    in.wide_scalar = wide();
    in.float_scalar = number<float>();
    in.double_scalar = number<double>();
    in.k = round % 32;
    in.wide_k = round % 64;
    in.first = round % 32 + 1;
  }

 private:
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  // Many are next to halves of keys, or the same.
  void fill_halves(Inputs& in) {
    for (int i = 0; i < 3 * 256 + 1; i++) {
      const uint32_t key = order_key(in.f[next() % 32]), half = i < 2 * 256 ? (key >> 16) + 64 : key;
      in.halves[i] = (uint16_t)(next() % 8 ? half + next() % 3 - 1 : next());
    }
  }

  // Random bits of random length, or next to a power of two, or next to 0.
  uint64_t wide() {
    uint64_t bits = next() >> next() % 64;
    return next() % 2 ? bits : ((uint64_t)1 << next() % 64) - next() % 3;
  }
  uint32_t narrow() {
    uint32_t bits = (uint32_t)next() >> next() % 32;
    return next() % 2 ? bits : (1u << next() % 32) - (uint32_t)(next() % 3);
  }

  // Edges; random bits; multiples of 1/2; values around float16's range, many of them midway between two.
  template <class T>
  T number() {
    using limits = std::numeric_limits<T>;
    const T edges[] = {0,
                       1,
                       T(0.5),
                       T(1.5),
                       T(2.5),
                       limits::denorm_min(),
                       limits::min() - limits::denorm_min(),
                       limits::min(),
                       limits::max(),
                       limits::infinity(),
                       limits::quiet_NaN(),
                       T(0x1p23),
                       T(0x1p23) - T(0.5),
                       T(0x1p22) + T(0.5),
                       T(0x1p31),
                       T(2147483520),
                       T(65504),
                       T(65520),
                       T(65519),
                       T(0x1p-14),
                       T(0x1p-24),
                       T(0x1p-25),
                       T(0x1.8p-24)};
    T value = 0;
    switch (next() % 4) {
      case 0: value = edges[next() % (sizeof edges / sizeof edges[0])]; break;
      case 1: value = from_bits<T>(next()); break;
      case 2: value = T((int64_t)next() >> (40 + next() % 24)) / 2; break;
      case 3:
        value =
            T(next() % 4096 | 4096) * from_power<T>((int)(next() % 48) - 40) + (next() % 4 ? 0 : limits::denorm_min());
    }
    return next() % 2 ? value : -value;
  }
  template <class T>
  static T from_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }
  template <class T>
  static T from_power(int n) {
    T value = 1;
    for (; n > 0; n--) value *= 2;
    for (; n < 0; n++) value /= 2;
    return value;
  }

  // None, all, one, halves, alternating, and random ones of several densities.
  uint32_t mask(int round) {
    const uint32_t classes[] = {0,
                                ~0u,
                                1,
                                1u << 31,
                                1u << next() % 32,
                                ~(1u << next() % 32),
                                0xffff,
                                0xffff0000,
                                0x00ff00ff,
                                0x55555555,
                                0xaaaaaaaa,
                                0x0f0f0f0f,
                                (uint32_t)next(),
                                (uint32_t)next(),
                                (uint32_t)(next() & next()),
                                (uint32_t)(next() | next())};
    return classes[round % 16];
  }

  uint64_t state_ = 1;
};

}  // namespace test
