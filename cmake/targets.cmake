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
  # A null pointer or a wrong size shows itself to AddressSanitizer: asking at every access takes much of the build.
  set(sanitize_options "-fsanitize=${ARRCOMP_SANITIZE}" -fno-sanitize=null,object-size -fno-sanitize-recover=all
                       -fno-omit-frame-pointer)
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

# Lists the instruction sets that ARRCOMP_CPU asks for: plain code, which every processor runs, and those of its family.
function(arrcomp_instruction_sets out)
  set(isas)
  if(ARRCOMP_X86)
    set(isas avx2 avx512)
    if(ARRCOMP_CPU STREQUAL "AUTO" AND NOT CMAKE_CROSSCOMPILING)
      arrcomp_native_instruction_set(isas)
    endif()
  elseif(ARRCOMP_ARM)
    set(isas neon)
  endif()
  set(${out} plain ${isas} PARENT_SCOPE)
endfunction()

# The best set of the processor that compiles, or nothing where it has neither.
function(arrcomp_native_instruction_set out)
  file(WRITE "${PROJECT_BINARY_DIR}/empty.cpp" "")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E "${PROJECT_BINARY_DIR}/empty.cpp"
                  OUTPUT_VARIABLE macros ERROR_QUIET)
  set(of_avx2 AVX2 BMI BMI2 LZCNT F16C POPCNT)
  set(of_avx512 ${of_avx2} AVX512F AVX512BW AVX512DQ AVX512VL AVX512CD)
  set(best)
  foreach(isa avx2 avx512)
    set(has_all ON)
    foreach(feature ${of_${isa}})
      if(NOT macros MATCHES "#define __${feature}__ 1")
        set(has_all OFF)
      endif()
    endforeach()
    if(has_all)
      set(best ${isa})
    endif()
  endforeach()
  set(${out} ${best} PARENT_SCOPE)
endfunction()

# Adds the parts that are asked for (groups, buckets_F32, ...) for each instruction set. ARRCOMP_AVX2, ARRCOMP_AVX512 and
# ARRCOMP_NEON tell the sources that choose among them which are there. No other sees them: it need not be compiled anew
# where there are more.
function(arrcomp_add_instruction_sets name choosing)
  if(NOT ARRCOMP_CPU MATCHES "^(AUTO|ALL)$")
    message(FATAL_ERROR "ARRCOMP_CPU: expected AUTO or ALL, got ${ARRCOMP_CPU}")
  endif()
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
  arrcomp_instruction_sets(isas)
  # Whoever builds for one machine waits for it. What is rare there is compiled in a third of the time rather than for
  # speed: plain code where there is a faster set, and the quantizers of float64. ARRCOMP_COMPACT_PLAIN does so with plain
  # code of wheels, and with AVX-512 where nobody can tell how fast that is.
  list(LENGTH isas sets)
  set(saves_time OFF)
  if(ARRCOMP_CPU STREQUAL "AUTO" AND sets GREATER 1)
    set(saves_time ON)
  endif()
  set(compact)
  if((saves_time OR ARRCOMP_COMPACT_PLAIN) AND sets GREATER 1)
    list(APPEND compact plain)
  endif()
  if(ARRCOMP_COMPACT_PLAIN AND NOT CMAKE_CROSSCOMPILING)
    arrcomp_native_instruction_set(best)
    if(NOT best STREQUAL "avx512")
      list(APPEND compact avx512)
    endif()
  endif()
  foreach(isa ${isas})
    if(NOT isa STREQUAL "plain")
      string(TOUPPER "ARRCOMP_${isa}" defined)
      set_property(SOURCE ${choosing} APPEND PROPERTY COMPILE_DEFINITIONS "${defined}")
    endif()
    foreach(part ${ARGN})
      arrcomp_isa_source(source ${isa} ${part})
      target_sources(${name} PRIVATE "${source}")
      set(options ${${isa}})
      if(isa IN_LIST compact OR (part STREQUAL "buckets_F64" AND saves_time))
        list(APPEND options -DARRCOMP_COMPACT)
      endif()
      if((isa MATCHES "^(plain|neon)$" AND NOT part STREQUAL "groups") OR isa IN_LIST compact)
        list(APPEND options ${of_long_code})
      endif()
      # A codec is the same code on all sets: where there is a faster one, that is checked.
      if(ARRCOMP_SANITIZE AND isa STREQUAL "plain" AND sets GREATER 1)
        list(APPEND options -fno-sanitize=all)
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
  message(STATUS "arrcomp: CPU instruction sets: ${ARRCOMP_INSTRUCTION_SETS} (ARRCOMP_CPU=${ARRCOMP_CPU})")
  message(STATUS "arrcomp: CUDA: ${cuda}")
  if(ARRCOMP_SANITIZE)
    message(STATUS "arrcomp: sanitizers: ${ARRCOMP_SANITIZE}")
  endif()
endfunction()
