# `cmake --install` gives what find_package(fovea) needs: headers, library, and the package's files.

include(CMakePackageConfigHelpers)

set(fovea_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fovea")

install(TARGETS fovea EXPORT foveaTargets FILE_SET HEADERS)
install(EXPORT foveaTargets NAMESPACE fovea:: DESTINATION "${fovea_package_dir}")
if(FOVEA_BUILD_PROGRAM)
  install(TARGETS fovea_program)
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/foveaConfig.cmake.in" foveaConfig.cmake
  INSTALL_DESTINATION "${fovea_package_dir}")
write_basic_package_version_file(foveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindUtf8proc.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/foveaConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/foveaConfigVersion.cmake"
  DESTINATION "${fovea_package_dir}")
