// For instruction sets that gather two tables in no less time than pairs. Included once by each of them, after `gather`,
// hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool gathers_pairs = false;

ARRCOMP_INLINE void gather_pair(const uint32_t (*t)[2], U32 i, U32& first, U32& second) {
  first = gather(t[0], i << 1);
  second = gather(t[0] + 1, i << 1);
}
ARRCOMP_INLINE U32 gather_at(const uint16_t* t, U32 bytes) { return gather(t, bytes >> 1); }

}  // namespace arrcomp::ARRCOMP_ISA
