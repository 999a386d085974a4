#include "distributed/visiting/server_file.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <string_view>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "core/error.h"

namespace plexaura {

namespace {

constexpr std::size_t most_bytes = 512;  // of a server's file; the name of a host has 255 at most

std::string reason() { return std::generic_category().message(errno); }

std::string name_of_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string place_text(const ServerPlace& place) {
  return fmt::format("{} {} {}\n", place.host, place.port, place.key);
}

// A host may not know its own name.
std::string address_of_host(const std::string& host) { return host == name_of_host() ? "127.0.0.1" : host; }

// A pipe is opened without waiting for whoever would write into it.
int open_to_read(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

// Of a regular file, as much as shows whether a server has written it. Closes it.
std::optional<std::string> take_text(int file) {
  struct stat status {};
  std::array<char, most_bytes> text{};
  const bool is_regular = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = is_regular ? pread(file, text.data(), text.size(), 0) : -1;
  if (file >= 0) close(file);
  if (count < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(count));
}

// None where no line has come to its end.
std::optional<ServerPlace> place_in(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string line = text.substr(0, end);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  if (first == std::string::npos || first == second) return std::nullopt;
  return ServerPlace{.host = line.substr(0, first),
                     .port = std::atoi(line.substr(first + 1, second - first - 1).c_str()),
                     .key = line.substr(second + 1)};
}

bool is_whole(const std::string& text) {
  const auto place = place_in(text);
  return place && place->port > 0 && text == place_text(*place);
}

// What may become whole: a copy of the file may be under way.
bool is_beginning(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_ ";
  return text.size() < most_bytes && text.find_first_not_of(letters) == std::string_view::npos;
}

// Nothing yet, or what a server has left that was killed.
bool is_for_servers(const std::filesystem::path& path) {
  const auto text = take_text(open_to_read(path));
  return text && (text->empty() || is_whole(*text));
}

bool is_connected(int socket, double seconds) {
  pollfd wait{socket, POLLOUT, 0};
  if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

ServerFile::ServerFile(std::filesystem::path path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ < 0)
    throw UserError(
        fmt::format("--serve: '{}' cannot be written: {}; name another file", path_.string(), reason()));
  const bool is_held = flock(file_, LOCK_EX | LOCK_NB) != 0;
  if (!is_held && is_for_servers(path_)) return;
  close(file_);
  if (!is_held)
    throw UserError(fmt::format("--serve: '{}' is there and no server has written it; name a file of its own",
                                path_.string()));
  throw UserError(
      fmt::format("--serve: another server holds '{}'; end it, or name another file", path_.string()));
}

// Where it was removed meanwhile, another server's may stand there.
ServerFile::~ServerFile() {
  std::error_code error;
  const auto is_own = [&] {
    const int there = open_to_read(path_);
    if (there < 0) return false;
    const bool is_locked = flock(there, LOCK_SH | LOCK_NB) != 0;
    close(there);
    return is_locked;
  };
  const bool removes = ftruncate(file_, 0) == 0 && is_own();
  if (removes) std::filesystem::remove(path_, error);
  close(file_);
}

// The end of the line is what says that all is there.
void ServerFile::tell(const ServerPlace& place) {
  const std::string text = place_text(place);
  if (ftruncate(file_, 0) == 0 && pwrite(file_, text.data(), text.size(), 0) == std::ssize(text)) return;
  throw UserError(
      fmt::format("--serve: '{}' cannot be written: {}; name another file", path_.string(), reason()));
}

std::optional<ServerPlace> read_server_file(const std::filesystem::path& path) {
  const auto text = take_text(open_to_read(path));
  return text ? place_in(*text) : std::nullopt;
}

void check_server_file(const std::filesystem::path& path) {
  const int file = open_to_read(path);
  const bool can_be_mended = errno == EACCES || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
  if (file < 0 && !can_be_mended) return;  // it may be there later
  if (file < 0)
    throw UserError(
        fmt::format("--join: '{}' cannot be read: {}; name the file of --serve, and let this "
                    "user read it",
                    path.string(), reason()));
  const auto text = take_text(file);
  if (text && (is_beginning(*text) || is_whole(*text))) return;
  throw UserError(fmt::format("--join: '{}' is no file that a server has written; name the one of --serve",
                              path.string()));
}

std::string make_key() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

int listen_anywhere(ServerPlace& place) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, any, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, any, &size) != 0)
    throw DeviceError(fmt::format("no connection of TCP can be offered to clients: {}", reason()));
  place.host = name_of_host();
  place.port = ntohs(address.sin_port);
  return listener;
}

int connect_to(const ServerPlace& place, double seconds) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address_of_host(place.host).c_str(), std::to_string(place.port).c_str(), &hints, &found) !=
      0)
    return -1;
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool has_begun =
      made >= 0 && (connect(made, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
  freeaddrinfo(found);
  if (has_begun && is_connected(made, seconds)) return made;
  if (made >= 0) close(made);
  return -1;
}

}  // namespace plexaura
