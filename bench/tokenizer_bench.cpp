// What learning 512 byte-pair merges and encoding cost. peers/tokenizers_bpe.py does the same by the PyPI
// package `tokenizers`.
//
//   ./run bench tokenizer_bench [options] [text file]      without a file, a text of 1 MB is made

#include <benchmark/benchmark.h>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

std::string text;

// Words of 1 to 8 letters, the shorter the more frequent, by a generator that takes a line in any language.
std::string made_text(std::size_t size) {
  std::string made;
  std::uint32_t state = 1;
  while (made.size() < size) {
    for (int letters = 1;; ++letters) {
      state = state * 1664525U + 1013904223U;
      made += static_cast<char>('a' + (state >> 24) % 16);
      if (letters == 8 || (state >> 16) % 4 == 0) break;
    }
    made += ' ';
  }
  return made;
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
  text = argc > 1 ? read_text(argv[1]) : made_text(1'000'000);
  benchmark::RunSpecifiedBenchmarks();
}
