# The consumer and the examples find Fovea by find_package: this build is installed, and not compiled again. The
# consumer is built under the address sanitizer and unoptimised, where each inline function is one that the linker may
# take from the wrong side.
#   cmake -DBUILD=<Fovea's build folder> -DCXX=<compiler> -DDIR=<folder to use> -P installed.cmake

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

file(REMOVE_RECURSE ${DIR})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${DIR}/prefix)
build_and_test(${CMAKE_CURRENT_LIST_DIR} ${DIR}/build "-DCMAKE_CXX_FLAGS=-g1 -fsanitize=address"
  -DCMAKE_BUILD_TYPE=None -DCMAKE_PREFIX_PATH=${DIR}/prefix)
build_and_test(${CMAKE_CURRENT_LIST_DIR}/../../examples ${DIR}/examples -DCMAKE_PREFIX_PATH=${DIR}/prefix)
