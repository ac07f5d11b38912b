# Compiler flags that every C++ target of arrcomp shares, and the vector machines of x86-64.
include(CheckCXXSourceCompiles)

# Asks the compiler, not the host: a cross build answers for its target.
check_cxx_source_compiles("
#ifndef __x86_64__
#error not x86-64
#endif
int main() {}" ARRCOMP_X86)

if(ARRCOMP_SANITIZE)
  set(sanitize_options "-fsanitize=${ARRCOMP_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize_options}>")
  add_link_options("-fsanitize=${ARRCOMP_SANITIZE}")
endif()

# Streams are the same bytes on every machine, so a * b + c is never contracted to one rounding.
# -Wno-psabi: lanes are vectors wider than a register of the plain machine, and never cross a library's boundary.
function(arrcomp_target name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/native")
  target_compile_options(${name} PRIVATE
    -ffp-contract=off -Wall -Wextra -Wno-psabi "$<$<BOOL:${ARRCOMP_WERROR}>:-Werror>")
endfunction()

# Adds the AVX2 and AVX-512 builds of the codecs; ARRCOMP_X86 tells the rest of the target that they are there.
function(arrcomp_add_x86_machines name)
  set(avx2 -mavx2 -mbmi -mbmi2 -mpopcnt -mlzcnt -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # warns of its own intrinsics' deliberately undefined operands
    list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  target_sources(${name} PRIVATE native/cpu/avx2.cpp native/cpu/avx512.cpp)
  set_source_files_properties(native/cpu/avx2.cpp PROPERTIES COMPILE_OPTIONS "${avx2}")
  set_source_files_properties(native/cpu/avx512.cpp PROPERTIES COMPILE_OPTIONS "${avx512}")
  target_compile_definitions(${name} PRIVATE ARRCOMP_X86)
endfunction()

function(arrcomp_summary)
  set(machines plain)
  if(ARRCOMP_X86)
    list(APPEND machines avx2 avx512)
  endif()
  list(JOIN machines ", " machines)
  set(cuda "no (${ARRCOMP_CUDA_WHY_NOT})")
  if(ARRCOMP_HAS_CUDA)
    list(JOIN CMAKE_CUDA_ARCHITECTURES ", " architectures)
    set(cuda "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${architectures}")
  endif()
  message(STATUS "arrcomp: ${CMAKE_BUILD_TYPE} build with ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "arrcomp: CPU machines: ${machines}")
  message(STATUS "arrcomp: CUDA: ${cuda}")
  if(ARRCOMP_SANITIZE)
    message(STATUS "arrcomp: sanitizers: ${ARRCOMP_SANITIZE}")
  endif()
endfunction()
