#include "autograd/kernels/gemv.h"

#include <Eigen/Core>

#include <algorithm>

namespace fovea::kernels {
namespace {

template <class T, int Order>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <class T, int Order>
using MatrixMap = Eigen::Map<const Matrix<T, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using StridedMap = Eigen::Map<const Matrix<T, Eigen::RowMajor>, Eigen::Unaligned,
                              Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class Vector>
using VectorMap = Eigen::Map<Vector, Eigen::Unaligned, Eigen::InnerStride<>>;

// Whether Eigen can read a matrix where it lies: `outer` runs of `inner` elements side by side, which do not
// overlap.
bool lies_in_runs(std::int64_t inner, std::int64_t inner_step, std::int64_t outer, std::int64_t outer_step) {
  return (inner <= 1 || inner_step == 1) && (outer <= 1 || outer_step >= inner);
}

// Calls f with an Eigen map of a row-major or column-major matrix, or of a row-major copy of any other
// matrix.
template <class T, class F>
void with_eigen_matrix(const MatrixView<const T>& m, const F& f) {
  if (lies_in_runs(m.columns, m.column_step, m.rows, m.row_step)) {
    const Eigen::OuterStride<> step(std::max(m.row_step, m.columns));
    f(MatrixMap<T, Eigen::RowMajor>(m.data, m.rows, m.columns, step));
  } else if (lies_in_runs(m.rows, m.row_step, m.columns, m.column_step)) {
    const Eigen::OuterStride<> step(std::max(m.column_step, m.rows));
    f(MatrixMap<T, Eigen::ColMajor>(m.data, m.rows, m.columns, step));
  } else {
    const Matrix<T, Eigen::RowMajor> copy =
        StridedMap<T>(m.data, m.rows, m.columns, {m.row_step, m.column_step});
    f(MatrixMap<T, Eigen::RowMajor>(copy.data(), m.rows, m.columns, Eigen::OuterStride<>(m.columns)));
  }
}

}  // namespace

template <class T>
void gemv(const MatrixView<const T>& a, const MatrixView<const T>& x, T* y, std::int64_t y_step, bool add) {
  VectorMap<Eigen::VectorX<T>> result(y, a.rows, Eigen::InnerStride<>(y_step));
  const VectorMap<const Eigen::VectorX<T>> vector(x.data, x.rows, Eigen::InnerStride<>(x.row_step));
  if (!add) result.setZero();
  with_eigen_matrix<T>(a, [&](const auto& matrix) { result.noalias() += matrix * vector; });
}

template void gemv<float>(const MatrixView<const float>&, const MatrixView<const float>&, float*,
                          std::int64_t, bool);
template void gemv<double>(const MatrixView<const double>&, const MatrixView<const double>&, double*,
                           std::int64_t, bool);

}  // namespace fovea::kernels
