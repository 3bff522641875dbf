# What a program prints stands in a guide, block by block: a block ends with an empty line.
#
#   cmake -D PROGRAM=<program> -D GUIDE=<file> -P printed_in.cmake

cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ "${GUIDE}" guide)
string(STRIP "${printed}" printed)
if(printed STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} printed nothing")
endif()
string(REPLACE "\n\n" ";" blocks "${printed}")
foreach(block IN LISTS blocks)
  string(FIND "${guide}" "${block}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${GUIDE} does not have what ${PROGRAM} prints:\n${block}")
  endif()
endforeach()
