# The C library, and the filter of HDF5 on it: shared libraries that show their functions alone.
include(GNUInstallDirs)

file(STRINGS "${PROJECT_SOURCE_DIR}/arrcomp/__init__.py" version REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ARRCOMP_VERSION "${version}")
if(NOT ARRCOMP_VERSION)
  message(FATAL_ERROR "arrcomp/__init__.py: expected a line __version__ = \"X.Y.Z\", got '${version}'")
endif()
# Until version 1 a new minor version may change the interface.
string(REGEX MATCH "^(0\\.[0-9]+|[0-9]+)" ARRCOMP_SOVERSION "${ARRCOMP_VERSION}")

add_library(arrcomp_c OBJECT
  c/arrcomp.cpp
  c/codebook_tables.cpp
  c/configuration.cpp
  c/float_formats.cpp
  c/json.cpp
  c/parameters.cpp
  c/stream.cpp
  c/xxh3.cpp)
arrcomp_target(arrcomp_c)
target_compile_definitions(arrcomp_c PRIVATE "ARRCOMP_VERSION=\"${ARRCOMP_VERSION}\""
                           "$<$<BOOL:${WIN32}>:ARRCOMP_API=__declspec(dllexport)>")
target_link_libraries(arrcomp_c PUBLIC arrcomp_cpu)

# Links the object library into a shared one, out of which only functions with this prefix are seen: the C++ library's
# own templates would be, too. (Out of a DLL nothing is seen that does not say so.)
function(arrcomp_shared_library name prefix)
  target_link_libraries(${name} PRIVATE arrcomp_c arrcomp_cpu)
  set(symbols "${ARRCOMP_GENERATED}/${name}.symbols")
  if(APPLE)
    file(CONFIGURE OUTPUT "${symbols}" CONTENT "_${prefix}*\n")
    target_link_options(${name} PRIVATE "LINKER:-exported_symbols_list,${symbols}")
  elseif(NOT WIN32)
    file(CONFIGURE OUTPUT "${symbols}" CONTENT "{ global: ${prefix}*; local: *; };\n")
    target_link_options(${name} PRIVATE "LINKER:--version-script=${symbols}")
  endif()
endfunction()

if(ARRCOMP_C)
  include(CMakePackageConfigHelpers)
  add_library(arrcomp SHARED)
  arrcomp_shared_library(arrcomp arrcomp_)
  target_include_directories(arrcomp INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  set_target_properties(arrcomp PROPERTIES VERSION "${ARRCOMP_VERSION}" SOVERSION "${ARRCOMP_SOVERSION}")

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/arrcomp")
  install(TARGETS arrcomp EXPORT arrcomp LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES c/arrcomp.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT arrcomp NAMESPACE arrcomp:: FILE arrcompConfig.cmake DESTINATION "${package}")
  write_basic_package_version_file("${ARRCOMP_GENERATED}/arrcompConfigVersion.cmake"
                                   VERSION "${ARRCOMP_VERSION}" COMPATIBILITY SameMinorVersion)
  install(FILES "${ARRCOMP_GENERATED}/arrcompConfigVersion.cmake" DESTINATION "${package}")
  file(RELATIVE_PATH to_include "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/${CMAKE_INSTALL_INCLUDEDIR}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/arrcomp.pc.in" "${ARRCOMP_GENERATED}/arrcomp.pc" @ONLY)
  install(FILES "${ARRCOMP_GENERATED}/arrcomp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

if(ARRCOMP_HDF5)
  if(WIN32)
    message(FATAL_ERROR "ARRCOMP_HDF5: expected OFF on Windows, where the filter does not find the HDF5 that calls it")
  endif()
  add_library(h5arrcomp MODULE hdf5/filter.cpp hdf5/filter_values.cpp hdf5/hdf5.cpp)
  arrcomp_target(h5arrcomp)
  arrcomp_shared_library(h5arrcomp H5PLget_plugin_)
  target_link_libraries(h5arrcomp PRIVATE ${CMAKE_DL_LIBS})
  install(TARGETS h5arrcomp LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/hdf5/plugin")
endif()
