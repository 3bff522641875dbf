// Loads any bytes, which must give tensors or a FileError: no crash, no hang, no memory far beyond the file's
// size. Run it by
//   build/sanitize/tests/fuzz/safetensors_fuzz build/sanitize/corpus tests/fuzz/corpus/safetensors

#include <cstdlib>

#include "fovea/autograd/base/error.h"
#include "fovea/train/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  for (const bool skip : {false, true}) {
    try {
      const auto file = fovea::load_safetensors(std::as_bytes(bytes), {.skip_other_dtypes = skip});
      std::size_t elements = 0;
      for (const fovea::NamedTensor& named : file.state.tensors) elements += named.tensor.to_vector().size();
      // The smallest elements that can be loaded have two bytes.
      if (2 * elements > size) std::abort();
    } catch (const fovea::FileError&) {
    }
  }
  return 0;
}
