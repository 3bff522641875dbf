# Writes fovea/fovea.h, which includes all public headers, so that a new header needs no entry in a list.
# fovea/eigen.h is left out, because only that header needs Eigen.

set(fovea_includes "")
foreach(header IN LISTS fovea_headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include")
  if(NOT header STREQUAL "fovea/eigen.h")
    string(APPEND fovea_includes "#include \"${header}\"\n")
  endif()
endforeach()

set(fovea_umbrella "${PROJECT_BINARY_DIR}/include/fovea/fovea.h")
configure_file("${CMAKE_CURRENT_LIST_DIR}/fovea.h.in" "${fovea_umbrella}" @ONLY)
