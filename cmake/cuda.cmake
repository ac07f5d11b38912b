# Finds a CUDA compiler as ARRCOMP_CUDA asks, and says how the kernels are compiled.
#
# Sets ARRCOMP_HAS_CUDA, and ARRCOMP_CUDA_WHY_NOT where it is OFF. The compiler is taken from CMAKE_CUDA_COMPILER,
# $CUDACXX, $CUDA_HOME, $CUDA_PATH, PATH or the usual install folders, in this order.
include(CheckLanguage)

# Leaves a compiler in CMAKE_CUDA_COMPILER where one is found that works.
macro(arrcomp_find_cuda_compiler)
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(ARRCOMP_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES bin)
    mark_as_advanced(ARRCOMP_NVCC)
    if(ARRCOMP_NVCC)
      set(ENV{CUDACXX} "${ARRCOMP_NVCC}")
    endif()
  endif()
  check_language(CUDA)
endmacro()

# Machine code for this machine's GPUs, as its driver names them; nothing where there is none.
function(arrcomp_native_architectures out)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE ignored)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
  list(REMOVE_DUPLICATES capabilities)
  list(TRANSFORM capabilities REPLACE "\\." "")
  list(TRANSFORM capabilities APPEND -real)
  set(${out} ${capabilities} PARENT_SCOPE)
endfunction()

# Machine code from Turing to Blackwell, as far as this compiler knows it, and PTX of the newest for what comes after.
function(arrcomp_default_architectures out)
  set(known)
  execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code OUTPUT_VARIABLE code ERROR_QUIET)
  foreach(architecture 75 80 90 100 120)
    if(code MATCHES "sm_${architecture}\n")
      list(APPEND known ${architecture})
    endif()
  endforeach()
  if(NOT known) # a compiler that cannot be asked
    set(known 75 80 90)
  endif()
  list(POP_BACK known newest)
  list(TRANSFORM known APPEND -real)
  set(${out} ${known} ${newest} PARENT_SCOPE)
endfunction()

# The kernels' flags: no contraction (streams are the same bytes as a CPU's), a word from ptxas on every spill; but not
# where that would stop the build at the first architecture: .ci/check_cuda.py reads the spills of all.
function(arrcomp_cuda_target name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/native" "${ARRCOMP_GENERATED}")
  set_target_properties(${name} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    CUDA_VISIBILITY_PRESET hidden
    CUDA_RUNTIME_LIBRARY Static)
  target_compile_options(${name} PRIVATE
    -fmad=false -Xfatbin=-compress-all -Xcompiler=-ffp-contract=off,-Wall,-Wextra)
  if(ARRCOMP_WERROR)
    target_compile_options(${name} PRIVATE "SHELL:-Werror all-warnings" -Xcompiler=-Werror)
  else()
    target_compile_options(${name} PRIVATE "SHELL:-Xptxas -warn-spills")
  endif()
endfunction()

set(ARRCOMP_HAS_CUDA OFF)
set(architectures_named OFF)
if(CMAKE_CUDA_ARCHITECTURES OR DEFINED ENV{CUDAARCHS})
  set(architectures_named ON)
endif()
if(ARRCOMP_CUDA STREQUAL "AUTO" AND NOT architectures_named)
  arrcomp_native_architectures(native_architectures)
endif()
if(ARRCOMP_CUDA STREQUAL "OFF")
  set(ARRCOMP_CUDA_WHY_NOT "ARRCOMP_CUDA=OFF")
elseif(ARRCOMP_CUDA STREQUAL "AUTO" AND NOT architectures_named AND NOT native_architectures)
  set(ARRCOMP_CUDA_WHY_NOT "no GPU here; -C cmake.define.ARRCOMP_CUDA=ON makes kernels for all GPUs")
elseif(ARRCOMP_CUDA MATCHES "^(AUTO|ON)$")
  arrcomp_find_cuda_compiler()
  if(CMAKE_CUDA_COMPILER)
    set(ARRCOMP_HAS_CUDA ON)
  elseif(ARRCOMP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ARRCOMP_CUDA=ON, but no CUDA compiler works here: name one in CUDACXX or CUDA_HOME, "
                        "or pass ARRCOMP_CUDA=OFF to build for the CPU alone")
  else()
    set(ARRCOMP_CUDA_WHY_NOT "there is a GPU, but no CUDA compiler works here; CUDACXX or CUDA_HOME would name one")
  endif()
else()
  message(FATAL_ERROR "ARRCOMP_CUDA: expected AUTO, ON or OFF, got ${ARRCOMP_CUDA}")
endif()

if(ARRCOMP_HAS_CUDA)
  if(native_architectures)
    set(CMAKE_CUDA_ARCHITECTURES ${native_architectures})
  elseif(NOT architectures_named)
    arrcomp_default_architectures(CMAKE_CUDA_ARCHITECTURES)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
endif()
