#include "distributed/servers/jobs/server_file.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

// Largest size of a server's file; the name of a host has at most 255 bytes.
constexpr std::size_t most_file_bytes = 512;

std::string reason() { return std::generic_category().message(errno); }

std::string place_text(const ServerPlace& place) {
  return fmt::format("{} {} {}\n", place.host, place.port, place.key);
}

// Opens the file. O_NONBLOCK opens a pipe without waiting for a writer.
FileDescriptor open_to_read(const std::filesystem::path& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

// Returns the beginning of a regular file, which suffices to see if a server has written it. Returns nothing
// for other files.
std::optional<std::string> text_in(const FileDescriptor& file) {
  struct stat status {};
  std::array<char, most_file_bytes> text{};
  const bool is_regular = file.is_there() && fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = is_regular ? pread(file.number(), text.data(), text.size(), 0) : -1;
  if (count < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(count));
}

// Returns the place in the text. Returns nothing if the text has no complete line.
std::optional<ServerPlace> place_in(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string line = text.substr(0, end);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  if (first == std::string::npos || first == second) return std::nullopt;
  const std::string port = line.substr(first + 1, second - first - 1);
  ServerPlace place{.host = line.substr(0, first), .port = 0, .key = line.substr(second + 1)};
  std::from_chars(port.data(), port.data() + port.size(), place.port);
  return place;
}

bool is_whole(const std::string& text) {
  const auto place = place_in(text);
  return place && place->port > 0 && place->port < 65536 && text == place_text(*place);
}

// True for text that may become complete: the file may just be copied to this place.
bool is_beginning(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:% ";
  return text.size() < most_file_bytes && text.find_first_not_of(letters) == std::string_view::npos;
}

// True if the file is empty, or if a killed server may have left its contents.
bool is_for_servers(const FileDescriptor& file) {
  const auto text = text_in(file);
  return text && (text->empty() || is_whole(*text));
}

// Returns the reason why the key must not be written into the file, or an empty text.
std::string danger_of(const FileDescriptor& file) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0) return "cannot be looked at: " + reason();
  if (status.st_uid != geteuid()) return "belongs to another user, who could read the key";
  // A user who has already opened the file could read it even if its rights were changed now.
  if ((status.st_mode & 077) != 0) return "is open to other users, who could read the key";
  return status.st_nlink > 1 ? "has a second name, by which others might read the key" : "";
}

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& what) {
  throw UserError(fmt::format("--serve: '{}' {}", path.string(), what));
}

}  // namespace

ServerFile::ServerFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)) {
  if (!file_.is_there() && errno == ELOOP)
    refuse_file(
        path_,
        "is a link, and the key would be written to the file that it names; name a file that is not a link");
  if (!file_.is_there()) refuse_file(path_, "cannot be written: " + reason() + "; name another file");
  if (flock(file_.number(), LOCK_EX | LOCK_NB) != 0)
    throw UserError(
        fmt::format("--serve: another server uses '{}'; end it, or name another file", path_.string()));
  if (!is_for_servers(file_))
    refuse_file(path_, "exists, but was not written by a server; name another file");
  if (const std::string danger = danger_of(file_); !danger.empty())
    refuse_file(path_, danger + "; remove it, or name another file");
}

// If the file was removed in the meantime, the path may lead to the file of another server, which is not
// removed.
ServerFile::~ServerFile() {
  const auto is_own = [&] {
    const FileDescriptor there = open_to_read(path_);
    return there.is_there() && flock(there.number(), LOCK_SH | LOCK_NB) != 0;
  };
  std::error_code error;
  if (ftruncate(file_.number(), 0) == 0 && is_own()) std::filesystem::remove(path_, error);
}

// Writes the line. Its end shows readers that the file is complete.
void ServerFile::tell(const ServerPlace& place) {
  const std::string text = place_text(place);
  const int file = file_.number();
  if (ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == std::ssize(text)) return;
  refuse_file(path_, "cannot be written: " + reason() + "; name another file");
}

std::optional<ServerPlace> read_server_file(const std::filesystem::path& path) {
  const auto text = text_in(open_to_read(path));
  return text ? place_in(*text) : std::nullopt;
}

void check_server_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_to_read(path);
  const bool can_be_mended = errno == EACCES || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
  if (!file.is_there() && !can_be_mended) return;  // the file may appear later
  if (!file.is_there())
    throw UserError(
        fmt::format("--join: '{}' cannot be read: {}; name the file of --serve, and let this "
                    "user read it",
                    path.string(), reason()));
  const auto text = text_in(file);
  if (text && (is_beginning(*text) || is_whole(*text))) return;
  throw UserError(
      fmt::format("--join: '{}' was not written by a server; name the file of --serve", path.string()));
}

std::string make_key() {
  std::array<unsigned char, 32> bits{};
  if (getrandom(bits.data(), bits.size(), 0) != std::ssize(bits))
    throw DeviceError(fmt::format("this system gives no random numbers for a key: {}", reason()));
  return fmt::format("{:02x}", fmt::join(bits, ""));
}

}  // namespace plexaura
