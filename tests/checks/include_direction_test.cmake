# The check of includes finds one fault of each kind, and lets pass what is right.
#   cmake -DDIR=<folder to use> -P include_direction_test.cmake

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${DIR}")

set(right
  "autograd/ops/softmax.cpp|\"fovea/autograd/graph/graph.h\""
  "autograd/ops/log.cpp|\"fovea/autograd/ops.h\""
  "autograd/graph/backward.cpp|\"autograd/tensor/tensor_impl.h\""
  "autograd/ops/exp.cpp|\"autograd/kernels/map.h\""
  "autograd/kernels/matmul.cpp|<Eigen/Core>"
  "include/fovea/eigen.h|<Eigen/Core>"
  "layers/linear.cpp|\"fovea/autograd/ops.h\""
  "gradcheck/layer_gradcheck.cpp|\"fovea/layers/visit.h\""
  "cases/softmax_cases.cpp|\"fovea/gradcheck/gradcheck.h\""
  "train/loop/trainer.cpp|\"fovea/layers/linear.h\""
  "train/tasks/copy.cpp|\"fovea/train/generate/generate.h\""
  "cli/main.cpp|\"fovea/fovea.h\"")
set(wrong
  "autograd/base/pool.h|\"autograd/kernels/map.h\""
  "autograd/kernels/sum.h|\"fovea/autograd/tensor/tensor.h\""
  "autograd/kernels/sum.cpp|\"autograd/ops/sum.h\""
  "autograd/graph/graph.cpp|\"fovea/autograd/ops.h\""
  "autograd/ops/relu.cpp|\"fovea/layers/linear.h\""
  "autograd/ops/tanh.cpp|<fovea/fovea.h>"
  "include/fovea/autograd/tensor/tensor.h|\"fovea/autograd/graph/graph.h\""
  "include/fovea/layers/linear.h|<Eigen/Dense>"
  "layers/norm.cpp|\"fovea/train/loop/trainer.h\""
  "layers/check.cpp|\"fovea/gradcheck/gradcheck.h\""
  "gradcheck/table.cpp|\"cases/cases.h\""
  "train/io/npy.cpp|\"train/data/lines.h\""
  "train/loop/run.cpp|\"fovea/train/generate/generate.h\""
  "train/tasks/task.cpp|\"fovea/inspect/map.h\""
  "inspect/map.cpp|\"fovea/train/tasks/task.h\""
  "train/loop/loop.cpp|\"cli/main.h\""
  "autograd/loose.cpp|\"autograd/base/fail.h\""
  "layers/near.cpp|\"near.h\"")

function(parse case)
  string(REGEX MATCH "^(.*)\\|(.*)$" _ "${case}")
  set(file "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(included "${CMAKE_MATCH_2}" PARENT_SCOPE)
endfunction()

foreach(case IN LISTS right wrong)
  parse("${case}")
  file(APPEND "${DIR}/${file}" "#include ${included}\n")
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${DIR} -P ${CMAKE_CURRENT_LIST_DIR}/include_direction.cmake
  RESULT_VARIABLE status ERROR_VARIABLE report)
if(status EQUAL 0)
  message(SEND_ERROR "The check passes a tree full of faults")
endif()
foreach(case IN LISTS right wrong)
  parse("${case}")
  string(FIND "${report}" "${file}: " found)
  if(found EQUAL -1 AND case IN_LIST wrong)
    message(SEND_ERROR "Not found: ${file} includes ${included}")
  elseif(NOT found EQUAL -1 AND case IN_LIST right)
    message(SEND_ERROR "Refused, but right: ${file} includes ${included}")
  endif()
endforeach()
