#pragma once

#include <Eigen/Core>

#include <type_traits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/tensor/tensor.h"

/// To and from Eigen, compiled with your own Eigen and your own flags: the library's is hidden inside it.
/// Elements are copied, so neither side depends on the other's lifetime or alignment.
namespace fovea {

namespace detail {
template <class T>
using RowMajorMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Steps =
    Eigen::Map<const RowMajorMatrix<T>, Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
}  // namespace detail

/// A matrix expression of float or double as a tensor. Shapes: an (M, N) matrix -> (M, N).
template <class Derived>
Tensor from_eigen(const Eigen::MatrixBase<Derived>& matrix) {
  using T = typename Derived::Scalar;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "a tensor holds float or double");
  Tensor x = empty({matrix.rows(), matrix.cols()}, dtype_of<T>);
  Eigen::Map<detail::RowMajorMatrix<T>>(x.mutable_data<T>(), matrix.rows(), matrix.cols()) = matrix;
  return x;
}

/// The elements of a tensor of rank 1 (as a column) or 2. T must be the type of its elements.
/// Throws: ShapeError for another rank; DtypeError.
template <class T>
Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> to_eigen(const Tensor& x) {
  const bool is_vector = x.rank() == 1;
  if (!is_vector && x.rank() != 2) {
    throw ShapeError("[to_eigen] a matrix has 2 axes, the tensor has shape " + to_string(x.shape()));
  }
  const Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic> steps(x.strides()[0], is_vector ? 0 : x.strides()[1]);
  return detail::Steps<T>(x.data<T>(), x.size(0), is_vector ? 1 : x.size(1), steps);
}

}  // namespace fovea
