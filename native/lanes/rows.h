// Rows in a row, for CPUs, where each is loaded and stored alone. Included once by each of them, after `load` and `store`,
// hence no guard.
#include <utility>

namespace arrcomp::ARRCOMP_ISA {

template <class T, int n>
struct Fetched {
  const T* rows;
};

template <int n, class T>
ARRCOMP_INLINE Fetched<T, n> fetch_rows(const T* p) {
  prefetch(p);
  return {p};
}

template <class T, class V, int n>
ARRCOMP_INLINE void arrive(const Fetched<T, n>& fetched, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j] = load(fetched.rows + 32 * j);
}

template <class T, class V, int n>
ARRCOMP_INLINE void load_rows(const T* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) rows[j] = load(p + 32 * j);
}

template <class V, int n>
ARRCOMP_INLINE void prefix_sums(V (&rows)[n], V& before, V step) {
  for (int j = 0; j < n; j++) {
    rows[j] = prefix_sum(rows[j] + step) + before;
    before = broadcast_last(rows[j]);
  }
}

template <class T, class V, int n>
ARRCOMP_INLINE void arrive_unsorted(const Fetched<T, n>& fetched, V (&rows)[n]) {
  arrive(fetched, rows);
}

template <class T, class V, int n>
ARRCOMP_INLINE void store_unsorted(uint16_t* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) store(p + 32 * j, rows[j]);
}

template <class T, class V, int n>
ARRCOMP_INLINE void store_upper_unsorted(uint16_t* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) store(p + 32 * j, rows[j] >> 16);
}

template <class T, class V, int n>
ARRCOMP_INLINE Mask nonzero_unsorted(V (&rows)[n]) {
  bool all = true;
  for (int j = 0; j < n; j += 2) all = all && any(ne(rows[j] | rows[j + 1], splat<V>(0)));
  return mask(all ? ~0u : 0);
}

ARRCOMP_INLINE void set_bits(uint32_t* p, U32 x, Mask m) {
  uint32_t places[32];
  store(places, x);
  for (uint32_t left = bits(m); left != 0; left &= left - 1) {
    const uint32_t place = places[__builtin_ctz(left)];
    p[place / 32] |= 1u << place % 32;
  }
}

ARRCOMP_INLINE void add_ones(uint32_t* p, U32 x, Mask m) {
  uint32_t places[32];
  store(places, x);
  if (bits(m) == ~0u) {
#pragma GCC unroll 8
    for (int l = 0; l < 32; l++) ++p[places[l]];
  } else {
    for (uint32_t left = bits(m); left != 0; left &= left - 1) ++p[places[__builtin_ctz(left)]];
  }
}

ARRCOMP_INLINE U32 in_halves(U32 lower, U32 upper) { return (lower & splat<U32>(0xffff)) | upper << 16; }

ARRCOMP_INLINE U32 srl_modulo(U32 x, U32 n) { return srlv(x, n & splat<U32>(31)); }

template <class T>
ARRCOMP_INLINE auto load_apart(const T* p, int distance, int n) {
  T all[32];
  for (int l = 0; l < 32; l++) __builtin_memcpy(all + l, p + (l < n ? l * distance : 0), sizeof(T));  // at any address
  return load(all);
}

template <class T>
ARRCOMP_INLINE auto load_places(const T* p, U64 places, int n) {
  uint64_t at[32];
  store(at, places);
  T all[32] = {};
  for (int l = 0; l < n; l++) __builtin_memcpy(all + l, p + at[l], sizeof(T));
  return load(all);
}

template <class T, class V>
ARRCOMP_INLINE void store_places(T* p, U64 places, int n, V x) {
  uint64_t at[32];
  store(at, places);
  typename V::scalar all[32];
  store(all, x);
  for (int l = 0; l < n; l++) {
    const T narrow = (T)all[l];
    __builtin_memcpy(p + at[l], &narrow, sizeof(T));
  }
}

template <class T, class V>
ARRCOMP_INLINE void store_apart(T* p, int distance, int n, V x) {
  typename V::scalar all[32];
  store(all, x);
  for (int l = 0; l < n; l++) {
    const T narrow = (T)all[l];
    __builtin_memcpy(p + l * distance, &narrow, sizeof(T));
  }
}

template <class T, class V, int k>
ARRCOMP_INLINE void store_apart(T* p, int distance, int n, const V (&rows)[k]) {
  typename V::scalar all[k][32];
  for (int j = 0; j < k; j++) store(all[j], rows[j]);
  for (int l = 0; l < n; l++) {
    T column[k];
#pragma GCC unroll 8
    for (int j = 0; j < k; j++) column[j] = (T)all[j][l];
    __builtin_memcpy(p + l * distance, column, sizeof column);
  }
}

// Of the lanes of two registers, one behind the other, those at even places, or at odd ones; and back: the first, or the
// second, half of the lanes of `even` and `odd` in turn.
template <int first, class R, int... l>
ARRCOMP_INLINE R every_second(R x, R y, std::integer_sequence<int, l...>) {
  constexpr int n = sizeof...(l);
  return R{(2 * l + first < n ? x[(2 * l + first) % n] : y[(2 * l + first) % n])...};
}
template <int half, class R, int... l>
ARRCOMP_INLINE R in_turn(R even, R odd, std::integer_sequence<int, l...>) {
  constexpr int n = sizeof...(l);
  return R{(l % 2 == 0 ? even[half * n / 2 + l / 2] : odd[half * n / 2 + l / 2])...};
}

template <class T, class V>
ARRCOMP_INLINE void load_pairs(const T* p, V& even, V& odd) {
  using R = typename V::Register;
  if constexpr (2 * sizeof(T) == sizeof(typename V::scalar)) {  // a pair is a lane
#pragma GCC unroll 16
    for (int i = 0; i < V::registers; i++) {
      const R pairs = load_register<R>(p + 2 * i * V::width);
      even.v[i] = pairs & (T)~T{0};
      odd.v[i] = pairs >> 8 * sizeof(T);
    }
  } else {
    constexpr std::make_integer_sequence<int, V::width> lanes;
    constexpr int half = V::registers / 2;
    const V rows[2] = {load(p), load(p + 32)};
#pragma GCC unroll 16
    for (int i = 0; i < V::registers; i++) {
      const R x = rows[i / half].v[i % half * 2], y = rows[i / half].v[i % half * 2 + 1];
      even.v[i] = every_second<0>(x, y, lanes);
      odd.v[i] = every_second<1>(x, y, lanes);
    }
  }
}

template <class T, class V>
ARRCOMP_INLINE void store_pairs(T* p, V even, V odd) {
  if constexpr (2 * sizeof(T) == sizeof(typename V::scalar)) {
#pragma GCC unroll 16
    for (int i = 0; i < V::registers; i++)
      store_register(p + 2 * i * V::width, (even.v[i] & (T)~T{0}) | odd.v[i] << 8 * sizeof(T));
  } else {
    constexpr std::make_integer_sequence<int, V::width> lanes;
    constexpr int half = V::registers / 2;
    V rows[2];
#pragma GCC unroll 16
    for (int i = 0; i < V::registers; i++) {
      rows[i / half].v[i % half * 2] = in_turn<0>(even.v[i], odd.v[i], lanes);
      rows[i / half].v[i % half * 2 + 1] = in_turn<1>(even.v[i], odd.v[i], lanes);
    }
    store(p, rows[0]);
    store(p + 32, rows[1]);
  }
}

template <class T, class V>
ARRCOMP_INLINE void load_first_pairs(const T* p, int n, V& even, V& odd) {
  T all[64];
  store(all, splat<V>(0));
  store(all + 32, splat<V>(0));
  copy_few(all, p, n);
  load_pairs(all, even, odd);
}

template <class T, class V>
ARRCOMP_INLINE void store_first_pairs(T* p, V even, V odd, int n) {
  T all[64];
  store_pairs(all, even, odd);
  copy_few(p, all, n);
}

template <class T, class V, int n>
ARRCOMP_INLINE void store_rows(T* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) store(p + 32 * j, rows[j]);
}

}  // namespace arrcomp::ARRCOMP_ISA
