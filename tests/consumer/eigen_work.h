#pragma once

#include <Eigen/Dense>

/// Multiplies and frees matrices of this program's own Eigen. Each source that calls it has a copy of the
/// code.
template <typename Matrix>
bool eigen_works() {
  const Matrix a = Matrix::Random(37, 23);
  const Matrix b = Matrix::Random(23, 41);
  const Matrix product = a * b;
  Matrix expected = Matrix::Zero(37, 41);
  for (Eigen::Index k = 0; k < a.cols(); ++k) expected += a.col(k) * b.row(k);
  return product.isApprox(expected, 1e-4F);
}
