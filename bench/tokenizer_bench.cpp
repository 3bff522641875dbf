// The time of learning 512 byte-pair merges from a text, and of encoding it. peers/tokenizers_bpe.py does the
// same with the PyPI package `tokenizers`.
//
//   ./run bench tokenizer_bench [options] [text file]      without a file, a text of 1 MB is generated

#include <benchmark/benchmark.h>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

std::string text;

// Words of 1 to 8 letters, short ones more often, from a random generator that is one line in any language:
// so peers/tokenizers_bpe.py makes the same text.
std::string generated_text(std::size_t size) {
  std::string generated;
  std::uint32_t state = 1;
  while (generated.size() < size) {
    for (int letters = 1;; ++letters) {
      state = state * 1664525U + 1013904223U;
      generated += static_cast<char>('a' + (state >> 24) % 16);
      if (letters == 8 || (state >> 16) % 4 == 0) break;
    }
    generated += ' ';
  }
  return generated;
}

void per_byte(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void learn_512_merges(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(BytePairTokenizer::train(text, {.merges = 512}));
  per_byte(state);
}

void encode(benchmark::State& state) {
  const BytePairTokenizer tokenizer = BytePairTokenizer::train(text, {.merges = 512});
  std::vector<std::int64_t> ids;
  for (auto _ : state) ids = tokenizer.encode(text);
  per_byte(state);
  state.counters["ids"] = static_cast<double>(ids.size());
}

BENCHMARK(learn_512_merges)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(encode)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  text = argc > 1 ? read_text(argv[1]) : generated_text(1'000'000);
  benchmark::RunSpecifiedBenchmarks();
}
