#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/format.h"
#include "tests/support/catch.h"

using namespace fovea;

TEST_CASE("tensors print as NumPy prints arrays") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(fmt::format("{}", tensor({1, 2, 3}, dtype)) == "[1. 2. 3.]");
  CHECK(fmt::format("{}", tensor({{1, 0.5}, {-3.25, 10}}, dtype)) == "[[ 1.    0.5 ]\n [-3.25 10.  ]]");
  CHECK(fmt::format("{}", tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, dtype)) ==
        "[[[1. 2.]\n  [3. 4.]]\n\n [[5. 6.]\n  [7. 8.]]]");
  CHECK(fmt::format("{}", scalar(2.5, dtype)) == "2.5");
  CHECK(fmt::format("{}", zeros({0}, dtype)) == "[]");
  CHECK(fmt::format("{}", tensor({1, 1000}, dtype)) == "[   1. 1000.]");
}

TEST_CASE("as many digits are printed as tell a number from its neighbours, and 8 at most") {
  CHECK(to_string(tensor({1.0 / 3, 2.0 / 3}, f64)) == "[0.33333333 0.66666667]");
  CHECK(to_string(tensor({1.0 / 3, 2.0 / 3}, f32)) == "[0.33333334 0.6666667 ]");
  CHECK(to_string(tensor({0.1, 0.25}, f32)) == "[0.1  0.25]");
  CHECK(to_string(tensor({0.1 + 0.2, 1}, f64)) == "[0.3 1. ]");
  CHECK(to_string(full({1}, 123456.789, f64)) == "[123456.789]");
}

TEST_CASE("views print what they show") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(to_string(transpose(x)) == "[[1. 4.]\n [2. 5.]\n [3. 6.]]");
  CHECK(to_string(slice(x, 1, 1, 3)) == "[[2. 3.]\n [5. 6.]]");
  CHECK(to_string(broadcast_to(scalar(7), {2, 2})) == "[[7. 7.]\n [7. 7.]]");
}

TEST_CASE("infinity and NaN print aligned with the other elements") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(to_string(tensor({1, -infinity, std::nan("")}, f64)) == "[  1. -inf  nan]");
}

TEST_CASE("very large and small numbers print in scientific notation") {
  CHECK(to_string(tensor({1e10, 1}, f64)) == "[1.e+10 1.e+00]");
  CHECK(to_string(tensor({1e-7, 0}, f64)) == "[1.e-07 0.e+00]");
  CHECK(to_string(tensor({1, 2000}, f64)) == "[1.e+00 2.e+03]");
  CHECK(to_string(tensor({-1.5e-5, 1}, f64)) == "[-1.5e-05  1.0e+00]");
}

TEST_CASE("a long tensor is summarised") {
  CHECK(to_string(arange(2000)) == "[0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03]");
  CHECK_THAT(to_string(zeros({100, 100})), ContainsSubstring("...") && ContainsSubstring("\n"));
  CHECK(to_string(zeros({100, 100})).size() < 500);
  CHECK_THAT(to_string(arange(1000)), !ContainsSubstring("..."));
}

TEST_CASE("lines break before they grow too long") {
  const std::string text = to_string(arange(100));
  CHECK_THAT(text, Catch::Matchers::StartsWith("[ 0.  1.  2.") && ContainsSubstring(" 16. 17.\n 18. 19."));
}

TEST_CASE("shapes, indices and truth values print too") {
  CHECK(fmt::format("{}", Shape{2, 3}) == "(2, 3)");
  CHECK(fmt::format("{:>8}", Shape{5}) == "    (5,)");
  CHECK(fmt::format("{}", Indices{{1, 2}, {3, 4}}) == "[[1, 2],\n [3, 4]]");
  CHECK_THAT(fmt::format("{}", Bool{true, false}), ContainsSubstring("1") && ContainsSubstring("0"));
  CHECK(fmt::format("{}", Tensor()) == "undefined");
}
