# The check of links finds one fault of each kind, and lets pass what is right.
#   cmake -DDIR=<folder to use> -P links_test.cmake

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${DIR}")
set(right "docs/page.md" "docs/page.md#where-x--y-is" "include" "#start" "https://example.org/none.md")
set(wrong "none.md" "docs/page.md#where-x-is" "#none")

file(WRITE "${DIR}/docs/page.md" "# Page\n\n## Where `x + y` is\n\n[up](../README.md#start)\n")
file(WRITE "${DIR}/include/file.h" "")
set(readme "# Start\n\nIn code `[&](int) {}` is no link;\n```cpp\nauto f = [](none) {};\n```\n")
foreach(link IN LISTS right wrong)
  string(APPEND readme "See [`there`](${link}).\n")
endforeach()
file(WRITE "${DIR}/README.md" "${readme}")

execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${DIR} -P ${CMAKE_CURRENT_LIST_DIR}/links.cmake
  RESULT_VARIABLE status ERROR_VARIABLE report)
if(status EQUAL 0)
  message(SEND_ERROR "The check passes links that lead nowhere")
endif()
foreach(link IN LISTS right)
  if(report MATCHES "to ${link} leads")
    message(SEND_ERROR "Refused, but right: ${link}")
  endif()
endforeach()
foreach(link IN LISTS wrong)
  if(NOT report MATCHES "to ${link} leads")
    message(SEND_ERROR "Not found: ${link}")
  endif()
endforeach()
if(NOT report MATCHES "3 of 8 links lead nowhere")
  message(SEND_ERROR "Other links were followed than those of the test:\n${report}")
endif()
