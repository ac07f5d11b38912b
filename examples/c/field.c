/* Compresses a field of float32 within an error bound, reads what the stream holds, and decompresses it.
 *
 * The stream is what `arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-3, predictor="interpolation")).to_bytes()` gives
 * in Python, and `field FILE` writes it to a file that `arrcomp decompress` and `arrcomp.from_bytes` read. */
#include <arrcomp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 300, COLUMNS = 500 };

static void check(arrcomp_status status) {
  if (status == ARRCOMP_OK) return;
  fprintf(stderr, "error %d: %s\n", (int)status, arrcomp_error_message());
  exit(1);
}

static void* memory(uint64_t bytes) {
  void* const found = malloc(bytes);
  if (found != NULL) return found;
  fprintf(stderr, "no memory for %llu bytes\n", (unsigned long long)bytes);
  exit(1);
}

static void write_file(const char* path, const void* stream, uint64_t bytes) {
  FILE* const file = fopen(path, "wb");
  if (file == NULL || fwrite(stream, 1, bytes, file) != bytes || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

int main(int argc, char** argv) {
  const char* const configuration = "{\"codec\":\"error-bounded\",\"abs\":0.001,\"predictor\":\"interpolation\"}";
  const uint64_t shape[] = {ROWS, COLUMNS};
  const arrcomp_layout layout = {ARRCOMP_FLOAT32, 2, shape};
  float* const x = memory(sizeof(float) * ROWS * COLUMNS);
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS; ++j) x[i * COLUMNS + j] = sinf(0.02f * (float)i) * cosf(0.03f * (float)j);

  uint64_t capacity, bytes;
  check(arrcomp_compress_bound(&capacity, &layout, configuration));
  void* const stream = memory(capacity);
  check(arrcomp_compress(stream, capacity, &bytes, x, &layout, configuration, 0, 0));

  arrcomp_info info;
  check(arrcomp_read_info(&info, stream, bytes));
  float* const y = memory(info.array_bytes);
  check(arrcomp_decompress(y, info.array_bytes, stream, bytes, 0));

  float largest = 0;
  for (int i = 0; i < ROWS * COLUMNS; ++i) largest = fmaxf(largest, fabsf(x[i] - y[i]));
  printf("%llu bytes in %llu by %s, largest error %g\n", (unsigned long long)info.array_bytes,
         (unsigned long long)bytes, info.codec, (double)largest);
  if (argc > 1) write_file(argv[1], stream, bytes);
  free(x);
  free(stream);
  free(y);
  return largest <= 0.001f ? 0 : 1;
}
