# Included by installed.cmake and subdirectory.cmake.

cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Builds the project in `source`, and passes its tests.
function(build_and_test source dir)
  file(REMOVE_RECURSE ${dir})
  run(${CMAKE_COMMAND} -S ${source} -B ${dir} -DCMAKE_CXX_COMPILER=${CXX} ${ARGN})
  run(${CMAKE_COMMAND} --build ${dir} --parallel ${cores})
  run(${CMAKE_CTEST_COMMAND} --test-dir ${dir} --output-on-failure --parallel ${cores})
endfunction()
