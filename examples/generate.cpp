// A small model memorizes a sentence letter by letter, and then continues its beginning.

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "fovea/fovea.h"

using namespace fovea;

const std::string sentence = "she sells sea shells by the sea shore\n";

void learn(const Gpt& model, const TokenData& data, Rng& rng) {
  AdamW optimizer(named_parameters(model), {.learning_rate = 1e-2});
  for (int step = 0; step < 150; ++step) {
    const Batch batch = random_batch(data, {.batch = 8, .context = model.config.context}, rng);
    backward(cross_entropy(model(batch.inputs), batch.targets).loss);
    optimizer.step();
    optimizer.zero_grad();
  }
}

int main() {
  Rng rng(1);
  const CharacterTokenizer letters(sentence);
  const Gpt model({.vocabulary = letters.size(), .context = 32, .d_model = 32, .heads = 4, .layers = 2}, rng);
  learn(model, TokenData(sentence, letters), rng);

  // [greedy]
  const std::vector<std::int64_t> prompt = letters.encode("she ");
  const std::vector<std::int64_t> rest =
      generate(model, prompt, {.sampling = {.temperature = 0}, .stop = letters.find("\n")}, rng);
  const std::string whole = "she " + letters.decode(rest);
  // [greedy]
  fmt::print("{}", whole);

  // [stream]
  const GenerateOptions options{
      .tokens = 60, .sampling = {.temperature = 1.5, .top_k = 5}, .on_token = [&](std::int64_t id) {
        fmt::print("{}", letters.token(id));
        std::fflush(stdout);
      }};
  generate(model, prompt, options, rng);
  // [stream]
  fmt::print("\n");

  // [any]
  const LanguageModel any = [&](const Indices& ids) { return model(ids); };
  const std::vector<std::int64_t> same = generate(
      any, /*context=*/32, prompt, {.sampling = {.temperature = 0}, .stop = letters.find("\n")}, rng);
  // [any]

  // [probabilities]
  const Tensor logits = model(Indices({1, 4}, prompt));     // (1, T, V)
  const Tensor last = select(select(logits, 0, 0), 0, -1);  // (V,): of the token after "she "
  const std::vector<double> p = token_probabilities(last, {.top_p = 0.9});
  // [probabilities]
  fmt::print("after 'she ', s has probability {:.2f}\n", p[static_cast<std::size_t>(*letters.find("s"))]);

  return whole == sentence && same == rest ? 0 : 1;
}
