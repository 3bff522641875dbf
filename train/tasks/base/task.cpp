#include "fovea/train/tasks/task.h"

#include "autograd/base/fail.h"
#include "train/tasks/base/task_list.h"

namespace fovea {

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const detail::NamedTask& task : detail::task_list()) names.emplace_back(task.name);
  return names;
}

std::unique_ptr<Task> make_task(std::string_view name) {
  for (const detail::NamedTask& task : detail::task_list()) {
    if (task.name == name) return task.make();
  }
  fail<ValueError>("[make_task] there is no task \"{}\"; the tasks are: {}", name,
                   fmt::join(task_names(), ", "));
}

}  // namespace fovea
