#include <cmath>

#include "autograd/base/text.h"
#include "fovea/train/loop/trainer.h"

namespace fovea {

std::string Trainer::summary() const {
  using detail::with_commas;
  std::int64_t decayed = 0, trained = 0;
  for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
    const std::int64_t n = optimizer_.parameters()[i].tensor.numel();
    trained += n;
    if (optimizer_.settings()[i].weight_decay > 0) decayed += n;
  }
  const std::int64_t all = parameter_count(model_);
  std::string text = fmt::format("parameters  {}, tied ones counted once: {} decay, {} do not",
                                 with_commas(all), with_commas(decayed), with_commas(trained - decayed));
  if (trained < all) text += fmt::format(", {} are not trained", with_commas(all - trained));

  std::int64_t vocabulary = 0;
  const auto model = [&](const Indices& ids) {
    Tensor logits = model_.logits(ids);
    vocabulary = logits.size(-1);
    return logits;
  };
  const auto next_batch = [&](std::int64_t index) -> std::optional<Batch> {
    if (index > 0) return std::nullopt;
    Rng rng(status_.data_rng);
    return source_(status_.batches, rng);
  };
  const Evaluation first = fovea::evaluate(model, next_batch, options_.loss.ignore_index);
  if (first.tokens == 0) return text + "\nloss        unknown: the next batch has no target";
  return text +
         fmt::format("\nloss        {:.4f} {}; ln V = {:.4f}, V = {}", first.loss,
                     status_.step == 0 ? "before training" : fmt::format("after step {}", status_.step),
                     std::log(static_cast<double>(vocabulary)), with_commas(vocabulary));
}

}  // namespace fovea
