# Every file train/tasks/<name>.cpp is a task: it defines the function fovea::tasks::<name>, and the task is called
# by that name, with hyphens for underscores. What several tasks share, or one task needs beside its own file, lies
# in folders below. The list of all tasks is written here, so a new file is all that a new task needs.

file(GLOB task_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/train/tasks" train/tasks/*.cpp)

set(task_declarations "")
set(task_entries "")
foreach(file IN LISTS task_files)
  string(REGEX REPLACE "\\.cpp$" "" function "${file}")
  string(REPLACE "_" "-" name "${function}")
  string(APPEND task_declarations "std::unique_ptr<Task> ${function}();\n")
  string(APPEND task_entries "      {\"${name}\", tasks::${function}},\n")
endforeach()

set(fovea_task_list "${PROJECT_BINARY_DIR}/task_list.cpp")
configure_file("${CMAKE_CURRENT_LIST_DIR}/task_list.cpp.in" "${fovea_task_list}" @ONLY)
