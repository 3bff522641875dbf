#include <fmt/format.h>

#include "eigen_work.h"
#include "fovea/eigen.h"
#include "fovea/fovea.h"
#include "model.h"

namespace {

bool gradient_works(fovea::Rng& rng) {
  fovea::Tensor a = fovea::randn({3, 5}, rng);
  a.set_requires_grad();
  fovea::backward(fovea::sum(a * a));
  fmt::print("{}\n{}\n", a, a.grad());
  return fovea::to_eigen<float>(a.grad()).isApprox(2 * fovea::to_eigen<float>(a));
}

// An exception keeps its type on its way out of a shared library.
bool error_is_caught(fovea::Rng& rng) {
  try {
    fovea::matmul(fovea::randn({2, 3}, rng), fovea::randn({5, 7}, rng));
  } catch (const fovea::ShapeError&) {
    return true;
  }
  return false;
}

}  // namespace

int main() {
  fovea::Rng rng(7);
  const bool works = eigen_works<Eigen::MatrixXf>() && eigen_works<Eigen::MatrixXd>() && model_works(rng) &&
                     gradient_works(rng) && error_is_caught(rng);
  return works ? 0 : 1;
}
