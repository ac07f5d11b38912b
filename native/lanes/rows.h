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

template <class T, class V, int n>
ARRCOMP_INLINE void store_rows(T* p, V (&rows)[n]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) store(p + 32 * j, rows[j]);
}

}  // namespace arrcomp::ARRCOMP_ISA
