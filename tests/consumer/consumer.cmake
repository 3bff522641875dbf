# Builds the consumer under the address sanitizer and unoptimised, where each inline function is one that the
# linker may take from the wrong side, and runs it. Included by installed.cmake and subdirectory.cmake.

cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(build_and_test_consumer dir)
  file(REMOVE_RECURSE ${dir})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_FUNCTION_LIST_DIR} -B ${dir} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=None ${ARGN})
  run(${CMAKE_COMMAND} --build ${dir} --parallel ${cores})
  run(${CMAKE_CTEST_COMMAND} --test-dir ${dir} --output-on-failure --parallel ${cores})
endfunction()
