/* arrcomp: compression of arrays, for C and every language that calls C.
 *
 * Arrays and streams are in host memory. A stream is the same bytes that Python's `Compressed.to_bytes()` gives for the
 * same array, codec and parameters (native/FORMAT.md). Every function may be called from many threads at once. None
 * keeps a pointer, and none lets a C++ exception out. Until version 1 of the library, a new minor version may change
 * what is declared here; the library's SONAME then changes too.
 */
#ifndef ARRCOMP_H
#define ARRCOMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function is declared with. The build of a Windows library gives another. */
#ifndef ARRCOMP_API
#ifdef _WIN32
#define ARRCOMP_API
#else
#define ARRCOMP_API __attribute__((visibility("default")))
#endif
#endif

/* What a function returns. `arrcomp_error_message()` says more of every status but ARRCOMP_OK. */
typedef enum arrcomp_status {
  ARRCOMP_OK = 0,
  ARRCOMP_INVALID_ARGUMENT = 1, /* an argument, or a parameter of the configuration, is not what is expected */
  ARRCOMP_BUFFER_TOO_SMALL = 2, /* the result does not fit */
  ARRCOMP_CORRUPT = 3,          /* the bytes are not a stream, or were altered */
  ARRCOMP_NEWER_FORMAT = 4,     /* a newer arrcomp reads the stream */
  ARRCOMP_UNKNOWN_CODEC = 5,    /* there is no codec of this name or id */
  ARRCOMP_NOT_SUPPORTED = 6,    /* Python's package does it, this library does not: Zstandard frames and references */
  ARRCOMP_NO_MEMORY = 7,
  ARRCOMP_INTERNAL_ERROR = 8 /* a defect of the library */
} arrcomp_status;

/* Data types of values, as streams number them (FORMAT.md, section 2). Those below 8 bits take one byte a value. */
typedef enum arrcomp_dtype {
  ARRCOMP_BOOL = 1,
  ARRCOMP_INT8 = 2,
  ARRCOMP_UINT8 = 3,
  ARRCOMP_INT16 = 4,
  ARRCOMP_UINT16 = 5,
  ARRCOMP_INT32 = 6,
  ARRCOMP_UINT32 = 7,
  ARRCOMP_INT64 = 8,
  ARRCOMP_UINT64 = 9,
  ARRCOMP_FLOAT16 = 10,
  ARRCOMP_BFLOAT16 = 11,
  ARRCOMP_FLOAT32 = 12,
  ARRCOMP_FLOAT64 = 13,
  ARRCOMP_COMPLEX64 = 14, /* real part, then imaginary part */
  ARRCOMP_COMPLEX128 = 15,
  ARRCOMP_FLOAT8_E4M3FN = 16,
  ARRCOMP_FLOAT8_E5M2 = 17,
  ARRCOMP_FLOAT8_E4M3FNUZ = 18,
  ARRCOMP_FLOAT8_E5M2FNUZ = 19,
  ARRCOMP_FLOAT8_E4M3B11FNUZ = 20,
  ARRCOMP_FLOAT8_E4M3 = 21,
  ARRCOMP_FLOAT8_E3M4 = 22,
  ARRCOMP_FLOAT8_E8M0FNU = 23,
  ARRCOMP_FLOAT4_E2M1FN = 24,
  ARRCOMP_FLOAT6_E2M3FN = 25,
  ARRCOMP_FLOAT6_E3M2FN = 26,
  ARRCOMP_INT4 = 27,
  ARRCOMP_UINT4 = 28
} arrcomp_dtype;

#define ARRCOMP_MAX_DIMENSIONS 64

/* What an array is: values in C order (the last index varies fastest), in the processor's byte order. */
typedef struct arrcomp_layout {
  arrcomp_dtype dtype;
  int dimensions;        /* 0 (a scalar) to ARRCOMP_MAX_DIMENSIONS */
  const uint64_t* shape; /* one size for each dimension, which may be 0; NULL for a scalar */
} arrcomp_layout;

/* What a stream holds. */
typedef struct arrcomp_info {
  arrcomp_dtype dtype;
  int dimensions;
  uint64_t shape[ARRCOMP_MAX_DIMENSIONS]; /* 0 beyond the dimensions */
  uint64_t array_bytes;                   /* of the decompressed array */
  const char* codec;                      /* its name; a string that is never freed */
  int is_framed;                          /* not 0: the payload is in a Zstandard frame */
} arrcomp_info;

/* The library's version, such as "0.1.0". */
ARRCOMP_API const char* arrcomp_version(void);

/* What this thread's last call that failed has to say: "<name>: expected X, got Y". Empty before the first failure; it
 * holds until the next one on this thread. */
ARRCOMP_API const char* arrcomp_error_message(void);

/* Writes to `*bytes` how many bytes an array of this layout has.
 *
 * Returns ARRCOMP_INVALID_ARGUMENT where there is no such layout. */
ARRCOMP_API arrcomp_status arrcomp_array_bytes(uint64_t* bytes, const arrcomp_layout* layout);

/* Writes to `*bytes` how many bytes are enough for the stream of every array of this layout.
 *
 * configuration: codec and parameters as a JSON object of UTF-8, such as {"codec":"error-bounded","abs":0.001}, with
 *   the keys and defaults of FORMAT.md (sections 1.2 and 5); NULL for {"codec":"lossless"}.
 *
 * Returns ARRCOMP_INVALID_ARGUMENT where the codec has no such parameters or does not take the data type, or where the
 * shape has 2^60 elements or more; ARRCOMP_UNKNOWN_CODEC; ARRCOMP_NOT_SUPPORTED for the predictor "reference". */
ARRCOMP_API arrcomp_status arrcomp_compress_bound(uint64_t* bytes, const arrcomp_layout* layout,
                                                  const char* configuration);

/* Compresses an array to `stream`, and writes the stream's length to `*bytes`.
 *
 * stream: `capacity` bytes, of any alignment. With `arrcomp_compress_bound` of them the result always fits; with fewer
 *   the call may take more memory, and fails only if the result does not fit. At an address that is a multiple of 8 it
 *   is encoded in place.
 * array: values of this layout, of any alignment; NULL is allowed where there are none.
 * configuration: as in `arrcomp_compress_bound`.
 * seed: for stochastic rounding and sampled statistics: equal seeds give equal bytes. Other codecs ignore it.
 * threads: at most so many; 0 for all cores that the process may use. The result does not depend on it.
 *
 * Returns what `arrcomp_compress_bound` does, and ARRCOMP_BUFFER_TOO_SMALL, where `*bytes` is then the length that the
 * stream would have, and ARRCOMP_NO_MEMORY. */
ARRCOMP_API arrcomp_status arrcomp_compress(void* stream, uint64_t capacity, uint64_t* bytes, const void* array,
                                            const arrcomp_layout* layout, const char* configuration, uint64_t seed,
                                            int threads);

/* Reads what a stream of so many bytes holds. Its checksum is not checked, and its payload is not read. The lengths are:
 * an array that is claimed to be more than 8192 times as large as the stream is corruption, unless there is a frame or
 * a reference, which `arrcomp_decompress` refuses.
 *
 * Returns ARRCOMP_CORRUPT, ARRCOMP_NEWER_FORMAT or ARRCOMP_UNKNOWN_CODEC. */
ARRCOMP_API arrcomp_status arrcomp_read_info(arrcomp_info* info, const void* stream, uint64_t bytes);

/* Decompresses a stream to `array`. Streams need not be trusted: the checksum comes first, and whatever the bytes are,
 * nothing outside of them is read, and nothing outside of `array` is written. After ARRCOMP_CORRUPT the array's values
 * are undefined.
 *
 * array: `capacity` bytes, of any alignment, at least `array_bytes` of the stream's info.
 * stream: `bytes` bytes, of any alignment; a copy is made where the address is no multiple of 8.
 * threads: as in `arrcomp_compress`.
 *
 * Returns what `arrcomp_read_info` does, and ARRCOMP_BUFFER_TOO_SMALL, ARRCOMP_NO_MEMORY, or ARRCOMP_NOT_SUPPORTED for a
 * Zstandard frame and for an array that was compressed against a reference. */
ARRCOMP_API arrcomp_status arrcomp_decompress(void* array, uint64_t capacity, const void* stream, uint64_t bytes,
                                              int threads);

#ifdef __cplusplus
}
#endif

#endif
