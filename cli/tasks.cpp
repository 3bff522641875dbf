#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/terminal.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

int list_tasks() {
  fmt::print("{:<18} {:>7}  {}\n", "task", "steps", "what a model learns by fovea train --task NAME");
  for (const std::string& name : task_names()) {
    const std::unique_ptr<Task> task = make_task(name);
    fmt::print("{:<18} {:>7}  {}\n", name, with_commas(task->recipe().steps), task->summary());
  }
  return 0;
}

}  // namespace

Command tasks_command(CLI::App& program) {
  return {program.add_subcommand("tasks", "List the tasks, problems whose right answers are known"),
          list_tasks};
}

}  // namespace fovea::cli
