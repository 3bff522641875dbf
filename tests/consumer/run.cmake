# Builds the consumer against Fovea as a subdirectory, installs Fovea from there, and builds it against that:
# so the library is compiled once. All runs under the address sanitizer, and unoptimised: where nothing is
# inlined, each inline function is one that the linker may take from the wrong side.
#   cmake -DKIND=static|shared -DCXX=<compiler> -DDIR=<folder to use> -P run.cmake

cmake_minimum_required(VERSION 3.25)

cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
string(COMPARE EQUAL "${KIND}" shared shared)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(build_and_test dir)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${dir} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-g1 -fsanitize=address" ${ARGN})
  run(${CMAKE_COMMAND} --build ${dir} --parallel ${cores})
  run(${CMAKE_CTEST_COMMAND} --test-dir ${dir} --output-on-failure)
endfunction()

file(REMOVE_RECURSE ${DIR})
cmake_path(SET source NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
build_and_test(${DIR}/subdirectory -DFOVEA_SOURCE=${source} -DBUILD_SHARED_LIBS=${shared}
  -DFOVEA_NATIVE=ON -DFOVEA_INSTALL=ON)
run(${CMAKE_COMMAND} --install ${DIR}/subdirectory --prefix ${DIR}/prefix)
build_and_test(${DIR}/installed -DCMAKE_PREFIX_PATH=${DIR}/prefix)
