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

/// All tasks, in alphabetical order: one for each file in train/tasks/. cmake/FoveaTasks.cmake writes the
/// list.
const std::vector<NamedTask>& task_list();

}  // namespace fovea::detail
