# expect(<status> <regular expression> <arguments>...) runs PROGRAM in DIR: the expression must match the output, or,
# if the status is not 0, the errors, which are one line.

string(ASCII 27 escape)

function(expect status pattern)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} WORKING_DIRECTORY "${DIR}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  set(text "${output}")
  if(NOT status EQUAL 0)
    set(text "${errors}")
    if(NOT errors MATCHES "^fovea: [^\n]+\n$")
      message(SEND_ERROR "fovea ${ARGN}: one line on stderr expected, and it is\n${errors}")
    endif()
  endif()
  if(NOT result EQUAL status OR NOT text MATCHES "${pattern}")
    message(SEND_ERROR "fovea ${ARGN}: status ${status} and '${pattern}' expected, and they are ${result} and\n${text}")
  endif()
endfunction()

# refuse(<regular expression> <arguments>...): status 2, a printable line that matches on stderr, and nothing on stdout.
function(refuse pattern)
  expect(2 "${pattern}" ${ARGN})
  execute_process(COMMAND "${PROGRAM}" ${ARGN} WORKING_DIRECTORY "${DIR}" OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT output STREQUAL "")
    message(SEND_ERROR "fovea ${ARGN}: nothing expected on stdout, and there is\n${output}")
  endif()
  string(FIND "${errors}" "${escape}" at)
  if(NOT at EQUAL -1 OR errors MATCHES "::|{\\.|: \\[[a-zA-Z_]+\\] ")
    message(SEND_ERROR "fovea ${ARGN}: a plain sentence expected on stderr, and it is\n${errors}")
  endif()
endfunction()

# same(<file> <file>): two files in DIR have the same bytes.
function(same one other)
  file(SHA256 "${DIR}/${one}" first)
  file(SHA256 "${DIR}/${other}" second)
  if(NOT first STREQUAL second)
    message(SEND_ERROR "${one} and ${other} differ")
  endif()
endfunction()
