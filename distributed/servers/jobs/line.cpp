#include "distributed/servers/jobs/line.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

#include "distributed/wire/texts.h"

namespace plexaura {

namespace {

constexpr std::array greeting_sign{std::byte{'p'}, std::byte{'l'}, std::byte{'x'}, std::byte{'2'}};
// Bytes of a chunk of a letter, before it is sealed.
constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
constexpr std::size_t length_bytes = 4;  // bytes of the length before a sealed chunk, which is little-endian

bool has_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

[[noreturn]] void throw_broken() {
  throw LineLost(fmt::format("the connection broke: {}", std::generic_category().message(errno)));
}

[[noreturn]] void throw_strange() {
  throw LineLost("the bytes that came were not a letter of a server or its client");
}

template <class Array>
Array array_at(std::span<const std::byte> bytes) {
  Array array;
  std::memcpy(array.data(), bytes.data(), array.size());
  return array;
}

void write_length(std::size_t length, std::span<std::byte> to) {
  for (std::size_t i = 0; i < length_bytes; ++i) to[i] = static_cast<std::byte>(length >> (8 * i));
}

std::size_t length_at(std::span<const std::byte> bytes) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::size_t>(bytes[i]) << (8 * i);
  return length;
}

}  // namespace

Line::Line(FileDescriptor socket, Seal::Side side, std::string_view key, std::size_t most_bytes)
    : socket_(std::move(socket)),
      side_(side),
      most_bytes_(most_bytes),
      seal_(make_seal(side, key)),
      awaited_(side == Seal::Side::client ? Awaited::answer : Awaited::greeting) {
  if (!seal_) throw LineLost("the file of the server contains no key of this build");
  fcntl(this->socket(), F_SETFL, fcntl(this->socket(), F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(this->socket(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (side == Seal::Side::client) send_bytes({greeting_sign, seal_->public_key()});
}

void Line::send_bytes(std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte>& bytes = leaving_.emplace_back();
  for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
}

std::size_t Line::size_of_awaited() const {
  switch (awaited_) {
    case Awaited::greeting:
      return greeting_sign.size() + sizeof(Seal::Block);
    case Awaited::proof:
      return sizeof(Seal::Block) + sizeof(Seal::Start);
    case Awaited::answer:
      return 2 * sizeof(Seal::Block);
    case Awaited::start:
      return sizeof(Seal::Start);
    case Awaited::letters:
      break;
  }
  return 0;
}

bool Line::prove() {
  if (is_proven()) return true;
  while (!is_proven()) {
    if (!fill(size_of_awaited())) break;
    take_step_of_proof();
    filled_ = 0;
    came_.clear();
  }
  flush();
  return is_proven();
}

// Takes the next message of the proof. docs/guide/security.md lists these messages.
void Line::take_step_of_proof() {
  const std::span<const std::byte> came = came_;
  switch (awaited_) {
    case Awaited::greeting:
      return answer_greeting();
    case Awaited::answer:
      if (!seal_->meet(array_at<Seal::Block>(came))) throw_strange();
      check_proof(array_at<Seal::Block>(came.subspan(sizeof(Seal::Block))));
      send_bytes({seal_->proof(), seal_->start_sealing()});
      awaited_ = Awaited::start;
      return;
    case Awaited::proof:
      check_proof(array_at<Seal::Block>(came));
      seal_->start_opening(array_at<Seal::Start>(came.subspan(sizeof(Seal::Block))));
      send_bytes({seal_->start_sealing()});
      awaited_ = Awaited::letters;
      return;
    case Awaited::start:
      seal_->start_opening(array_at<Seal::Start>(came));
      awaited_ = Awaited::letters;
      return;
    case Awaited::letters:
      return;
  }
}

void Line::answer_greeting() {
  const std::span<const std::byte> came = came_;
  if (length_at(came) == LineHead::sign) refuse_first_build();
  if (!std::ranges::equal(came.first(greeting_sign.size()), greeting_sign)) throw_strange();
  if (!seal_->meet(array_at<Seal::Block>(came.subspan(greeting_sign.size())))) throw_strange();
  send_bytes({seal_->public_key(), seal_->proof()});
  awaited_ = Awaited::proof;
}

void Line::check_proof(const Seal::Block& proof) {
  if (!seal_->is_proven_by(proof)) throw LineLost("it does not know the key");
}

// Refuses a client of the first protocol, which reads an unencrypted letter. Its message is read first,
// because otherwise the system would discard the answer.
void Line::refuse_first_build() {
  const std::string sentence =
      "the server is of a later build of Plexaura, which keeps letters secret; build this client from the "
      "same "
      "sources";
  const LineHead head{.say = Say::refused, .bytes = sentence.size()};
  std::array<std::byte, 256> rest{};
  recv(socket(), rest.data(), rest.size(), MSG_DONTWAIT);
  send_bytes({std::as_bytes(std::span(&head, 1)), bytes_of(sentence)});
  flush();
  shutdown(socket(), SHUT_WR);
  throw LineLost("it is of an earlier build of Plexaura; build it from the same sources as the server");
}

void Line::post(LineHead head, std::span<const std::byte> content) {
  head.bytes = content.size();
  chunk_.resize(std::min(sizeof head + content.size(), chunk_bytes));
  std::memcpy(chunk_.data(), &head, sizeof head);
  const std::size_t with_head = chunk_.size() - sizeof head;
  if (with_head > 0) std::memcpy(chunk_.data() + sizeof head, content.data(), with_head);
  content = content.subspan(with_head);
  post_chunk(chunk_, content.empty());
  while (!content.empty()) {
    const auto chunk = content.first(std::min(content.size(), chunk_bytes));
    content = content.subspan(chunk.size());
    post_chunk(chunk, content.empty());
  }
}

void Line::post_chunk(std::span<const std::byte> chunk, bool is_last) {
  const std::size_t sealed_bytes = chunk.size() + Seal::bytes_added;
  std::vector<std::byte>& sealed = leaving_.emplace_back(length_bytes + sealed_bytes);
  write_length(sealed_bytes, sealed);
  seal_->seal(chunk, is_last, std::span(sealed).subspan(length_bytes));
}

bool Line::flush() {
  while (!leaving_.empty()) {
    const auto rest = std::span(leaving_.front()).subspan(left_);
    const ssize_t sent = send(socket(), rest.data(), rest.size(), MSG_NOSIGNAL);
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

// Returns true if `size` bytes of the expected message have arrived.
bool Line::fill(std::size_t size) {
  if (came_.size() < size) came_.resize(size);
  while (filled_ < size) {
    const ssize_t got = recv(socket(), came_.data() + filled_, size - filled_, 0);
    if (got < 0 && has_to_wait()) return false;
    if (got < 0) throw_broken();
    if (got == 0) throw LineLost("the connection was closed");
    filled_ += static_cast<std::size_t>(got);
    moved_ += static_cast<std::uint64_t>(got);
  }
  return true;
}

std::optional<LineLetter> Line::take() {
  if (!prove()) return std::nullopt;
  while (take_chunk()) {
    if (!std::exchange(is_whole_, false)) continue;
    has_head_ = false;
    return std::exchange(arriving_, {});
  }
  return std::nullopt;
}

// Returns true if a chunk has arrived.
bool Line::take_chunk() {
  if (!fill(length_bytes)) return false;
  const std::size_t sealed_bytes = length_at(came_);
  if (sealed_bytes <= Seal::bytes_added || sealed_bytes > chunk_bytes + Seal::bytes_added) throw_strange();
  if (!fill(length_bytes + sealed_bytes)) return false;
  filled_ = 0;
  chunk_.resize(sealed_bytes - Seal::bytes_added);
  const Seal::Opened opened =
      seal_->open(std::span(came_).subspan(length_bytes, sealed_bytes), std::span(chunk_));
  if (opened == Seal::Opened::no)
    throw LineLost("the bytes that came were changed on the way, or belong to another connection");
  take_in(chunk_, opened == Seal::Opened::last);
  return true;
}

// Adds a chunk to the arriving letter. All chunks of a letter but the last one must be full: endless empty
// chunks would keep this end busy.
void Line::take_in(std::span<const std::byte> chunk, bool is_last) {
  LineHead& head = arriving_.head;
  std::vector<std::byte>& content = arriving_.content;
  if (!is_last && chunk.size() != chunk_bytes) throw_strange();
  if (!has_head_) {
    if (chunk.size() < sizeof head) throw_strange();
    std::memcpy(&head, chunk.data(), sizeof head);
    if (head.begin != LineHead::sign || head.bytes > most_bytes_) throw_strange();
    chunk = chunk.subspan(sizeof head);
    has_head_ = true;
  }
  const std::size_t size = content.size() + chunk.size();
  if (size > head.bytes || (is_last && size != head.bytes)) throw_strange();
  // Reserves at most about twice as much memory as bytes have arrived.
  if (size > content.capacity()) content.reserve(std::min<std::size_t>(head.bytes, 2 * size));
  content.insert(content.end(), chunk.begin(), chunk.end());
  is_whole_ = is_last;
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
