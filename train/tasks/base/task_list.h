#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "fovea/train/tasks/task.h"

namespace fovea::detail {

struct NamedTask {
  std::string_view name;
  std::unique_ptr<Task> (*make)();
};

/// All files of train/tasks/, in alphabetical order. CMake writes it: see cmake/FoveaTasks.cmake.
const std::vector<NamedTask>& task_list();

}  // namespace fovea::detail
