#include "distributed/visiting/line.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "distributed/texts.h"

namespace plexaura {

namespace {

bool has_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

[[noreturn]] void throw_broken() {
  throw LineLost(fmt::format("the connection broke: {}", std::generic_category().message(errno)));
}

[[noreturn]] void throw_strange() {
  throw LineLost("what came was no letter of a server or its client");
}

}  // namespace

Line::Line(int socket, std::size_t most_bytes) : socket_(socket), most_bytes_(most_bytes) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Line::Line(Line&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      most_bytes_(other.most_bytes_),
      leaving_(std::move(other.leaving_)),
      left_(other.left_),
      arriving_(std::move(other.arriving_)),
      head_filled_(other.head_filled_),
      content_filled_(other.content_filled_),
      is_full_(other.is_full_),
      moved_(other.moved_) {}

Line& Line::operator=(Line&& other) noexcept {
  std::swap(socket_, other.socket_);
  most_bytes_ = other.most_bytes_;
  leaving_ = std::move(other.leaving_);
  left_ = other.left_;
  arriving_ = std::move(other.arriving_);
  head_filled_ = other.head_filled_;
  content_filled_ = other.content_filled_;
  is_full_ = other.is_full_;
  moved_ = other.moved_;
  return *this;
}

Line::~Line() {
  if (socket_ >= 0) close(socket_);
}

void Line::post(LineHead head, std::span<const std::byte> content) {
  head.bytes = content.size();
  std::vector<std::byte>& letter = leaving_.emplace_back(sizeof head + content.size());
  std::memcpy(letter.data(), &head, sizeof head);
  if (!content.empty()) std::memcpy(letter.data() + sizeof head, content.data(), content.size());
}

bool Line::flush() {
  while (!leaving_.empty()) {
    const auto rest = std::span(leaving_.front()).subspan(left_);
    const ssize_t sent = send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && has_to_wait()) {
      is_full_ = true;
      return false;
    }
    if (sent < 0) throw_broken();
    left_ += static_cast<std::size_t>(sent);
    if (is_full_) moved_ += static_cast<std::uint64_t>(sent);
    if (left_ < leaving_.front().size()) continue;
    leaving_.pop_front();
    left_ = 0;
  }
  is_full_ = false;
  return true;
}

// Whether it is whole.
bool Line::fill(std::span<std::byte> whole, std::size_t& filled) {
  while (filled < whole.size()) {
    const ssize_t got = recv(socket_, whole.data() + filled, whole.size() - filled, 0);
    if (got < 0 && has_to_wait()) return false;
    if (got < 0) throw_broken();
    if (got == 0) throw LineLost("the connection was closed");
    filled += static_cast<std::size_t>(got);
    moved_ += static_cast<std::uint64_t>(got);
  }
  return true;
}

std::optional<LineLetter> Line::take() {
  LineHead& head = arriving_.head;
  if (!fill(std::as_writable_bytes(std::span(&head, 1)), head_filled_)) return std::nullopt;
  if (head.begin != LineHead::sign || head.bytes > most_bytes_) throw_strange();
  arriving_.content.resize(head.bytes);
  if (!fill(arriving_.content, content_filled_)) return std::nullopt;
  head_filled_ = content_filled_ = 0;
  return std::exchange(arriving_, {});
}

void await_line(const Line& line, bool sends, double seconds) {
  pollfd wait{line.socket(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0};
  poll(&wait, 1, static_cast<int>(seconds * 1000));
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const LineLetter& letter) {
  return {reinterpret_cast<const char*>(letter.content.data()), letter.content.size()};
}

std::map<std::string, std::string> facts_of(const LineLetter& letter) {
  try {
    return unpack_facts(text_of(letter));
  } catch (const DeviceError&) {
    throw_strange();
  }
}

}  // namespace plexaura
