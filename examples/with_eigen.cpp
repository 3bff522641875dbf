// Tensors from and to the matrices of your own Eigen, which is not the one inside Fovea.

#include <Eigen/Dense>

#include "fovea/eigen.h"
#include "fovea/fovea.h"

int main() {
  // [eigen]
  const Eigen::MatrixXf symmetric = (Eigen::Matrix2f() << 2, 1, 1, 2).finished();
  const fovea::Tensor x = fovea::from_eigen(symmetric);    // a copy, (2, 2), of dtype f32
  const Eigen::MatrixXf back = fovea::to_eigen<float>(x);  // a copy; a vector becomes a column
  const Eigen::VectorXf values = back.selfadjointView<Eigen::Lower>().eigenvalues();  // 1 and 3
  // [eigen]
  return x.shape() == fovea::Shape{2, 2} && (values - Eigen::Vector2f(1, 3)).norm() < 1e-6F ? 0 : 1;
}
