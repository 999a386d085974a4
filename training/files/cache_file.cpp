#include "training/files/cache_file.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <system_error>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr double longest_wait = 5;  // seconds for which a run waits for the lock

fs::path folder_in(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !fs::path(value).is_absolute()) return {};
  return fs::path(value) / below;
}

}  // namespace

fs::path cache_file(std::string_view name) {
  fs::path folder = folder_in("XDG_CACHE_HOME", "plexaura");
  if (folder.empty()) folder = folder_in("HOME", ".cache/plexaura");
  return folder.empty() ? folder : folder / name;
}

FileDescriptor lock_cache(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path path = file.string() + ".lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.is_there()) throw_create_error(path, errno);
  const double end = seconds_now() + longest_wait;
  while (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (seconds_now() > end) throw UserError(fmt::format("another process has locked '{}'", path.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

}  // namespace plexaura
