#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

namespace detail {
class Descriptor;
}

/// The folder of a training run, locked while this object lives, so that no other program writes there. The
/// system releases the lock however the program ends.
///
///   RunFolder folder = RunFolder::make_numbered("runs/names");   // or runs/names-2, ...
///   folder.write("config.toml", settings);
///   Run run(std::move(folder), trainer, {.checkpoint_every = 500});
///
/// Some file systems have no locks: two programs that name the same folder there are not kept apart.
class FOVEA_API RunFolder {
 public:
  /// Makes the folder if it does not exist, and locks it. Throws: FileError, with the path, if it can't be
  /// made or if another program has it.
  static RunFolder make(const std::filesystem::path& path);
  /// Makes and locks the first of `path`, `path`-2, `path`-3, ... that does not exist. Programs that ask for
  /// the same path at the same time get a folder each. Throws: FileError if it can't be made.
  static RunFolder make_numbered(const std::filesystem::path& path);
  /// Locks a folder that exists. Throws: FileError if there is none or if another program has it.
  static RunFolder open(const std::filesystem::path& path);

  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  /// Whether the folder has a log or a checkpoint.
  bool has_run() const;
  /// Writes a file in the folder, such as the settings of the run. The file appears complete or not at all,
  /// and is flushed to the disk. Throws: FileError.
  void write(const std::string& name, std::string_view text) const;
  /// Flushes the names of new files to the disk.
  void sync() const;

 private:
  RunFolder(std::filesystem::path path, std::unique_ptr<detail::Descriptor> lock);

  std::filesystem::path path_;
  std::unique_ptr<detail::Descriptor> lock_;
};

}  // namespace fovea
