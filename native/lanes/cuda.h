// CUDA: a lane is a thread of a warp. All 32 threads call each function together. Blocks count their threads
// along x.
#pragma once
#include <cstdint>

namespace arrcomp::cuda {

constexpr int streams = 1;  // other warps hide the latency
constexpr int encoder_streams = 1;
constexpr int rows_at_once = 1;
constexpr int rows_side_by_side = 1;
constexpr bool short_lookup = false;
constexpr bool keeps_rows = false;
constexpr bool tiles_in_registers = true;
constexpr bool gathers_pairs = true;
constexpr bool quick_powers = true;
constexpr unsigned all_lanes = 0xffffffffu;

template <class T>
struct Lanes {
  using scalar = T;
  T v;
};
using U32 = Lanes<uint32_t>;
using U64 = Lanes<uint64_t>;
using F32 = Lanes<float>;
using F64 = Lanes<double>;

ARRCOMP_INLINE int lane() { return threadIdx.x & 31; }
ARRCOMP_INLINE bool leader() { return lane() == 0; }
ARRCOMP_INLINE void sync() { __syncwarp(); }
ARRCOMP_INLINE void prefetch(const void*) {}  // other warps hide the latency
ARRCOMP_INLINE void prefetch_to_write(const void*) {}
template <class Unit>
ARRCOMP_INLINE void copy_units(uint8_t* to, const uint8_t* from, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin + lane() * sizeof(Unit); at < end; at += 32 * sizeof(Unit))
    *(Unit*)(to + at) = *(const Unit*)(from + at);
}
template <class Unit>
ARRCOMP_INLINE uint4 load_sixteen(const uint8_t* from) {
  const Unit* const p = (const Unit*)from;
  if constexpr (sizeof(Unit) == 16) {
    return p[0];
  } else {
    return {p[0], p[1], p[2], p[3]};
  }
}
// From byte `begin` on, where `to` is a multiple of 16 bytes, as far as whole rounds go; returns where they end.
template <class Unit>
ARRCOMP_INLINE uint32_t copy_rounds(uint8_t* to, const uint8_t* from, uint32_t begin, uint32_t end) {
#pragma unroll 1
  for (; begin + 1024 <= end; begin += 1024) {  // counted: copy, 8 rows
    const uint32_t at = begin + 16 * lane();
    const uint4 first = load_sixteen<Unit>(from + at), second = load_sixteen<Unit>(from + at + 512);
    *(uint4*)(to + at) = first;
    *(uint4*)(to + at + 512) = second;
  }
  return begin;
}
ARRCOMP_INLINE void copy_bytes(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  const auto to_at = (uint32_t)(uintptr_t)to, from_at = (uint32_t)(uintptr_t)from;
  if ((to_at | from_at | bytes) % 4 != 0) return copy_units<uint16_t>(to, from, 0, bytes);
  uint32_t done = -to_at % 16 < bytes ? -to_at % 16 : bytes;
  copy_units<uint32_t>(to, from, 0, done);
  done = (to_at ^ from_at) % 16 == 0 ? copy_rounds<uint4>(to, from, done, bytes)
                                     : copy_rounds<uint32_t>(to, from, done, bytes);
  copy_units<uint32_t>(to, from, done, bytes);
}
ARRCOMP_INLINE void copy_bytes(void* to, const void* from, uint32_t bytes) {
  copy_bytes((uint8_t*)to, (const uint8_t*)from, bytes);
}

// --- masks

struct Mask {
  bool set;
};
ARRCOMP_INLINE uint32_t bits(Mask m) { return __ballot_sync(all_lanes, m.set); }
ARRCOMP_INLINE Mask mask(uint32_t bits) { return {(bits >> lane() & 1) != 0}; }
ARRCOMP_INLINE bool any(Mask m) { return __any_sync(all_lanes, m.set); }
ARRCOMP_INLINE int count(Mask m) { return __popc(bits(m)); }
ARRCOMP_INLINE Mask operator~(Mask m) { return {!m.set}; }
ARRCOMP_INLINE Mask operator&(Mask a, Mask b) { return {a.set && b.set}; }
ARRCOMP_INLINE Mask operator|(Mask a, Mask b) { return {a.set || b.set}; }
// How many lanes below this one are in the mask.
ARRCOMP_INLINE int rank(uint32_t bits) { return __popc(bits & ((1u << lane()) - 1)); }

// --- values and memory

ARRCOMP_INLINE U32 lane_numbers() { return {(uint32_t)lane()}; }
template <class V>
ARRCOMP_INLINE V splat(typename V::scalar s) {
  return {s};
}
template <class V>
ARRCOMP_INLINE V in_registers(V x) {
#ifdef __CUDACC__
  if constexpr (sizeof x.v == 4) asm("" : "+r"(*(uint32_t*)&x.v));  // the compiler no longer knows its few values
#endif
  return x;
}

template <class V>
ARRCOMP_INLINE V select(Mask m, V yes, V no) {
  return {m.set ? yes.v : no.v};
}

template <class T>
ARRCOMP_INLINE Lanes<T> element(const T* p, uint32_t i) {
  return {p[i]};
}
ARRCOMP_INLINE U32 element(const uint16_t* p, uint32_t i) { return {p[i]}; }
ARRCOMP_INLINE U32 element(const uint8_t* p, uint32_t i) { return {p[i]}; }
template <class T>
ARRCOMP_INLINE auto load(const T* p) {
  return element(p, lane());
}
template <class T>
ARRCOMP_INLINE auto load_first(const T* p, int n) {
  return element(p, lane() < n ? lane() : n - 1);
}
// Predicates and no branch: what is loaded may arrive later. One calculation gives both addresses.
ARRCOMP_INLINE void load_pair_if(bool first, bool second, const uint32_t* p, uint32_t i, U32& x, U32& y) {
#ifdef __CUDACC__
  asm("{ .reg .pred p, q; .reg .b64 a; setp.ne.b32 p, %4, 0; setp.ne.b32 q, %5, 0; mad.wide.u32 a, %3, 128, %2;"
      " @p ld.global.nc.b32 %0, [a]; @q ld.global.nc.b32 %1, [a + 128]; }"
      : "+r"(x.v), "+r"(y.v)
      : "l"(__cvta_generic_to_global(p + lane())), "r"(i), "r"((int)first), "r"((int)second));
#else
  if (first) x = load(p + 32 * i);
  if (second) y = load(p + 32 * (i + 1));
#endif
}
// What other warps publish: read from memory each time; 0 in the lanes outside of m.
ARRCOMP_INLINE U64 load_published(const uint64_t* p, Mask m) {
  return {m.set ? *(const volatile uint64_t*)(p + lane()) : 0};
}
template <class T>
ARRCOMP_INLINE T* in_device_memory(T* p) {
#ifdef __CUDACC__
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}
template <class T, class V>
ARRCOMP_INLINE void store(T* p, V x) {
  p[lane()] = (T)x.v;
}
template <class T, class V>
ARRCOMP_INLINE void store_first(T* p, V x, int n) {
  if (lane() < n) store(p, x);
}

template <class T>
ARRCOMP_INLINE U32 gather(const T* t, U32 i) {
  return element(t, i.v);
}

ARRCOMP_INLINE void gather_pair(const uint32_t (*t)[2], U32 i, U32& first, U32& second) {
  const uint2 pair = ((const uint2*)t)[i.v];
  first.v = pair.x;
  second.v = pair.y;
}
ARRCOMP_INLINE U32 gather_at(const uint16_t* t, U32 bytes) { return {*(const uint16_t*)((const uint8_t*)t + bytes.v)}; }

// Memory of a warp in which rows that move together change lanes: the same for all that need little.
constexpr int max_warps_per_block = 4;
template <int bytes>
ARRCOMP_INLINE void* exchange_memory() {
  if constexpr (bytes < 1024) {
    return exchange_memory<1024>();
  } else {
    __shared__ uint4 memory[max_warps_per_block][bytes / sizeof(uint4)];
    return memory[threadIdx.x / 32];
  }
}

// Sixteen bytes of each lane, and again.
template <class T, int n>
struct Fetched {
  static constexpr int bytes = 32 * n * (int)sizeof(T);
  static_assert(bytes % 512 == 0);
  uint4 parts[bytes / 512];
};

template <int n, class T>
ARRCOMP_INLINE Fetched<T, n> fetch_rows(const T* p) {
  Fetched<T, n> fetched;
#pragma unroll
  for (int i = 0; i < fetched.bytes / 512; i++) fetched.parts[i] = ((const uint4*)p)[32 * i + lane()];
  return fetched;
}

template <class T, class V, int n>
ARRCOMP_INLINE void arrive(const Fetched<T, n>& fetched, V (&rows)[n]) {
  constexpr int bytes = Fetched<T, n>::bytes;
  void* const memory = exchange_memory<bytes>();
  sync();  // what was there before has been read
#pragma unroll
  for (int i = 0; i < bytes / 512; i++) ((uint4*)memory)[32 * i + lane()] = fetched.parts[i];
  sync();
#pragma unroll
  for (int j = 0; j < n; j++) rows[j] = {((const T*)memory)[32 * j + lane()]};
}

template <class T, class V, int n>
ARRCOMP_INLINE void load_rows(const T* p, V (&rows)[n]) {
  arrive(fetch_rows<n>(p), rows);
}

template <class T, class V, int n>
ARRCOMP_INLINE void store_rows(T* p, V (&rows)[n]) {
  constexpr int bytes = 32 * n * (int)sizeof(T);
  static_assert(bytes % 512 == 0 || bytes == 256);
  void* const memory = exchange_memory<bytes>();
  sync();  // what was there before has been read
#pragma unroll
  for (int j = 0; j < n; j++) ((T*)memory)[32 * j + lane()] = (T)rows[j].v;
  sync();
#pragma unroll
  for (int i = lane(); i < bytes / 16; i += 32) ((uint4*)p)[i] = ((const uint4*)memory)[i];
}

// Each lane keeps the elements that it fetched, which stand side by side: 4 of 32 bits, 8 of 16.
template <class T, class V, int n>
ARRCOMP_INLINE void arrive_unsorted(const Fetched<T, n>& fetched, V (&rows)[n]) {
#pragma unroll
  for (int i = 0; i < fetched.bytes / 512; i++) {
    const uint32_t words[] = {fetched.parts[i].x, fetched.parts[i].y, fetched.parts[i].z, fetched.parts[i].w};
    constexpr int each = 4 / (int)sizeof(T);  // elements of a word
#pragma unroll
    for (int j = 0; j < 4 * each; j++)
      rows[4 * each * i + j] = {each == 1 ? words[j / each] : words[j / each] >> 16 * (j % each) & 0xffff};
  }
}

ARRCOMP_INLINE U32 in_halves(U32 lower, U32 upper) { return {__byte_perm(lower.v, upper.v, 0x5410)}; }
ARRCOMP_INLINE U32 upper_in_halves(U32 lower, U32 upper) { return {__byte_perm(lower.v, upper.v, 0x7632)}; }

template <class T, int n, class InHalves>
ARRCOMP_INLINE void store_unsorted(uint16_t* p, U32 (&rows)[n], InHalves in_halves) {
  constexpr int together = 16 / (int)sizeof(T);
#pragma unroll
  for (int i = 0; i < n / together; i++) {
    uint32_t pairs[together / 2];
#pragma unroll
    for (int j = 0; j < together / 2; j++)
      pairs[j] = in_halves(rows[together * i + 2 * j], rows[together * i + 2 * j + 1]).v;
    if constexpr (together == 4) {
      ((uint2*)p)[32 * i + lane()] = {pairs[0], pairs[1]};
    } else {
      ((uint4*)p)[32 * i + lane()] = {pairs[0], pairs[1], pairs[2], pairs[3]};
    }
  }
}
template <class T, int n>
ARRCOMP_INLINE void store_unsorted(uint16_t* p, U32 (&rows)[n]) {
  store_unsorted<T>(p, rows, [](U32 x, U32 y) { return in_halves(x, y); });
}
template <class T, int n>
ARRCOMP_INLINE void store_upper_unsorted(uint16_t* p, U32 (&rows)[n]) {
  store_unsorted<T>(p, rows, [](U32 x, U32 y) { return upper_in_halves(x, y); });
}

// Two rows are in 16 lanes, or in 8.
template <class T, int n>
ARRCOMP_INLINE Mask nonzero_unsorted(const U32 (&rows)[n]) {
  constexpr int together = 16 / (int)sizeof(T);
  Mask nonzero = {true};
#pragma unroll
  for (int i = 0; i < n; i += together) {
    uint32_t all = 0;
#pragma unroll
    for (int j = 0; j < together; j++) all |= rows[i + j].v;
    nonzero = {nonzero.set && all != 0};
  }
  return nonzero;
}

template <class T>
ARRCOMP_INLINE auto load_apart(const T* p, int distance, int n) {
  return element(p, lane() < n ? lane() * distance : 0);
}

template <class T>
ARRCOMP_INLINE auto load_places(const T* p, U64 places, int n) {
  auto x = decltype(element(p, 0)){0};
  if (lane() < n) x = element(p + places.v, 0);
  return x;
}

template <class T, class V>
ARRCOMP_INLINE void store_places(T* p, U64 places, int n, V x) {
  if (lane() < n) p[places.v] = (T)x.v;
}

template <class T, class V>
ARRCOMP_INLINE void store_apart(T* p, int distance, int n, V x) {
  if (lane() < n) p[lane() * distance] = (T)x.v;
}

template <class T, class V, int k>
ARRCOMP_INLINE void store_apart(T* p, int distance, int n, const V (&rows)[k]) {
#pragma unroll
  for (int j = 0; j < k; ++j) store_apart(p + j, distance, n, rows[j]);
}

template <class T, class V>
ARRCOMP_INLINE void load_pairs(const T* p, V& even, V& odd) {
  even = element(p, 2 * lane());
  odd = element(p, 2 * lane() + 1);
}

template <class T, class V>
ARRCOMP_INLINE void store_pairs(T* p, V even, V odd) {
  p[2 * lane()] = (T)even.v;
  p[2 * lane() + 1] = (T)odd.v;
}

template <class T, class V>
ARRCOMP_INLINE void load_first_pairs(const T* p, int n, V& even, V& odd) {
  even = odd = V{};
  if (2 * lane() < n) even = element(p, 2 * lane());
  if (2 * lane() + 1 < n) odd = element(p, 2 * lane() + 1);
}

template <class T, class V>
ARRCOMP_INLINE void store_first_pairs(T* p, V even, V odd, int n) {
  if (2 * lane() < n) p[2 * lane()] = (T)even.v;
  if (2 * lane() + 1 < n) p[2 * lane() + 1] = (T)odd.v;
}

ARRCOMP_INLINE void set_bits(uint32_t* p, U32 x, Mask m) {
  if (m.set) atomicOr(p + (x.v >> 5), 1u << (x.v & 31));
}
ARRCOMP_INLINE void add_ones(uint32_t* p, U32 x, Mask m) {
  if (m.set) atomicAdd(p + x.v, 1u);
}

struct Table64 {
  const uint32_t* entries;
};
ARRCOMP_INLINE Table64 table(const uint32_t* entries) { return {entries}; }
ARRCOMP_INLINE U32 lookup(Table64 t, U32 i) { return {t.entries[i.v]}; }
template <int n>
ARRCOMP_INLINE U32 lookup(const uint32_t* t, U32 i) {
  return {t[i.v & (n - 1)]};
}

template <int n>
ARRCOMP_INLINE const uint32_t* nearby(const uint32_t* t) {
  alignas(4 * n) __shared__ uint4 memory[max_warps_per_block][n / 4];
  uint4* const own = memory[threadIdx.x / 32];
  sync();  // what was there before has been read
#pragma unroll 4
  for (int i = lane(); i < n / 4; i += 32) own[i] = __ldg((const uint4*)t + i);
  sync();
  return (const uint32_t*)own;
}

template <class T>
ARRCOMP_INLINE T* compress(T* p, Lanes<T> x, Mask m) {
  uint32_t all = bits(m);
  if (m.set) p[rank(all)] = x.v;
  return p + __popc(all);
}
template <class T>
ARRCOMP_INLINE const T* expand(const T* p, Lanes<T>& x, Mask m) {
  uint32_t all = bits(m);
  x.v = m.set ? p[rank(all)] : 0;
  return p + __popc(all);
}
template <class P>
ARRCOMP_INLINE P* behind(P* p, uint32_t bytes) {
  return (P*)((const char*)p + bytes);
}
ARRCOMP_INLINE uint32_t compress(uint32_t* p, uint32_t at, U32 x, Mask m) {
  const uint32_t all = bits(m);
  if (m.set) *behind(p, at + 4 * rank(all)) = x.v;
  return at + 4 * __popc(all);
}
ARRCOMP_INLINE uint32_t expand(const uint32_t* p, uint32_t at, U32& x, Mask m) {
  const uint32_t all = bits(m), word = *behind(p, at + 4 * rank(all));  // in all lanes: no branch
  x.v = m.set ? word : 0;
  return at + 4 * __popc(all);
}
// Of pointers into one array. As those of a warp's memory have 32 bits, the compiler need not make longer ones; nor does
// it sum again what was added to the beginning.
ARRCOMP_INLINE uint32_t bytes_between(const void* begin, const void* end) {
#ifdef __CUDACC__
  return in_registers(U32{(uint32_t)__cvta_generic_to_shared(end)}).v - (uint32_t)__cvta_generic_to_shared(begin);
#else
  return (uint32_t)((const char*)end - (const char*)begin);
#endif
}

// Each lane counts on from its place in the row before: the lanes of that row from itself on, and those of this row
// below itself.
template <class T>
class RowPlaces {
 public:
  ARRCOMP_METHOD RowPlaces(T* p, uint32_t at) : below_((1u << lane()) - 1), place_(behind(p, at)) {}
  ARRCOMP_METHOD void compress(U32 x, Mask m) {
    go_on(bits(m));
    if (m.set) *place_ = (T)x.v;
  }
  ARRCOMP_METHOD void expand(U32& x, Mask m) {
    go_on(bits(m));
    x.v = *place_;  // in all lanes: no branch
  }
  ARRCOMP_METHOD uint32_t end_behind(T* p) const {  // the same in all lanes
    return bytes_between(p, place_) + (uint32_t)sizeof(T) * __popc(before_ & ~below_);
  }

 private:
  ARRCOMP_METHOD void go_on(uint32_t all) {
    place_ += __popc((before_ & ~below_) | (all & below_));
    before_ = all;
  }

  uint32_t below_;
  T* place_;
  uint32_t before_ = 0;
};

// A lane has 8 bytes of a row, which become one of each plane.
template <int n>
ARRCOMP_INLINE void store_planes(uint32_t* p, const uint8_t* rows, int k) {
  const uint2 own = ((const uint2*)rows)[lane()];
  uint8_t* const to = (uint8_t*)(p + n * (lane() / 4)) + lane() % 4;
#pragma unroll
  for (int first = 0; first < n; first += 4) {
    const int some = n - first < 4 ? n - first : 4;  // of half a byte
    const uint32_t kept = ((1u << some) - 1) * 0x01010101;
    const uint32_t halves = (own.x >> (k + first) & kept) + ((own.y >> (k + first) & kept) << 4);
#pragma unroll
    for (int b = 0; b < some; b++) {
      // Bit 8 i + b, and those 4 above, go to 24 + i; no two of those that go elsewhere meet.
      const uint32_t plane = (halves & 0x11111111u << b) * (0x01020408u >> b) >> 24;
      to[4 * (first + b)] = (uint8_t)plane;
    }
  }
}

ARRCOMP_INLINE uint16_t* append(uint16_t* p, U32 x, Mask m) {
  uint32_t all = bits(m);
  if (m.set) p[rank(all)] = (uint16_t)x.v;
  return p + __popc(all);
}
// Words that come near in pieces of 16 bytes a lane, one of them on its way while those before it are taken: two pieces
// of all lanes are in memory of the warp, which one source at a time may have.
class WordSource {
  static constexpr int near_bytes = 512;  // of a piece of all lanes

 public:
  WordSource() = default;
  ARRCOMP_METHOD WordSource(const uint16_t* begin, const uint16_t* end) {
    pieces_ = (const uint4*)((const uint8_t*)begin - bytes_before(begin));
    at_ = (int)((const uint8_t*)end - (const uint8_t*)pieces_);
    near_ = (at_ + near_bytes - 1) / near_bytes * near_bytes;
    fetched_ = uint4{0, 0, 0, 0};
    if (near_ - near_bytes + (int)sizeof(uint4) * lane() < at_) fetch();
    advance();
  }

  ARRCOMP_METHOD void bring_near() {
    if (at_ - near_ < near_bytes) advance();
  }

  ARRCOMP_METHOD void take(U32& x, Mask lanes) {
    const uint32_t all = bits(lanes);
    at_ -= 2 * __popc(all);
    // All lanes read, so that none of them goes its own way.
    const uint32_t word = *(const uint16_t*)in_ring(at_ + 2 * rank(all));
    x.v = lanes.set ? x.v << 16 | word : x.v;
  }

  ARRCOMP_METHOD int left(const uint16_t* begin) const { return (at_ - bytes_before(begin)) / 2; }

 private:
  // Of the piece that has the first word.
  ARRCOMP_METHOD static int bytes_before(const uint16_t* begin) { return (int)((uintptr_t)begin % sizeof(uint4)); }

  ARRCOMP_METHOD static void* in_ring(int at) {
    alignas(2 * near_bytes) __shared__ uint8_t memory[max_warps_per_block][2 * near_bytes];
    return memory[threadIdx.x / 32] + (uint32_t)at % (2 * near_bytes);
  }

  // What is below the first of the words is not read: whoever takes it has a corrupt stream.
  ARRCOMP_METHOD void fetch() {
    const int first = near_ - near_bytes;
    if (first >= 0) fetched_ = __ldg(pieces_ + (uint32_t)first / sizeof(uint4) + lane());
  }

  ARRCOMP_METHOD void advance() {
    near_ -= near_bytes;
    sync();  // what was there before has been taken
    *(uint4*)in_ring(near_ + (int)sizeof(uint4) * lane()) = fetched_;
    sync();
    fetch();
  }

  const uint4* pieces_ = nullptr;
  uint4 fetched_;
  int at_ = 0, near_ = 0;  // in bytes from the first piece on
};

// --- integers

#define ARRCOMP_OPERATOR(op)                                    \
  template <class T>                                            \
  ARRCOMP_INLINE Lanes<T> operator op(Lanes<T> x, Lanes<T> y) { \
    return {x.v op y.v};                                        \
  }
ARRCOMP_OPERATOR(+)
ARRCOMP_OPERATOR(-)
ARRCOMP_OPERATOR(&)
ARRCOMP_OPERATOR(|)
ARRCOMP_OPERATOR(^)
#undef ARRCOMP_OPERATOR
template <class T>
ARRCOMP_INLINE Lanes<T> operator<<(Lanes<T> x, int k) {
  return {x.v << k};
}
template <class T>
ARRCOMP_INLINE Lanes<T> operator>>(Lanes<T> x, int k) {
  return {x.v >> k};
}
ARRCOMP_INLINE U32 funnel_wrapped(U32 low, U32 high, int k) { return {__funnelshift_r(low.v, high.v, k)}; }
ARRCOMP_INLINE U32 sar(U32 x, int k) { return {(uint32_t)((int32_t)x.v >> k)}; }
ARRCOMP_INLINE U64 sar(U64 x, int k) { return {(uint64_t)((int64_t)x.v >> k)}; }
template <class T>
ARRCOMP_INLINE Mask eq(Lanes<T> x, Lanes<T> y) {
  return {x.v == y.v};
}
template <class T>
ARRCOMP_INLINE Mask ne(Lanes<T> x, Lanes<T> y) {
  return {x.v != y.v};
}
template <class T>
ARRCOMP_INLINE Mask ge(Lanes<T> x, Lanes<T> y) {
  return {x.v >= y.v};
}
ARRCOMP_INLINE Mask ge_varying(U32 x, U32 y) { return ge(x, y); }

ARRCOMP_INLINE U32 operator*(U32 x, U32 y) { return {x.v * y.v}; }
template <auto mask, class V>
ARRCOMP_INLINE V merged(V x, V y) {
  return (x & splat<V>(mask)) | (y & splat<V>(~mask));
}
template <auto mask, auto bits, class V>
ARRCOMP_INLINE V masked_or(V x) {
#ifdef __CUDACC__
  if constexpr (sizeof x.v == 4) {  // the compiler makes two instructions of two constants
    asm("lop3.b32 %0, %0, %1, %2, 0xea;" : "+r"(x.v) : "n"(mask), "n"(bits));
    return x;
  }
#endif
  return (x & splat<V>(mask)) | splat<V>(bits);
}
ARRCOMP_INLINE U32 mulhi(U32 x, U32 y) { return {__umulhi(x.v, y.v)}; }
ARRCOMP_INLINE U32 srlv(U32 x, U32 n) { return {x.v >> n.v}; }
ARRCOMP_INLINE U32 srl_modulo(U32 x, U32 n) { return {__funnelshift_r(x.v, 0, n.v)}; }
ARRCOMP_INLINE U32 put_above(U32 x, int k, U32 y) { return {x.v * in_registers(U32{1u << k}).v + y.v}; }  // not two
ARRCOMP_INLINE U32 minus_shifted(U32 x, int k) { return {x.v * in_registers(U32{~0u << k}).v}; }
ARRCOMP_INLINE U32 funnel(U32 x, U32 y, int k) { return {__funnelshift_rc(x.v, y.v, k)}; }
ARRCOMP_INLINE U32 bit_length(U32 x) {
#ifdef __CUDACC__
  uint32_t highest;  // ~0 where there is no bit
  asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(x.v));
  return {highest + 1};  // an instruction less than with __clz
#else
  return {32u - (uint32_t)__clz((int)x.v)};
#endif
}
ARRCOMP_INLINE int bit_length(uint32_t x) { return 32 - __clz((int)x); }
ARRCOMP_INLINE U32 lo(U64 x) { return {(uint32_t)x.v}; }
ARRCOMP_INLINE U32 hi(U64 x) { return {(uint32_t)(x.v >> 32)}; }
ARRCOMP_INLINE U64 join(U32 lo, U32 hi) { return {(uint64_t)hi.v << 32 | lo.v}; }

// --- floats, and what integers share with them

ARRCOMP_INLINE F32 operator+(F32 x, F32 y) { return {__fadd_rn(x.v, y.v)}; }
ARRCOMP_INLINE F32 operator-(F32 x, F32 y) { return {__fsub_rn(x.v, y.v)}; }
ARRCOMP_INLINE F32 operator*(F32 x, F32 y) { return {__fmul_rn(x.v, y.v)}; }
ARRCOMP_INLINE F32 operator/(F32 x, F32 y) { return {__fdiv_rn(x.v, y.v)}; }
ARRCOMP_INLINE F64 operator/(F64 x, F64 y) { return {__ddiv_rn(x.v, y.v)}; }
ARRCOMP_INLINE F64 operator+(F64 x, F64 y) { return {__dadd_rn(x.v, y.v)}; }
ARRCOMP_INLINE F64 operator-(F64 x, F64 y) { return {__dsub_rn(x.v, y.v)}; }
ARRCOMP_INLINE F64 operator*(F64 x, F64 y) { return {__dmul_rn(x.v, y.v)}; }
template <class T>
ARRCOMP_INLINE Mask lt(Lanes<T> x, Lanes<T> y) {
  return {x.v < y.v};
}
template <class T>
ARRCOMP_INLINE Mask le(Lanes<T> x, Lanes<T> y) {
  return {x.v <= y.v};
}
template <class T>
ARRCOMP_INLINE Lanes<T> min(Lanes<T> x, Lanes<T> y) {
  return {y.v < x.v ? y.v : x.v};
}
template <class T>
ARRCOMP_INLINE Lanes<T> max(Lanes<T> x, Lanes<T> y) {
  return {x.v < y.v ? y.v : x.v};
}

ARRCOMP_INLINE U32 as_bits(F32 f) { return {__float_as_uint(f.v)}; }
ARRCOMP_INLINE U64 as_bits(F64 f) { return {(uint64_t)__double_as_longlong(f.v)}; }
ARRCOMP_INLINE F32 as_float(U32 x) { return {__uint_as_float(x.v)}; }
ARRCOMP_INLINE F64 as_double(U64 x) { return {__longlong_as_double((long long)x.v)}; }
ARRCOMP_INLINE F32 abs(F32 f) { return as_float(as_bits(f) & splat<U32>(0x7fffffff)); }
ARRCOMP_INLINE F64 abs(F64 f) { return as_double(as_bits(f) & splat<U64>(~(uint64_t)0 >> 1)); }
// Parts of other instructions, or one of their own.
ARRCOMP_INLINE F32 size(F32 f) { return {__builtin_fabsf(f.v)}; }
ARRCOMP_INLINE F64 size(F64 f) { return {__builtin_fabs(f.v)}; }
ARRCOMP_INLINE F32 lower(F32 x, F32 y) { return {__builtin_fminf(x.v, y.v)}; }
ARRCOMP_INLINE F64 lower(F64 x, F64 y) { return {__builtin_fmin(x.v, y.v)}; }
ARRCOMP_INLINE F32 higher(F32 x, F32 y) { return {__builtin_fmaxf(x.v, y.v)}; }
ARRCOMP_INLINE F64 higher(F64 x, F64 y) { return {__builtin_fmax(x.v, y.v)}; }
ARRCOMP_INLINE U32 to_int(F32 f) { return {(uint32_t)__float2int_rn(f.v)}; }
ARRCOMP_INLINE U32 to_code(F32 f, uint32_t largest) { return min(U32{__float2uint_rn(f.v)}, splat<U32>(largest)); }
ARRCOMP_INLINE F64 to_double(F32 f) { return {(double)f.v}; }
ARRCOMP_INLINE F32 to_float(U32 x) { return {__int2float_rn((int)x.v)}; }
#ifdef __CUDACC__
// Written as instructions: the header of CUDA's half type would slow the compilation of every file.
ARRCOMP_INLINE float float_of_half(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
ARRCOMP_INLINE uint16_t half_of_float(float f) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
ARRCOMP_INLINE float quick_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ARRCOMP_INLINE float quick_power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif  // elsewhere they come, like the intrinsics, from what emulates a warp
// The instruction's NaN has no sign.
ARRCOMP_INLINE F32 from_half(U32 x) {
  return as_float(as_bits(abs(F32{float_of_half((uint16_t)x.v)})) | (x & splat<U32>(0x8000)) << 16);
}
ARRCOMP_INLINE U32 to_half(F32 f) {
  return select(le(abs(f), as_float(splat<U32>(0x7f800000))), U32{half_of_float(f.v)}, splat<U32>(0x7e00));
}

// What CUDA says of both instructions: two units of the last place at most, or 2^-22 for numbers from 1/2 to 2.
ARRCOMP_INLINE F32 near_log2(F32 x) { return {quick_log2(__builtin_fabsf(x.v))}; }
ARRCOMP_INLINE F32 near_power(F32 x) { return {quick_power(x.v)}; }
ARRCOMP_INLINE F32 exponents(F32 x) { return to_float(as_bits(x) << 1 >> 24) - splat<F32>(127); }
ARRCOMP_INLINE F32 near_sum(F32 x, F32 y, F32 z) { return {__fmaf_rn(x.v, y.v, z.v)}; }
ARRCOMP_INLINE F64 near_sum(F64 x, F64 y, F64 z) { return {__fma_rn(x.v, y.v, z.v)}; }

// --- across the lanes

template <class T>
ARRCOMP_INLINE Lanes<T> broadcast_last(Lanes<T> x) {
  return {(T)__shfl_sync(all_lanes, x.v, 31)};
}
template <class T>
ARRCOMP_INLINE Lanes<T> shift_in(Lanes<T> before, Lanes<T> x) {
  T own = lane() == 31 ? before.v : x.v;
  return {(T)__shfl_sync(all_lanes, own, (lane() + 31) & 31)};
}
// Lanes from n on add what the lane n below them has.
template <class T>
ARRCOMP_INLINE T with_below(T x, int n) {
  const T below = __shfl_up_sync(all_lanes, x, n);
  return lane() >= n ? x + below : x;
}
#ifdef __CUDACC__
ARRCOMP_INLINE uint32_t with_below(uint32_t x, int n) {  // the instruction says which lanes these are
  asm volatile("{ .reg .pred p; .reg .b32 r; shfl.sync.up.b32 r|p, %0, %1, 0, 0xffffffff; @p add.u32 %0, r, %0; }"
               : "+r"(x)
               : "r"(n));
  return x;
}
#endif
template <class T>
ARRCOMP_INLINE Lanes<T> prefix_sum(Lanes<T> x) {
#pragma unroll
  for (int n = 1; n < 32; n *= 2) x.v = with_below(x.v, n);
  return x;
}

// Each lane sums n values that stand side by side, so that one sum alone goes across the lanes. The units of 16 bytes
// have changed places in memory, so that those of 8 lanes are in different banks.
template <class T, int n>
ARRCOMP_INLINE void prefix_sums(Lanes<T> (&rows)[n], Lanes<T>& before, Lanes<T> step) {
  constexpr int together = 16 / (int)sizeof(T), units = n / together;  // of a lane
  static_assert(n % together == 0 && (units & (units - 1)) == 0);
  const auto place = [](int unit) { return unit ^ (unit >> 3 & (units - 1)); };
  T* const memory = (T*)exchange_memory<32 * n*(int)sizeof(T)>();
  T* const even = memory + together * place(lane() / together) + lane() % together;  // of a row's elements
  T* const odd = memory + ((even - memory) ^ 4);
  const auto element_at = [&](int j) { return (j % 2 == 0 ? even : odd) + 32 * j; };
  const auto unit_at = [&](int i) { return (uint4*)memory + (place(units * lane()) ^ i); };
  sync();  // what was there before has been read
#pragma unroll
  for (int j = 0; j < n; j++) *element_at(j) = rows[j].v;
  sync();
  alignas(16) T own[n];
#pragma unroll
  for (int i = 0; i < units; i++) ((uint4*)own)[i] = *unit_at(i);
  own[0] += step.v;
#pragma unroll
  for (int k = 1; k < n; k++) own[k] += own[k - 1] + step.v;
  const Lanes<T> sums = prefix_sum(Lanes<T>{own[n - 1]}) + before;
  before = broadcast_last(sums);
  const T start = sums.v - own[n - 1];
#pragma unroll
  for (int k = 0; k < n; k++) own[k] += start;
#pragma unroll
  for (int i = 0; i < units; i++) *unit_at(i) = ((const uint4*)own)[i];
  sync();
#pragma unroll
  for (int j = 0; j < n; j++) rows[j].v = *element_at(j);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <class Operation>
ARRCOMP_INLINE uint32_t reduce(uint32_t x, Operation operation) {
#pragma unroll
  for (int n = 16; n > 0; n /= 2) x = operation(x, __shfl_xor_sync(all_lanes, x, n));
  return x;
}
ARRCOMP_INLINE uint32_t sum(U32 x) {
  return reduce(x.v, [](uint32_t a, uint32_t b) { return a + b; });
}
ARRCOMP_INLINE uint32_t or_all(U32 x) {
  return reduce(x.v, [](uint32_t a, uint32_t b) { return a | b; });
}
ARRCOMP_INLINE uint32_t max_all(U32 x) {
  return reduce(x.v, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
}
#else
ARRCOMP_INLINE uint32_t sum(U32 x) { return __reduce_add_sync(all_lanes, x.v); }
ARRCOMP_INLINE uint32_t or_all(U32 x) { return __reduce_or_sync(all_lanes, x.v); }
ARRCOMP_INLINE uint32_t max_all(U32 x) { return __reduce_max_sync(all_lanes, x.v); }
#endif

ARRCOMP_INLINE uint32_t uniform(uint32_t n) { return or_all(U32{n}); }

// The values of lanes 0 to 15 and of lanes 16 to 31.
template <class T>
struct Halves {
  T lower, upper;
};

// What lookup_alias finds.
struct AliasSlots {
  U32 symbol, frequency, rank;
};
ARRCOMP_INLINE Halves<uint32_t> max_of_halves(U32 x) {
#pragma unroll
  for (int n = 8; n > 0; n /= 2) x = max(x, U32{__shfl_xor_sync(all_lanes, x.v, n)});
  return {__shfl_sync(all_lanes, x.v, 0), __shfl_sync(all_lanes, x.v, 16)};
}
ARRCOMP_INLINE U32 max_of_halves(const U32 (&rows)[16]) {
  U32 found{0};
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const Halves<uint32_t> of_row = max_of_halves(rows[j]);
    if (lane() / 2 == j) found.v = lane() % 2 == 0 ? of_row.lower : of_row.upper;
  }
  return found;
}

}  // namespace arrcomp::cuda

// Each needs those before it.
// clang-format off
#include "no_streaming.h"  // what is written leaves the caches soon enough
#include "generic.h"
#include "runs.h"
// clang-format on
