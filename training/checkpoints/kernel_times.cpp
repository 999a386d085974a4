#include "training/checkpoints/kernel_times.h"

#include <fmt/format.h>
#include <system_error>

#include "core/base/error.h"
#include "training/files/cache_file.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 64 << 20;

}  // namespace

fs::path kernel_times_file() { return cache_file("kernel_times"); }

std::string load_kernel_times(const fs::path& file, Tuner& tuner) {
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return {};
  try {
    if (tuner.add(read_text_file(file, most_bytes))) return {};
    return fmt::format(
        "the times of kernels in '{}' are damaged, or of another version; they are measured again",
        file.string());
  } catch (const Error& failure) {
    return fmt::format("the times of kernels are measured again: {}", failure.what());
  }
}

std::string save_kernel_times(const fs::path& file, const Tuner& tuner) {
  if (file.empty())
    return "the times of kernels are not kept, because neither XDG_CACHE_HOME nor HOME names a folder";
  try {
    const FileDescriptor lock = lock_cache(file);
    Tuner all(Tuning::off);
    load_kernel_times(file, all);  // reads again: other runs may have written to the file since
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
