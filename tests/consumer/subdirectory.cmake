# The consumer has Fovea's sources as a subdirectory, and builds it as a shared library together with the
# program and the examples, which are linked against it and run. The library and the program are each optimised
# as a whole, so that the linker sees every definition and refuses two that differ (the one-definition rule).
#   cmake -DCXX=<compiler> -DDIR=<folder to use> -P subdirectory.cmake

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

cmake_path(SET source NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
set(flags "-O1 -flto=auto -fno-fat-lto-objects -Wodr -Wlto-type-mismatch -Werror=odr -Werror=lto-type-mismatch")
build_and_test_consumer(${DIR} "-DCMAKE_CXX_FLAGS=${flags}" -DFOVEA_SOURCE=${source} -DBUILD_SHARED_LIBS=ON
  -DFOVEA_BUILD_PROGRAM=ON -DFOVEA_BUILD_EXAMPLES=ON -DFOVEA_NATIVE=ON)
