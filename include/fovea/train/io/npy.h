#pragma once

#include <filesystem>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"

/// Tensors for NumPy: `numpy.load("x.npy")`, `numpy.load("all.npz")["name"]`.
namespace fovea {

/// Writes a tensor as an .npy file of version 1.0 ('<f4' or '<f8', in C order, the data aligned to 64 bytes;
/// numpy.org/doc/stable/reference/generated/numpy.lib.format.html). The file is there as a whole or not at
/// all, as by `save_safetensors`.
///
/// Throws: FileError, with the path and the system's reason.
FOVEA_API void save_npy(const std::filesystem::path& path, const Tensor& x);

/// Writes tensors as an .npz file: a ZIP archive with one member, "name.npy", for each, not compressed, as by
/// `numpy.savez`.
///
/// Throws: ValueError if a name is empty, longer than 65,000 bytes or there twice, or the archive would have
/// 4 GB or 65,535 members, more than ZIP can hold without its extensions; FileError, with the path and the
/// system's reason. Nothing has been written then.
FOVEA_API void save_npz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace fovea
