// For instruction sets without stores that leave the caches alone, or without need of them. Included once by each of
// them, after what `store` is there, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool can_stream = false;

template <class T>
class StreamedRows {
 public:
  ARRCOMP_METHOD explicit StreamedRows(T* p) : at_(p) {}
  template <class V>
  ARRCOMP_METHOD void add(V x) {
    store(at_, x);
    at_ += 32;
  }
  ARRCOMP_METHOD void finish() {}

 private:
  T* at_;
};
ARRCOMP_INLINE void end_streaming() {}

}  // namespace arrcomp::ARRCOMP_ISA
