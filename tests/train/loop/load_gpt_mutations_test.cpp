#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/generate/generate.h"
#include "fovea/train/loop/checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

// Thousands of files whose settings and tensors contradict each other, the same each time. They are saved
// anew, so that their checksums, if they have any, are right. Each makes a Gpt that generates, or is refused.
namespace fovea {
namespace {

constexpr std::array values{"288230376151711744",
                            "9223372036854775807",
                            "30000000",
                            "16777216",
                            "65537",
                            "12",
                            "7",
                            "3",
                            "2",
                            "1",
                            "0",
                            "-1",
                            "many",
                            "",
                            "nan",
                            "inf",
                            "1e308",
                            "-0.5",
                            "none",
                            "given",
                            "true",
                            "false",
                            "learned",
                            "rotary",
                            "alibi",
                            "relative",
                            "sine-cosine",
                            "rms",
                            "post",
                            "swiglu",
                            "ntk",
                            "\x1b]0;title\x07\n\xff"};
constexpr std::array names{"blocks.1.attention.Wq", "blocks.9.attention.Wq", "token_embedding.table",
                           "\x1b[31m\xe2\x80\xae", "x"};
const std::vector<Shape> shapes{{}, {0}, {3}, {12}, {0, 12}, {12, 12}, {11, 12}, {12, 0}, {7, 12}, {1, 1, 1}};

class StateMutator {
 public:
  explicit StateMutator(std::uint64_t seed) : rng_(seed) {}

  State mutate(State state) {
    change(state);
    while (below(2) == 0) change(state);
    return state;
  }

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(rng_.uniform_int(static_cast<std::int64_t>(n)));
  }

  void change(State& state) {
    const auto setting =
        std::next(state.settings.begin(), static_cast<std::ptrdiff_t>(below(state.settings.size())));
    const std::size_t place = below(state.tensors.size());
    switch (below(8)) {
      case 0:
        if (state.settings.size() > 1) state.settings.erase(setting);
        break;
      case 1:
        if (state.tensors.size() > 1)
          state.tensors.erase(state.tensors.begin() + static_cast<std::ptrdiff_t>(place));
        break;
      case 2:
        state.tensors[place].tensor = zeros(shapes[below(shapes.size())]);
        break;
      case 3:
        state.tensors[place].name = names[below(names.size())];
        break;
      default:
        setting->second = values[below(values.size())];
        break;
    }
  }

  Rng rng_;
};

std::vector<State> honest_states() {
  std::vector<State> states;
  for (const Positions positions : {Positions::learned, Positions::rotary, Positions::relative}) {
    Rng rng(7);
    GptConfig config{
        .vocabulary = 11, .context = 7, .d_model = 12, .heads = 2, .layers = 2, .positions = positions};
    states.push_back(state(Gpt(config, rng)));
  }
  return states;
}

void check_printable(std::string_view message) {
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(line.size() + 1, message.size()));
    CHECK(detail::printable(line) == line);
    CHECK(line.size() < 1000);
  }
}

// Whether a file makes a model that generates. Otherwise the error must be one of the library's.
bool generates(const std::filesystem::path& path) {
  try {
    Rng rng(3);
    generate(load_gpt(path), std::vector<std::int64_t>{3, 1}, {.tokens = 5}, rng);
    return true;
  } catch (const Error& error) {
    check_printable(error.what());
    return false;
  }
}

}  // namespace

TEST_CASE("load_gpt: settings and tensors that contradict each other cost an error and no memory",
          "[trainer]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "gpt.safetensors";
  const std::vector<State> states = honest_states();
  int loaded = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("mutation " << seed);
    try {
      save_safetensors(path, StateMutator(seed).mutate(states[seed % states.size()]));
    } catch (const ValueError&) {
      continue;  // no file can hold two tensors of one name, or a setting that is not UTF-8
    }
    const std::int64_t before = memory().live_bytes;
    reset_peak_memory();
    loaded += generates(path) ? 1 : 0;
    const auto bound = 4 * static_cast<std::int64_t>(std::filesystem::file_size(path)) + (1 << 20);
    CHECK(memory().peak_bytes - before <= bound);
  }
  CHECK(loaded > 30);
  CHECK(loaded < 2900);
}

}  // namespace fovea
