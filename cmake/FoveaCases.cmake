# The tables of checks are the folder cases. Each file cases/<family>_cases.cpp defines the function
# fovea::add_<family>_cases(Cases&), which adds the rows of a family of ops; each file
# cases/layers/<name>_cases.cpp defines fovea::add_<name>_cases(LayerCases&), which adds the rows of the layers
# in include/fovea/layers/<name>.h. So a new file is all that a new family or layer needs.
#
# Two sources are written to the build folder: the list of those functions, for the library of cases, and one
# test for each of them, so that they run in parallel.

file(GLOB family_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/cases" cases/*_cases.cpp)
file(GLOB layer_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/cases/layers" cases/layers/*_cases.cpp)

set(case_declarations "")
set(family_entries "")
set(layer_entries "")
set(case_tests "")
foreach(file IN LISTS family_files)
  string(REGEX REPLACE "_cases\\.cpp$" "" name "${file}")
  string(APPEND case_declarations "void add_${name}_cases(Cases&);\n")
  string(APPEND family_entries "      {\"${name}\", add_${name}_cases},\n")
  string(APPEND case_tests "TEST_CASE(\"cases: ${name}\") { check_ops(\"${name}\"); }\n")
endforeach()
foreach(file IN LISTS layer_files)
  string(REGEX REPLACE "_cases\\.cpp$" "" name "${file}")
  string(APPEND case_declarations "void add_${name}_cases(LayerCases&);\n")
  string(APPEND layer_entries "      {\"${name}\", add_${name}_cases},\n")
  string(APPEND case_tests "TEST_CASE(\"layer cases: ${name}\", \"[layers]\") { check_layers(\"${name}\"); }\n")
endforeach()

set(fovea_case_list "${PROJECT_BINARY_DIR}/case_list.cpp")
configure_file("${CMAKE_CURRENT_LIST_DIR}/case_list.cpp.in" "${fovea_case_list}" @ONLY)
set(fovea_case_tests "${PROJECT_BINARY_DIR}/case_tests.cpp")
configure_file("${PROJECT_SOURCE_DIR}/tests/cases/case_tests.cpp.in" "${fovea_case_tests}" @ONLY)
