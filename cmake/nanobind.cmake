# Finds nanobind, and keeps a copy of it in the build folder. pip installs it somewhere else for each build; from a place
# that stays, nothing that includes it is compiled twice.
if(NOT nanobind_DIR)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE installed ERROR_QUIET)
  if(installed)
    get_filename_component(installed "${installed}" DIRECTORY)
    set(kept "${PROJECT_BINARY_DIR}/nanobind")
    file(GLOB_RECURSE files LIST_DIRECTORIES OFF RELATIVE "${installed}" "${installed}/*")
    list(FILTER files EXCLUDE REGEX "__pycache__")
    foreach(file ${files})
      get_filename_component(folder "${kept}/${file}" DIRECTORY)
      file(MAKE_DIRECTORY "${folder}")
      file(COPY_FILE "${installed}/${file}" "${kept}/${file}" ONLY_IF_DIFFERENT)
    endforeach()
    set(nanobind_DIR "${kept}/cmake")
  endif()
endif()
