# The fuzzers of the decoders and of the C library's reader: libFuzzer with AddressSanitizer and
# UndefinedBehaviorSanitizer (.ci/fuzz.sh runs them).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "ARRCOMP_FUZZ needs Clang, which has libFuzzer, not ${CMAKE_CXX_COMPILER_ID}")
endif()
find_package(Threads REQUIRED)

# A null pointer or a wrong size shows itself to AddressSanitizer: asking at every access takes most of the build.
set(sanitizers -fsanitize=address,undefined -fno-sanitize=null,object-size -fno-sanitize-recover=all)
add_compile_options(-O1 -g1 ${sanitizers} -fsanitize=fuzzer-no-link)
add_compile_definitions(ARRCOMP_SANITIZED ARRCOMP_DECODERS_ONLY)

add_executable(arrcomp_fuzz
  tests/fuzz/decode.cpp
  tests/fuzz/input.cpp
  tests/fuzz/mutate.cpp
  native/codecs/grouped/rans_tables.cpp
  native/cpu/buckets.cpp
  native/cpu/coded_buckets.cpp
  native/cpu/driver.cpp
  native/cpu/interruption.cpp
  native/cpu/payload_ranges.cpp
  native/cpu/predicted.cpp
  native/cpu/predicted_range.cpp
  native/cpu/referenced.cpp
  native/cpu/ranges.cpp
  native/cpu/select.cpp
  native/cpu/sums.cpp)
arrcomp_target(arrcomp_fuzz)
target_compile_options(arrcomp_fuzz PRIVATE -Wno-unused-function)  # encoders
set(ARRCOMP_CPU ALL)
arrcomp_add_instruction_sets(arrcomp_fuzz "native/cpu/select.cpp;tests/fuzz/decode.cpp"
                             groups buckets_F32 buckets_F64 predicted referenced)
target_link_options(arrcomp_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
target_link_libraries(arrcomp_fuzz PRIVATE Threads::Threads)

# What the C library reads of a stream before its payload.
add_executable(arrcomp_fuzz_stream
  tests/fuzz/stream.cpp
  native/c/codebook_tables.cpp
  native/c/configuration.cpp
  native/c/float_formats.cpp
  native/c/json.cpp
  native/c/parameters.cpp
  native/c/stream.cpp
  native/c/xxh3.cpp)
arrcomp_target(arrcomp_fuzz_stream)
target_compile_definitions(arrcomp_fuzz_stream PRIVATE ARRCOMP_LIBFUZZER)
target_link_options(arrcomp_fuzz_stream PRIVATE -fsanitize=fuzzer,address,undefined)
