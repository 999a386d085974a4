#include "training/kernel_times.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "training/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 64 << 20;
constexpr double longest_wait = 5;  // seconds

fs::path folder_in(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !fs::path(value).is_absolute()) return {};
  return fs::path(value) / below;
}

// Runs that keep times at once do so one after the other; it ends with the object. Where the file system has no
// locks, what another run keeps in the same moment may be lost, and is measured again.
FileDescriptor lock_of(const fs::path& file) {
  const fs::path path = file.string() + ".lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.get() < 0) throw_create_error(path, errno);
  const double end = seconds_now() + longest_wait;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (seconds_now() > end) throw UserError(fmt::format("another process holds '{}'", path.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

}  // namespace

fs::path kernel_times_file() {
  fs::path folder = folder_in("XDG_CACHE_HOME", "plexaura");
  if (folder.empty()) folder = folder_in("HOME", ".cache/plexaura");
  return folder.empty() ? folder : folder / "kernel_times";
}

std::string load_kernel_times(const fs::path& file, Tuner& tuner) {
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return {};
  try {
    if (tuner.add(read_text_file(file, most_bytes))) return {};
    return fmt::format(
        "the times of kernels in '{}' are damaged, or another version's; they are measured anew",
        file.string());
  } catch (const Error& failure) {
    return fmt::format("the times of kernels are measured anew: {}", failure.what());
  }
}

std::string save_kernel_times(const fs::path& file, const Tuner& tuner) {
  if (file.empty())
    return "the times of kernels are not kept, because neither XDG_CACHE_HOME nor HOME names a folder";
  try {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    const FileDescriptor lock = lock_of(file);
    Tuner all(Tuning::off);
    load_kernel_times(file, all);  // other runs may have written since
    all.add(tuner.to_text(Tuner::Part::own));
    AtomicFile out(file);
    out.write(all.to_text());
    out.commit();
    return {};
  } catch (const Error& failure) {
    return fmt::format("the times of kernels are not kept: {}", failure.what());
  }
}

}  // namespace plexaura
