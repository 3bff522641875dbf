# The library has Eigen under another name only, so that a program's own Eigen never meets it at link time.
#   cmake -DNM=<nm> -DLIBRARY=<file> -P eigen_is_private.cmake

execute_process(COMMAND ${NM} -C ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]*[^A-Za-z0-9_]Eigen::[^\n]*" found "${symbols}")
if(found)
  list(LENGTH found count)
  list(SUBLIST found 0 5 found)
  list(JOIN found "\n  " found)
  message(FATAL_ERROR "${count} symbols of Eigen in ${LIBRARY}, of which the first are:\n  ${found}")
endif()
