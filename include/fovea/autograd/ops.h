#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/ops/attention.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

/// Differentiable ops, to any order. Each computes a new tensor, or a view, and leaves its inputs alone.
///
/// All of them throw DtypeError when f32 and f64 meet, and ShapeError when shapes do not fit; more is said
/// where there is more. Binary ops broadcast as NumPy does: aligned at the last axis, size 1 repeats.
///
/// A cotangent that is exactly zero stays zero through a local derivative that is not finite, so the branch
/// that `where` did not take sends no NaN back.
namespace fovea {

/// For reductions: keep the reduced axes with size 1.
inline constexpr bool keepdims = true;

// --- Arithmetic: (...), (...) -> broadcast (...) -----------------------------------------------------------

FOVEA_API Tensor add(const Tensor& a, const Tensor& b);
FOVEA_API Tensor sub(const Tensor& a, const Tensor& b);
FOVEA_API Tensor mul(const Tensor& a, const Tensor& b);
FOVEA_API Tensor div(const Tensor& a, const Tensor& b);
FOVEA_API Tensor neg(const Tensor& x);

/// a x + b with numbers a and b.
FOVEA_API Tensor affine(const Tensor& x, double a, double b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& x, double b) { return affine(x, 1, b); }
inline Tensor operator+(double a, const Tensor& x) { return affine(x, 1, a); }
inline Tensor operator-(const Tensor& x, double b) { return affine(x, 1, -b); }
inline Tensor operator-(double a, const Tensor& x) { return affine(x, -1, a); }
inline Tensor operator*(const Tensor& x, double a) { return affine(x, a, 0); }
inline Tensor operator*(double a, const Tensor& x) { return affine(x, a, 0); }
FOVEA_API Tensor operator/(const Tensor& x, double b);
FOVEA_API Tensor operator/(double a, const Tensor& x);

/// `x += y` is `x = x + y`: the handle x means a new tensor from then on, which is recorded like any other.
/// Nothing is written in place, so other handles, and the graph, keep the tensor that x was.
/// Throws: GraphError if x is a leaf that requires a gradient, such as a parameter, since it would be none
/// any more: an optimizer, or `mutable_data`, changes its elements.
FOVEA_API Tensor& operator+=(Tensor& x, const Tensor& y);
FOVEA_API Tensor& operator-=(Tensor& x, const Tensor& y);
FOVEA_API Tensor& operator*=(Tensor& x, const Tensor& y);
FOVEA_API Tensor& operator/=(Tensor& x, const Tensor& y);
FOVEA_API Tensor& operator+=(Tensor& x, double y);
FOVEA_API Tensor& operator-=(Tensor& x, double y);
FOVEA_API Tensor& operator*=(Tensor& x, double y);
FOVEA_API Tensor& operator/=(Tensor& x, double y);

/// The larger or smaller of the two; where they are equal, each gets half of the gradient. NaN if either is.
FOVEA_API Tensor maximum(const Tensor& a, const Tensor& b);
FOVEA_API Tensor minimum(const Tensor& a, const Tensor& b);
FOVEA_API Tensor maximum(const Tensor& x, double b);
FOVEA_API Tensor minimum(const Tensor& x, double b);
FOVEA_API Tensor maximum(double a, const Tensor& x);
FOVEA_API Tensor minimum(double a, const Tensor& x);

// --- Comparison: (...), (...) -> broadcast (...), Bool; no gradient ----------------------------------------

FOVEA_API Bool operator<(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator<=(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator>(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator>=(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator==(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator!=(const Tensor& a, const Tensor& b);
FOVEA_API Bool operator<(const Tensor& a, double b);
FOVEA_API Bool operator<=(const Tensor& a, double b);
FOVEA_API Bool operator>(const Tensor& a, double b);
FOVEA_API Bool operator>=(const Tensor& a, double b);
FOVEA_API Bool operator==(const Tensor& a, double b);
FOVEA_API Bool operator!=(const Tensor& a, double b);
FOVEA_API Bool is_finite(const Tensor& x);

/// a where `condition` is true, b elsewhere; all three broadcast.
FOVEA_API Tensor where(const Bool& condition, const Tensor& a, const Tensor& b);
FOVEA_API Tensor where(const Bool& condition, const Tensor& a, double b);
FOVEA_API Tensor where(const Bool& condition, double a, const Tensor& b);

/// x limited to [low, high]; the gradient passes at the bounds and not beyond them.
/// Throws: ValueError if low > high or either is NaN.
FOVEA_API Tensor clamp(const Tensor& x, double low, double high);

// --- Elementwise functions: (...) -> (...). docs/accuracy.md shows their errors, at most 2 ulp ------------

FOVEA_API Tensor exp(const Tensor& x);
FOVEA_API Tensor log(const Tensor& x);
/// Correctly rounded, as IEEE 754 asks; the gradient at 0 is 0.
FOVEA_API Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x).
FOVEA_API Tensor rsqrt(const Tensor& x);
/// The gradient at 0 is 0.
FOVEA_API Tensor abs(const Tensor& x);
/// x^p with a number p; x^0 = 1 with gradient 0 everywhere.
FOVEA_API Tensor pow(const Tensor& x, double p);
/// a^b, elementwise with broadcasting; d/db = a^b ln a, which is 0 where a = 0 and b >= 0.
FOVEA_API Tensor pow(const Tensor& a, const Tensor& b);
FOVEA_API Tensor tanh(const Tensor& x);
/// The error function 2/sqrt(pi) * integral of exp(-t^2) from 0 to x.
FOVEA_API Tensor erf(const Tensor& x);
/// 1 / (1 + exp(-x)).
FOVEA_API Tensor sigmoid(const Tensor& x);
/// max(x, 0); the gradient at 0 is 0.
FOVEA_API Tensor relu(const Tensor& x);
/// x sigmoid(x) (Elfwing et al. 2017; also called swish).
FOVEA_API Tensor silu(const Tensor& x);

struct GeluOptions {
  bool tanh = false;  ///< the approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which GPT-2 uses
};
/// x Phi(x) = x/2 (1 + erf(x / sqrt 2)) (Hendrycks & Gimpel 2016).
FOVEA_API Tensor gelu(const Tensor& x, const GeluOptions& options = {});

// --- Regularisation ----------------------------------------------------------------------------------------

/// Sets each element to 0 with probability p, and otherwise divides it by 1 - p, so that its mean stays the
/// same (Srivastava et al. 2014). Outside a `TrainMode` scope, returns x itself.
///
/// Which elements are kept depends on one draw from the scope's generator and on their position: a scope
/// opened from the same state drops the same elements, on any machine and any number of threads.
/// Throws: ValueError if p is not in [0, 1].
FOVEA_API Tensor dropout(const Tensor& x, double p);

// --- Reductions: (...) -> (...) without `axes`, or with size 1 there under keepdims ------------------------

FOVEA_API Tensor sum(const Tensor& x);
FOVEA_API Tensor sum(const Tensor& x, const Axes& axes, bool keep = false);
/// Throws: ShapeError if there is nothing to average.
FOVEA_API Tensor mean(const Tensor& x);
FOVEA_API Tensor mean(const Tensor& x, const Axes& axes, bool keep = false);
/// The largest element; equal ones share the gradient equally. NaN if any is. `maximum(x, 0)` compares with a
/// number.
/// Throws: ShapeError if empty.
FOVEA_API Tensor max(const Tensor& x);
FOVEA_API Tensor max(const Tensor& x, const Axes& axes, bool keep = false);
/// log sum exp(x), without overflow; -inf where there is nothing to add up, with gradient 0.
FOVEA_API Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep = false);
/// The position of the largest element along an axis: the first of equal ones.
/// Throws: ShapeError if empty.
FOVEA_API Indices argmax(const Tensor& x, Axis axis = -1);

// --- Shape. Views share the array of their input wherever strides allow ------------------------------------

/// The same elements in another shape; one size may be -1, to be inferred. A copy if strides do not allow a
/// view.
FOVEA_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Exchanges two axes.
FOVEA_API Tensor transpose(const Tensor& x, Axis axis0 = -2, Axis axis1 = -1);
/// Axis i of the result is axis order[i] of x.
FOVEA_API Tensor permute(const Tensor& x, const Axes& order);
/// Repeats along new leading axes and along axes of size 1, without a copy.
FOVEA_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Elements begin, begin + step, ... before `end` of an axis; negative begin and end count from the back.
/// Throws: ShapeError if the range is outside the axis; ValueError if step < 1.
FOVEA_API Tensor slice(const Tensor& x, Axis axis, Integer begin, Integer end, Integer step = 1);
/// One position of an axis, which is dropped. Throws: IndexError.
FOVEA_API Tensor select(const Tensor& x, Axis axis, Integer position);
namespace detail {
FOVEA_API std::vector<Tensor> split_equally(const Tensor& x, Axis axis, Integer parts);
}
/// Pieces of an axis, of the given sizes.
/// Throws: ShapeError if they do not add up to the axis.
FOVEA_API std::vector<Tensor> split(const Tensor& x, Axis axis, const Shape& sizes);
/// `parts` pieces of equal size. Throws: ShapeError if the axis does not divide.
template <detail::WholeNumber Parts>
std::vector<Tensor> split(const Tensor& x, Axis axis, Parts parts) {
  return detail::split_equally(x, axis, parts);
}
/// Joins tensors along an axis.
/// Throws: ShapeError if there is none, or another axis differs.
FOVEA_API Tensor concat(std::span<const Tensor> tensors, Axis axis);
FOVEA_API Tensor concat(std::initializer_list<Tensor> tensors, Axis axis);
/// Joins tensors of one shape along a new axis.
FOVEA_API Tensor stack(std::span<const Tensor> tensors, Axis axis);
FOVEA_API Tensor stack(std::initializer_list<Tensor> tensors, Axis axis);
/// A copy of the elements in row-major order, in an array of its own.
FOVEA_API Tensor clone(const Tensor& x);
/// x itself if it is row-major, else a copy that is.
FOVEA_API Tensor contiguous(const Tensor& x);
/// The same values as another dtype.
FOVEA_API Tensor to(const Tensor& x, Dtype dtype);
/// Adds up what broadcasting repeated: the transpose of `broadcast_to`.
FOVEA_API Tensor sum_to(const Tensor& x, const Shape& shape);

// --- Matrix products ---------------------------------------------------------------------------------------

/// (..., M, K) x (..., K, N) -> (..., M, N), with broadcast batch axes. A vector on the left is a row (its
/// axis is dropped from the result), on the right a column. Transposed views are read in place.
FOVEA_API Tensor matmul(const Tensor& a, const Tensor& b);

/// x W + b. Shapes: x (..., I), W (I, O), b (O,) or undefined -> (..., O).
FOVEA_API Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b = {});

// --- Lookup ------------------------------------------------------------------------------------------------

struct EmbeddingOptions {
  std::optional<std::int64_t> padding = {};  ///< the id whose row is zeros, in value and in gradient
};
/// Rows of a table. Shapes: table (V, C), ids (...) -> (..., C).
/// Throws: IndexError naming the position and value of an id outside [0, V).
FOVEA_API Tensor embedding(const Tensor& table, const Indices& ids, const EmbeddingOptions& options = {});

// --- Softmax and what is built on it -----------------------------------------------------------------------

/// y_i = exp(x_i - m) / sum_j exp(x_j - m) along an axis, with m = max_j x_j.
///
/// A row that is -inf throughout (nothing to see) gives zeros, in value and in gradient. A row with one +inf
/// gives what softmax tends to: 1 there and 0 elsewhere.
/// Shapes: (..., N, ...) -> the same.
FOVEA_API Tensor softmax(const Tensor& x, Axis axis = -1);

/// y_i = x_i - log sum_j exp(x_j) along an axis. A row that is -inf throughout stays so, with gradient 0. A
/// row with one +inf gives 0 there and -inf elsewhere.
/// Shapes: (..., N, ...) -> the same.
FOVEA_API Tensor log_softmax(const Tensor& x, Axis axis = -1);

enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  std::optional<std::int64_t> ignore_index = {};  ///< rows with this target are left out
  Reduction reduction = Reduction::mean;          ///< mean: the sum divided by `divisor`
  double label_smoothing = 0;  ///< eps in [0, 1]: the share of a target that is spread over all classes
  Tensor class_weights = {};   ///< w (V,), not below 0, of the dtype of the logits; they get no gradient
  double z_loss = 0;           ///< z >= 0: the weight of a penalty on logsumexp^2
};
struct CrossEntropy {
  Tensor loss;             ///< () in nats; the shape of the targets if there is no reduction, 0 where ignored
  std::int64_t count = 0;  ///< how many targets were kept; if none, the loss and its gradient are 0
  double divisor = 0;      ///< the sum of the kept targets' weights: `count`, without class weights
};
/// The cross-entropy of logits x and their targets, averaged over the targets that are kept (not ignored).
/// The loss of a row with target t is
///
///   (1 - eps) w_t (-log p_t) + eps / V sum_c w_c (-log p_c) + z w_t logsumexp(x)^2,  p = softmax(x).
///
/// The mean divides the sum of these by the sum of the w_t, and is 0 where that is 0. The first two terms are
/// PyTorch's; smoothing is from Szegedy et al. 2016. The third (de Brebisson & Vincent 2016; PaLM's has
/// z = 1e-4) keeps logits from drifting; it has the weight w_t of its row, so that class weights which are
/// all equal change nothing. Where p_c = 0 and its factor is not, the loss is infinite. A logit of +inf, if
/// it is the only one of its row, has p = 1.
///
/// Shapes: logits (..., V), targets (...).
/// Throws: IndexError naming position, value and V for a target outside [0, V) that is not the ignored value;
/// ValueError for an eps, z or weight outside its range; GraphError for weights that require a gradient.
FOVEA_API CrossEntropy cross_entropy(const Tensor& logits, const Indices& targets,
                                     const CrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  Tensor pos_weight = {};  ///< p, broadcast to the logits: the weight of positives against negatives
  Reduction reduction = Reduction::mean;
};
/// The loss of independent yes-or-no predictions: -p y log s - (1 - y) log(1 - s), with s = sigmoid(logits),
/// computed from the logits so that it neither overflows nor cancels. Targets may be anything in [0, 1]. An
/// infinite logit costs nothing if it is right, and is infinitely wrong otherwise.
///
/// Shapes: logits and targets (...) -> (), or (...) without a reduction. The mean over no elements is 0.
/// Throws: ShapeError where shapes differ: they are not broadcast.
FOVEA_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                                  const BinaryCrossEntropyOptions& options = {});

/// (prediction - target)^2, averaged over all elements. The mean over no elements is 0.
///
/// Shapes: prediction and target (...) -> (), or (...) without a reduction.
/// Throws: ShapeError where shapes differ: they are not broadcast.
FOVEA_API Tensor mean_squared_error(const Tensor& prediction, const Tensor& target,
                                    Reduction reduction = Reduction::mean);

/// y = (x - mean) / sqrt(variance + eps) * gain + bias over the last axis, the variance biased (Ba et al.
/// 2016).
///
/// Shapes: x (..., C), gain and bias (C,) or undefined -> (..., C). Throws: ValueError if eps < 0.
FOVEA_API Tensor layer_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {},
                            double eps = 1e-5);

/// y = x / sqrt(mean(x^2) + eps) * gain over the last axis: layer norm that does not center (Zhang & Sennrich
/// 2019).
///
/// Shapes: x (..., C), gain (C,) or undefined -> (..., C). Throws: ValueError if eps < 0.
FOVEA_API Tensor rms_norm(const Tensor& x, const Tensor& gain = {}, double eps = 1e-5);

/// Which two channels of a head are rotated together: i and i + R/2 (`halves`, as in GPT-NeoX and Hugging
/// Face's Llama), or 2i and 2i + 1 (`adjacent`, as in the paper, GPT-J and Meta's Llama). Weights trained
/// with one layout need `convert_rotary_layout` for the other.
enum class RotaryLayout { halves, adjacent };

/// How a model is used on sequences that are `factor` times longer than those it was trained on: `linear`
/// divides positions by the factor (position interpolation, Chen et al. 2023); `ntk` multiplies the base by
/// factor^(R/(R-2)), which leaves the fastest pair as it is and slows the slowest by the factor (NTK-aware
/// scaling, bloc97 2023).
enum class RotaryScaling { none, linear, ntk };

struct RotaryOptions {
  RotaryLayout layout = RotaryLayout::halves;
  double base = 10000;
  std::int64_t offset = 0;  ///< the position of the first of the T, such as the length of a cache
  std::optional<std::int64_t> dimensions = {};  ///< R: only the first R of D channels rotate; by default all
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;  ///< of the scaling
};
/// Rotary position embedding (Su et al. 2021): at position t, pair i of the channels (a, b) is rotated by the
/// angle t base^(-2i/R):
///   (a, b) -> (a cos - b sin, a sin + b cos).
/// The product of a query and a key that are both rotated depends only on the difference of their positions.
/// Angles are computed in f64.
///
/// Shapes: x (..., T, D) -> the same.
/// Throws: ShapeError if R is odd or above D; ValueError if the base or the factor is not above 0.
FOVEA_API Tensor rotary(const Tensor& x, const RotaryOptions& options = {});

/// The weights of queries or keys with the channels of every head reordered from one layout to the other.
/// With both Wq and Wk converted, and rotated in the other layout, scores stay the same.
///
/// Shapes: W (..., H D), as of a Linear's W or b, where R channels of D rotate (all by default) -> the same.
/// Throws: ShapeError if `heads` does not divide the last axis, or R is odd or above D.
FOVEA_API Tensor convert_rotary_layout(const Tensor& W, std::int64_t heads, RotaryLayout from,
                                       RotaryLayout to, std::optional<std::int64_t> dimensions = {});

}  // namespace fovea
