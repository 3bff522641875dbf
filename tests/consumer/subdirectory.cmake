# The consumer has Fovea's sources as a subdirectory, and builds it as a shared library together with the
# program and the examples, which are linked against it and run. The library and the program are each optimised
# as a whole, so that the linker sees every definition and refuses two that differ (the one-definition rule).
#   cmake -DCXX=<compiler> -DDIR=<folder to use> -P subdirectory.cmake

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

cmake_path(SET source NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
set(flags "-O1 -flto=auto -fno-fat-lto-objects -Wodr -Wlto-type-mismatch -Werror=odr -Werror=lto-type-mismatch")
build_and_test(${CMAKE_CURRENT_LIST_DIR} ${DIR} "-DCMAKE_CXX_FLAGS=${flags}" -DCMAKE_BUILD_TYPE=None
  -DFOVEA_SOURCE=${source} -DBUILD_SHARED_LIBS=ON -DFOVEA_BUILD_PROGRAM=ON -DFOVEA_BUILD_EXAMPLES=ON)

# A project without a build type, as CMake's default is, gets an optimised library all the same.
file(REMOVE_RECURSE ${DIR}-flags)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${DIR}-flags -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_BUILD_TYPE= -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DFOVEA_SOURCE=${source})
file(STRINGS ${DIR}-flags/compile_commands.json commands REGEX "\"command\": .*/fovea[.]dir/")
if(NOT commands)
  message(FATAL_ERROR "No compiler command of the library was found")
endif()
foreach(command IN LISTS commands)
  if(NOT command MATCHES "-O3" OR NOT command MATCHES "-march=native")
    message(FATAL_ERROR "Without a build type the library is compiled without optimisation: ${command}")
  endif()
endforeach()
