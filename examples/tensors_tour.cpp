// Tensors and ops: how they are made, read, written, cut and combined. docs/tensors.md shows these lines and
// what they print.

#include <fmt/core.h>

#include <vector>

#include "expect.h"
#include "fovea/fovea.h"

using namespace fovea;

namespace {

void creation() {
  // [create]
  Rng rng(1);
  const Tensor a = tensor({{1, 2, 3}, {4, 5, 6}});  // (2, 3), f32
  const Tensor b = full({2, 3}, 0.5) + arange(3);   // zeros, ones, eye, scalar, empty likewise
  const Tensor noise = randn({2, 3}, rng);          // uniform(shape, rng, low, high) likewise
  const Tensor exact = tensor({0.1, 0.2}, f64);     // the dtype is always the last argument
  const Tensor rounded = to(exact, f32);            // another dtype: a copy, and the gradient flows
  // [create]
  expect(b.at({1, 2}) == 2.5 && noise.dtype() == f32, "creation");
  expect(rounded.at({0}) == double{0.1F} && exact.at({0}) == 0.1, "dtypes");

  // [print]
  fmt::print("{}\n{} {} {}\n\n", a, a.shape(), a.numel(), name_of(a.dtype()));
  // [print]
}

void shapes() {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  // [shapes]
  const Tensor flat = reshape(x, {-1});                 // (6,): one size may be -1
  const Tensor column = reshape(x, {2, 3, 1});          // what unsqueeze(-1) gives
  const Tensor turned = permute(column, {2, 0, 1});     // (1, 2, 3); transpose(x) exchanges the last two axes
  const Tensor wide = broadcast_to(turned, {5, 2, 3});  // repeats without a copy, as expand does
  const std::int64_t rows = x.size(0), columns = x.size(-1);
  // [shapes]
  expect(flat.shape() == Shape{6} && wide.shape() == Shape{5, 2, 3} && rows * columns == 6, "shapes");

  // [slices]
  const Tensor last = slice(x, /*axis=*/-1, /*begin=*/1, /*end=*/3);  // x[:, 1:3], a view
  const Tensor odd = slice(x, -1, 0, 3, /*step=*/2);                  // x[:, 0:3:2]
  const Tensor row = x[1];                            // of rank 1; along another axis: select(x, axis, i)
  const std::vector<Tensor> parts = split(x, -1, 3);  // three columns of shape (2, 1)
  const Tensor again = concat(parts, -1), piled = stack({row, row}, 0);
  const double element = x.at({1, 2});  // 6
  // [slices]
  expect(last.at({1, 0}) == 5 && odd.at({0, 1}) == 3 && element == 6, "slices");
  expect(all(again == x) && piled.shape() == Shape{2, 3}, "joins");
}

void arithmetic() {
  // [broadcast]
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const Tensor centered = x - mean(x, -1, keepdims);         // (2, 3) - (2, 1)
  const Tensor scaled = 2.0 * centered / tensor({1, 2, 4});  // (2, 3) / (3,)
  const Tensor largest = max(x, {0, 1});                     // over both axes: (), as max(x)
  const Tensor products = matmul(x, transpose(x));           // (2, 3) x (3, 2)
  // [broadcast]
  expect(scaled.at({0, 2}) == 0.5 && largest.item() == 6 && products.at({0, 1}) == 32, "arithmetic");
}

void ids_and_truth() {
  // [indices]
  const Tensor scores = tensor({{0.1, 0.7, 0.2}, {0.5, 0.1, 0.4}});
  const Indices best = argmax(scores, -1);                    // (2,): integers, without a gradient
  const Tensor rows = embedding(eye(3), Indices({2, 0, 2}));  // rows of a table, as index_select(0, ids)
  const Indices ids({2, 3}, [](std::int64_t* out) {           // any shape, written by a function
    for (std::int64_t i = 0; i < 6; ++i) out[i] = i % 3;
  });
  fmt::print("{}\n{}\n\n", best, ids);
  // [indices]
  expect(best[0] == 1 && rows.at({0, 2}) == 1, "indices");

  // [bool]
  const Bool high = scores > 0.3;  // compared elementwise, with broadcasting
  const Tensor kept = where(high & !(scores == 0.5), scores, 0.0);
  if (any(high)) fmt::print("{}\n{}\n\n", high, kept);
  // [bool]
  expect(kept.at({0, 1}) > 0.6 && kept.at({1, 0}) == 0, "bool");
}

void masks(Rng& rng) {
  constexpr std::int64_t B = 2, H = 5, T = 3, D = 7;
  const Tensor q = randn({B, H, T, D}, rng), k = randn({B, H, T, D}, rng), v = randn({B, H, T, D}, rng);
  // [masks]
  const Mask mask = Mask::causal() & Mask::lengths({3, 2});  // keeps what both keep; sequence 1 has 2 tokens
  const Tensor y = attention(q, k, v, {.mask = mask});
  fmt::print("{}\n\n", mask.materialize(B, H, T, T));  // what is kept: (B, 1, T, T)
  // [masks]
  expect(y.shape() == q.shape(), "masks");
}

void writing() {
  // [in_place]
  Tensor x = zeros({2, 3});
  float* elements = x.mutable_data<float>();  // row-major, since x was made so; x.strides() in general
  for (std::int64_t i = 0; i < x.numel(); ++i) elements[i] = static_cast<float>(i);
  const Tensor view = slice(x, 0, 1, 2);  // shares the elements of x; a copy of the Tensor does as well
  const Tensor copy = clone(x);           // has its own
  x.mutable_data<float>()[3] = 100;
  // [in_place]
  expect(view.at({0, 0}) == 100 && copy.at({1, 0}) == 3, "in place");

  // [vectors]
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const Tensor matrix = from_values(values, {2, 3});
  const std::vector<double> back = transpose(matrix).to_vector();  // row-major: 1, 4, 2, 5, 3, 6
  const double sum_of_all = sum(matrix).item();
  // [vectors]
  expect(back[1] == 4 && sum_of_all == 21, "vectors");
}

void writing_what_a_graph_needs() {
  // [saved]
  Tensor w = parameter(ones({3}));
  const Tensor y = sum(w * w);     // its gradient, 2 w, needs w as it is now
  w.mutable_data<float>()[0] = 5;  // as an optimizer's step would
  try {
    backward(y);
  } catch (const GraphError& error) {
    fmt::print("{}\n\n", error.what());
  }
  // [saved]
}

void seeds_and_threads() {
  // [seeds]
  Rng rng(42), same(42);
  const Tensor first = randn({3}, rng), second = randn({3}, rng);  // the generator moves on
  const Tensor repeated = randn({3}, same);                        // the bits of `first`
  Rng of_data = rng.split(), of_weights = rng.split();             // independent of each other
  const Rng::State state = rng.state();  // two numbers; Rng(state) continues from here
  // [seeds]
  expect(all(first == repeated), "one seed gives the same bits");
  expect(!all(first == second) && of_data.next() != of_weights.next(), "independent draws");
  expect(Rng(state).next() == rng.next(), "a generator continued from its state");

  // [threads]
  const Tensor a = randn({300, 300}, of_data), b = randn({300, 300}, of_data);
  const Tensor product = matmul(a, b);
  set_threads(1);  // before the first call, as many as the machine has
  const Tensor same_bits = matmul(a, b);
  // [threads]
  expect(all(product == same_bits), "the same bits for any number of threads");

  // [memory]
  reset_peak_memory();
  const std::int64_t before = memory().live_bytes;
  const Tensor large = ones({1000, 1000});  // 4,000,000 bytes of f32
  const MemoryUse use = memory();           // live_bytes, peak_bytes and cached_bytes
  // [memory]
  expect(use.live_bytes - before >= 4 * large.numel() && use.peak_bytes >= use.live_bytes, "memory");
}

void errors() {
  // [errors]
  try {
    matmul(zeros({8, 16}), zeros({64, 128}));
  } catch (const ShapeError& error) {  // all errors are fovea::Error, a std::runtime_error
    fmt::print("{}\n", error.what());
  }
  // [errors]
}

}  // namespace

int main() {
  Rng rng(1);
  creation();
  shapes();
  arithmetic();
  ids_and_truth();
  masks(rng);
  writing();
  writing_what_a_graph_needs();
  seeds_and_threads();
  errors();
  return failures == 0 ? 0 : 1;
}
