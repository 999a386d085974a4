#include "app/trials/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <system_error>

#include "training/files/shortage.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

fs::path outermost_missing(fs::path path) {
  std::error_code error;
  fs::path missing;
  for (; !fs::exists(fs::symlink_status(path, error)); path = path.parent_path()) missing = path;
  return missing;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const fs::path& parent,
                                 const std::function<void(const fs::path&)>& make_parent)
    : parent_(fs::absolute(parent).lexically_normal()) {
  if (!parent_.has_filename()) parent_ = parent_.parent_path();  // the path ended with a slash
  outermost_ = outermost_missing(parent_);
  try {
    make_parent(parent);
    std::string name = (parent / "check-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      const int error = errno;
      const auto shortage = shortage_at(parent, error);
      throw UserError(fmt::format("cannot make a folder in '{}': {}; {}name another folder", parent.string(),
                                  shortage ? shortage->reason : std::generic_category().message(error),
                                  shortage ? shortage->remedy + ", or " : ""));
    }
    path_ = name;
  } catch (...) {
    remove();
    throw;
  }
}

TemporaryFolder::~TemporaryFolder() { remove(); }

void TemporaryFolder::remove() noexcept {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (outermost_.empty()) return;
  for (fs::path folder = parent_;; folder = folder.parent_path()) {
    fs::remove(folder, error);  // does nothing if another program has put a file into the folder
    if (folder == outermost_) return;
  }
}

}  // namespace plexaura
