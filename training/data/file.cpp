#include "training/data/file.h"

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <system_error>

#include "core/error.h"

namespace plexaura {

namespace {

struct Close {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path, const char* advice) {
  throw UserError(fmt::format("{}: cannot be {}: {}; {}", path.string(), doing,
                              std::generic_category().message(errno), advice));
}

bool write_all(File file, std::span<const std::uint8_t> bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  const int error = errno;
  const bool closed = std::fclose(file.release()) == 0;
  if (!written) errno = error;
  return written && closed;
}

}  // namespace

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  constexpr const char* advice = "check the path and its permissions";
  constexpr std::size_t block = 1 << 16;
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("opened", path, advice);
  std::vector<std::uint8_t> bytes;
  std::error_code unknown_size;
  const auto expected = std::filesystem::file_size(path, unknown_size);
  if (!unknown_size) bytes.reserve(static_cast<std::size_t>(expected) + block);
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + block);
    const std::size_t count = std::fread(bytes.data() + before, 1, block, file.get());
    bytes.resize(before + count);
    if (count < block) break;
  }
  if (std::ferror(file.get()) != 0) fail("read", path, advice);
  return bytes;
}

void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) fail("made", path, "check that its folder exists and may be written to");
  if (write_all(std::move(file), bytes)) return;
  const int error = errno;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  errno = error;
  fail("written", path, "free some space or choose another folder");
}

}  // namespace plexaura
