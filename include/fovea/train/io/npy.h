#pragma once

#include <filesystem>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"

/// Files of tensors that NumPy reads: `numpy.load("x.npy")`, `numpy.load("all.npz")["name"]`.
namespace fovea {

/// Writes a tensor as an .npy file of version 1.0: dtype '<f4' or '<f8', C order, data aligned to 64 bytes
/// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). The file is replaced atomically, as by
/// `save_safetensors`.
///
/// Throws: FileError with the path and the system's reason if the file can't be written.
FOVEA_API void save_npy(const std::filesystem::path& path, const Tensor& x);

/// Writes tensors as an .npz file, as `numpy.savez` does: a ZIP archive, not compressed, with a member
/// "name.npy" for each tensor.
///
/// Throws: ValueError if a name is empty, longer than 65,000 bytes or given twice, or if the archive would
/// reach 4 GB or 65,535 members, the limits of ZIP without extensions; FileError with the path and the
/// system's reason if the file can't be written. In each case nothing has been written.
FOVEA_API void save_npz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace fovea
