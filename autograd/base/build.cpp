#include "autograd/base/build.h"

// Kernels are compiled with the same options as this file.

namespace fovea::detail {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "GCC " __VERSION__;
#endif

#if defined(__OPTIMIZE__)
constexpr const char* optimised = "optimised";
#else
constexpr const char* optimised = "not optimised";
#endif

constexpr const char* instructions =
#if defined(__x86_64__)
    "x86-64"
#if defined(__AVX512F__)
    " AVX-512"
#endif
#if defined(__AVX2__)
    " AVX2"
#elif defined(__AVX__)
    " AVX"
#elif defined(__SSE4_2__)
    " SSE4.2"
#endif
#if defined(__FMA__)
    " FMA"
#endif
#elif defined(__aarch64__)
    "AArch64"
#if defined(__ARM_FEATURE_SVE)
    " SVE"
#endif
#else
    "another processor"
#endif
    ;

}  // namespace

std::string build_identity() {
  std::string text = "fovea " FOVEA_VERSION;
  for (const char* part : {compiler, optimised, instructions, "Eigen " FOVEA_EIGEN_VERSION}) {
    text += ", ";
    text += part;
  }
  return text;
}

}  // namespace fovea::detail
