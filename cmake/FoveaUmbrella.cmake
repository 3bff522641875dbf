# fovea/fovea.h includes every public header but fovea/eigen.h. It is written to the build folder, so that a new
# header is in it without being listed anywhere.

set(umbrella_includes "")
foreach(header IN LISTS fovea_headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include")
  if(NOT header STREQUAL "fovea/eigen.h")
    string(APPEND umbrella_includes "#include \"${header}\"\n")
  endif()
endforeach()

set(fovea_generated_include "${PROJECT_BINARY_DIR}/include")
set(fovea_umbrella "${fovea_generated_include}/fovea/fovea.h")
configure_file("${CMAKE_CURRENT_LIST_DIR}/fovea.h.in" "${fovea_umbrella}" @ONLY)
