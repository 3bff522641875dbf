#pragma once

#include <string>
#include <vector>

#include "cases/cases.h"
#include "cases/layer_cases.h"

namespace fovea::detail {

/// A file of this folder: its name without `_cases.cpp`, and the function that it defines.
template <class Table>
struct CaseFile {
  std::string name;
  void (*add_rows)(Table&);
};

/// Defined in the build folder by cmake/FoveaCases.cmake, which finds the files.
const std::vector<CaseFile<Cases>>& op_case_files();
const std::vector<CaseFile<LayerCases>>& layer_case_files();

}  // namespace fovea::detail
