#pragma once

#include <filesystem>
#include <functional>

namespace plexaura {

// A new empty folder with a unique name. The destructor removes it with all that it contains.
class TemporaryFolder {
 public:
  // Makes the folder in `parent`. If `parent` does not exist, calls `make_parent` first to make it. The
  // destructor also removes the folders that were missing before, if they are empty. Throws UserError if
  // `parent` cannot be written. Throws what `make_parent` throws. After an error no new folder is left.
  TemporaryFolder(const std::filesystem::path& parent,
                  const std::function<void(const std::filesystem::path&)>& make_parent);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  void remove() noexcept;

  std::filesystem::path parent_;
  std::filesystem::path
      outermost_;  // first folder on the path to `parent` that was missing; empty: none was missing
  std::filesystem::path path_;
};

}  // namespace plexaura
