// Stores that leave the caches alone, for the instruction sets of x86-64. Included once by each of them, after host.h,
// hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool can_stream = true;

// Arrays are aligned to no more than 16 bytes, and a processor writes whole lines best, by few stores: what is between
// the first and the last aligned register of the rows is put together from the registers of two rows, or of one.
template <class T>
class StreamedRows {
 public:
  ARRCOMP_METHOD explicit StreamedRows(T* p)
      : at_((uint8_t*)p), offset_((int)((uintptr_t)p % register_bytes)), shift_(offset_) {}

  template <class V>
  ARRCOMP_METHOD void add(V x) {
    if constexpr (sizeof(T) >= least_streamed) {
      constexpr int registers = 32 * sizeof(T) / register_bytes;
      u32r row[registers];
      row_registers<T>(x, row);
#pragma GCC unroll 8
      for (int i = 0; i < registers; i++) add_register(row[i]);
    } else {
      alignas(64) T row[32];
      store(row, x);
      stream_segments(row, 0, 32 * sizeof(T));
      at_ += 32 * sizeof(T);
    }
  }

  ARRCOMP_METHOD void finish() {
    at_ -= offset_;
    if (has_begun_) stream_segments(&before_, register_bytes - offset_, register_bytes);
  }

 private:
  ARRCOMP_METHOD void add_register(u32r x) {
    if (has_begun_) {
      stream(at_ - offset_, shift_.join(before_, x));
    } else {
      stream_segments(&x, 0, register_bytes - offset_);
      has_begun_ = true;
    }
    before_ = x;
    at_ += register_bytes;
  }

  // The bytes [begin, end) of what is there, in segments of 16.
  ARRCOMP_METHOD void stream_segments(const void* from, int begin, int end) const {
    for (int i = begin; i < end; i += (int)sizeof(__m128i))
      _mm_stream_si128((__m128i*)(at_ + i - begin), _mm_loadu_si128((const __m128i*)((const uint8_t*)from + i)));
  }

  uint8_t* at_;
  int offset_;  // of the rows, in a register's alignment
  RegisterShift shift_;
  bool has_begun_ = false;
  u32r before_{};
};

ARRCOMP_INLINE void end_streaming() { _mm_sfence(); }

}  // namespace arrcomp::ARRCOMP_ISA
