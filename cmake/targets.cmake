# Compiler flags that every C++ target shares, and those of each CPU instruction set.
include(CheckCXXSourceCompiles)

# Asks the compiler, not the host: a cross build answers for its target.
check_cxx_source_compiles("
#ifndef __x86_64__
#error not x86-64
#endif
int main() {}" ARRCOMP_X86)
check_cxx_source_compiles("
#ifndef __aarch64__
#error not 64-bit Arm
#endif
int main() {}" ARRCOMP_ARM)

if(ARRCOMP_SANITIZE)
  set(sanitize_options "-fsanitize=${ARRCOMP_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize_options}>")
  add_link_options("-fsanitize=${ARRCOMP_SANITIZE}")
  add_compile_definitions(ARRCOMP_SANITIZED)
endif()

# Streams are the same bytes everywhere, so a * b + c is never contracted to one rounding.
# -Wno-psabi: lanes are vectors wider than a register of the plain instruction set, and never cross a library's boundary.
function(arrcomp_target name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/native" "${ARRCOMP_GENERATED}")
  target_compile_options(${name} PRIVATE
    -ffp-contract=off -Wall -Wextra -Wno-psabi "$<$<BOOL:${ARRCOMP_WERROR}>:-Werror>")
endfunction()

# Adds the parts that are asked for (groups, buckets, activations) for each instruction set; ARRCOMP_X86 tells the rest of
# the target that AVX2 and AVX-512 are there, ARRCOMP_ARM that NEON is.
function(arrcomp_add_instruction_sets name)
  set(plain)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes a decoder's members, set where a chunk has them, for unset, and its own AVX-512 intrinsics' operands too.
    set(plain -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set(avx2 ${plain} -mavx2 -mbmi -mbmi2 -mpopcnt -mlzcnt -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512)
  set(neon ${plain})
  # 32 lanes of compiler vectors are long code: with GCC these passes would take most of minutes, and find nothing.
  set(of_long_code)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(of_long_code "$<$<CONFIG:Release>:-O2>" -fno-gcse)
  endif()
  set(isas plain)
  if(ARRCOMP_X86)
    list(APPEND isas avx2 avx512)
    target_compile_definitions(${name} PRIVATE ARRCOMP_X86)
  endif()
  if(ARRCOMP_ARM)
    list(APPEND isas neon)
    target_compile_definitions(${name} PRIVATE ARRCOMP_ARM)
  endif()
  foreach(isa ${isas})
    foreach(part ${ARGN})
      arrcomp_isa_source(source ${isa} ${part})
      target_sources(${name} PRIVATE "${source}")
      set(options ${${isa}})
      if(isa MATCHES "^(plain|neon)$" AND NOT part STREQUAL "groups")
        list(APPEND options ${of_long_code})
      endif()
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${options}")
    endforeach()
  endforeach()
  list(JOIN isas ", " isas)
  set(ARRCOMP_INSTRUCTION_SETS "${isas}" PARENT_SCOPE)
endfunction()

function(arrcomp_summary)
  set(cuda "no (${ARRCOMP_CUDA_WHY_NOT})")
  if(ARRCOMP_HAS_CUDA)
    list(JOIN CMAKE_CUDA_ARCHITECTURES ", " architectures)
    set(cuda "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${architectures}")
  endif()
  message(STATUS "arrcomp: ${CMAKE_BUILD_TYPE} build with ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "arrcomp: CPU instruction sets: ${ARRCOMP_INSTRUCTION_SETS}")
  message(STATUS "arrcomp: CUDA: ${cuda}")
  if(ARRCOMP_SANITIZE)
    message(STATUS "arrcomp: sanitizers: ${ARRCOMP_SANITIZE}")
  endif()
endfunction()
