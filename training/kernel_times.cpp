#include "training/kernel_times.h"

#include <cstdlib>
#include <fmt/format.h>
#include <system_error>

#include "core/error.h"
#include "training/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 64 << 20;

fs::path folder_in(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !fs::path(value).is_absolute()) return {};
  return fs::path(value) / below;
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
    Tuner all(Tuning::off);
    load_kernel_times(file, all);  // other runs may have written since
    all.add(tuner.to_text());
    AtomicFile out(file);
    out.write(all.to_text());
    out.commit();
    return {};
  } catch (const Error& failure) {
    return fmt::format("the times of kernels are not kept: {}", failure.what());
  }
}

}  // namespace plexaura
