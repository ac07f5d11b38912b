// For instruction sets without stores that leave the caches alone, or without need of them. Included once by each of
// them, after what `store` is there, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool can_stream = false;

template <class T, class V>
ARRCOMP_INLINE void store_streaming(T* p, V x) {
  store(p, x);
}
ARRCOMP_INLINE void end_streaming() {}

}  // namespace arrcomp::ARRCOMP_ISA
