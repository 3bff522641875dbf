#include "model.h"

#include "eigen_work.h"
#include "fovea/eigen.h"

bool model_works(fovea::Rng& rng) {
  const fovea::Tensor a = fovea::randn({17, 19}, rng);
  const fovea::Tensor b = fovea::randn({19, 29}, rng);
  const Eigen::MatrixXf product = fovea::to_eigen<float>(fovea::matmul(a, b));
  const Eigen::MatrixXf expected = fovea::to_eigen<float>(a) * fovea::to_eigen<float>(b);
  return product.isApprox(expected, 1e-4F) && eigen_works<Eigen::MatrixXf>() &&
         eigen_works<Eigen::MatrixXd>();
}
