// Rows in a row, for CPUs, where each is loaded and stored alone. Included once by each of them, after `load` and `store`,
// hence no guard.
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
ARRCOMP_INLINE void prefix_sums(V (&rows)[n], V& before) {
  for (int j = 0; j < n; j++) {
    rows[j] = prefix_sum(rows[j]) + before;
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

ARRCOMP_INLINE void gather_pair(const uint32_t (*t)[2], U32 i, U32& first, U32& second) {
  first = gather(t[0], i << 1);
  second = gather(t[0] + 1, i << 1);
}

ARRCOMP_INLINE void set_bits(uint32_t* p, U32 x, Mask m) {
  uint32_t places[32];
  store(places, x);
  for (uint32_t left = bits(m); left != 0; left &= left - 1) {
    const uint32_t place = places[__builtin_ctz(left)];
    p[place / 32] |= 1u << place % 32;
  }
}

ARRCOMP_INLINE U32 gather_at(const uint16_t* t, U32 bytes) { return gather(t, bytes >> 1); }

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

template <class T, class V>
ARRCOMP_INLINE void load_pairs(const T* p, V& even, V& odd) {
  T all[64], evens[32], odds[32];
  __builtin_memcpy(all, p, sizeof all);  // at any address
  for (int l = 0; l < 32; l++) {
    evens[l] = all[2 * l];
    odds[l] = all[2 * l + 1];
  }
  even = load(evens);
  odd = load(odds);
}

template <class T, class V>
ARRCOMP_INLINE void store_pairs(T* p, V even, V odd) {
  typename V::scalar evens[32], odds[32];
  T all[64];
  store(evens, even);
  store(odds, odd);
  for (int l = 0; l < 32; l++) {
    all[2 * l] = (T)evens[l];
    all[2 * l + 1] = (T)odds[l];
  }
  __builtin_memcpy(p, all, sizeof all);
}

template <class T, class V>
ARRCOMP_INLINE void load_first_pairs(const T* p, int n, V& even, V& odd) {
  T all[64] = {};
  __builtin_memcpy(all, p, n * sizeof(T));
  load_pairs(all, even, odd);
}

template <class T, class V>
ARRCOMP_INLINE void store_first_pairs(T* p, V even, V odd, int n) {
  T all[64];
  store_pairs(all, even, odd);
  __builtin_memcpy(p, all, n * sizeof(T));
}

template <class T, class V, int n>
ARRCOMP_INLINE void store_rows(T* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) store(p + 32 * j, rows[j]);
}

}  // namespace arrcomp::ARRCOMP_ISA
