# The consumer finds Fovea by find_package: this build is installed, and not compiled again.
#   cmake -DBUILD=<Fovea's build folder> -DCXX=<compiler> -DDIR=<folder to use> -P installed.cmake

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

file(REMOVE_RECURSE ${DIR})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${DIR}/prefix)
build_and_test_consumer(${DIR}/build "-DCMAKE_CXX_FLAGS=-g1 -fsanitize=address" -DCMAKE_PREFIX_PATH=${DIR}/prefix)
