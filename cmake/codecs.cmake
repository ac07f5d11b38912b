# Writes the sources that differ in a name alone: those of each CPU instruction set, and of CUDA those of each element
# type and of each codec of buckets. The codecs are those of native/stream/codec_table.h.
set(ARRCOMP_GENERATED "${PROJECT_BINARY_DIR}/generated")

set(codec_table "${PROJECT_SOURCE_DIR}/native/stream/codec_table.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${codec_table}")
file(READ "${codec_table}" rows)
string(REGEX MATCH "ARRCOMP_BUCKETED_CODECS\\(X\\)[^#]*" rows "${rows}")
string(REGEX MATCHALL "X\\([0-9]+, [a-z0-9_]+, [A-Za-z0-9]+," rows "${rows}")
if(NOT rows)
  message(FATAL_ERROR "${codec_table}: expected lines X(id, name, Type, \"name\") in ARRCOMP_BUCKETED_CODECS, got none")
endif()
list(TRANSFORM rows REPLACE "X\\([0-9]+, ([a-z0-9_]+), ([A-Za-z0-9]+)," "\\1:\\2" OUTPUT_VARIABLE ARRCOMP_BUCKETED_CODECS)

set(includes "// Written by CMake: all codecs of buckets.\n#pragma once\n")
foreach(codec ${ARRCOMP_BUCKETED_CODECS})
  string(REPLACE ":" ";" codec "${codec}")
  list(GET codec 0 name)
  string(APPEND includes "#include \"codecs/bucketed/${name}.h\"\n")
endforeach()
file(CONFIGURE OUTPUT "${ARRCOMP_GENERATED}/bucketed_codecs.h" CONTENT "${includes}" @ONLY)

# The source of one part (groups, buckets, activations) for one CPU instruction set.
function(arrcomp_isa_source out isa part)
  set(preamble)
  if("${isa} ${part}" STREQUAL "plain buckets")
    set(preamble [[
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre")  // which GCC 12 fails in, on the loops of float64 codebooks
#endif
]])
  endif()
  set(source "${ARRCOMP_GENERATED}/cpu/${isa}_${part}.cpp")
  configure_file("${PROJECT_SOURCE_DIR}/native/cpu/isa.cpp.in" "${source}" @ONLY)
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

# The CUDA sources of all element types and of all codecs of buckets.
function(arrcomp_cuda_sources out)
  set(elements bits8:Bits8 float16:Float16 bfloat16:BFloat16 float32:Float32 float64:Float64)
  set(sources)
  foreach(template element bucketed)
    set(rows ${elements})
    if(template STREQUAL "bucketed")
      set(rows ${ARRCOMP_BUCKETED_CODECS})
    endif()
    foreach(row ${rows})
      string(REPLACE ":" ";" row "${row}")
      list(GET row 0 name)
      list(GET row 1 type)
      set(source "${ARRCOMP_GENERATED}/cuda/${name}.cu")
      configure_file("${PROJECT_SOURCE_DIR}/native/cuda/${template}.cu.in" "${source}" @ONLY)
      list(APPEND sources "${source}")
    endforeach()
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
