#pragma once

#include <filesystem>
#include <functional>

namespace plexaura {

// An empty folder with a name of its own. The destructor removes it with all that it contains.
class TemporaryFolder {
 public:
  // Makes the folder in `parent`, which `make_parent` makes first if it does not exist. The destructor removes
  // the folders that were missing before, too, if they are empty. Throws UserError if `parent` cannot be
  // written, and what `make_parent` throws; nothing is left then.
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
      outermost_;  // the first folder on the way to the parent that was missing; empty: none was
  std::filesystem::path path_;
};

}  // namespace plexaura
