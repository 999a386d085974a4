#include "tests/distributed/servers/jobs/storm.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "distributed/servers/jobs/line.h"
#include "distributed/servers/jobs/visited_server.h"
#include "distributed/wire/texts.h"
#include "tests/distributed/servers/jobs/served.h"

namespace plexaura::testing {

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t most_sent = std::size_t{1} << 15;  // bytes, few enough for a socket to take at once
constexpr std::size_t weight_bytes = 12;                 // of trainable parameters and buffers

// Turns bytes into decisions and contents. After the last byte, all are 0.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool are_over() const { return rest_.empty(); }
  std::size_t one_of(std::size_t count) { return static_cast<std::size_t>(take(1)[0]) % count; }
  Bytes take(std::size_t count) {
    Bytes taken(count);
    const std::size_t there = std::min(count, rest_.size());
    std::copy_n(rest_.begin(), there, taken.begin());
    rest_ = rest_.subspan(there);
    return taken;
  }
  Bytes take_some() { return take(std::min(rest_.size(), one_of(256) * (one_of(8) == 0 ? 128 : 1))); }
  template <class T>
  T number(std::initializer_list<T> remarkable) {
    const std::size_t which = one_of(remarkable.size() + 1);
    if (which < remarkable.size()) return remarkable.begin()[which];
    T number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }

 private:
  std::span<const std::byte> rest_;
};

std::int64_t whole_number(Choices& choices) {
  using Limits = std::numeric_limits<std::int64_t>;
  return choices.number<std::int64_t>({0, 1, 2, -1, 1 << 20, Limits::max(), Limits::min()});
}

double seconds_in(Choices& choices) {
  using Limits = std::numeric_limits<double>;
  return choices.number<double>({0, 1, -1, Limits::infinity(), Limits::quiet_NaN(), Limits::max()});
}

LineHead head_in(Choices& choices) {
  LineHead head;
  head.say = static_cast<Say>(choices.one_of(12));
  if (choices.one_of(16) == 0) head.begin = 0;
  head.version = whole_number(choices);
  head.number = whole_number(choices);
  head.steps = whole_number(choices);
  head.elapsed_seconds = seconds_in(choices);
  head.waited_seconds = seconds_in(choices);
  return head;
}

// Returns contents of a letter, valid or nearly valid.
Bytes content_in(Choices& choices) {
  const std::string facts = pack_facts(Served::facts());
  const auto all = bytes_of(facts);
  Bytes content(all.begin(), all.end());
  switch (choices.one_of(6)) {
    case 0:
      return {};
    case 1:
      return content;
    case 2:
      content[choices.one_of(content.size())] = choices.take(1)[0];
      return content;
    case 3:
      return choices.take(weight_bytes);
    case 4:
      return choices.take(choices.one_of(40));
    default:
      return choices.take_some();
  }
}

Bytes laid_out(const LineHead& head, std::span<const std::byte> content) {
  Bytes letter(sizeof head);
  std::memcpy(letter.data(), &head, sizeof head);
  letter.insert(letter.end(), content.begin(), content.end());
  return letter;
}

// Returns a letter as Line sends it, with the changes that the choices make.
Bytes letter_in(Choices& choices) {
  LineHead head = head_in(choices);
  const Bytes content = content_in(choices);
  head.bytes =
      choices.one_of(8) == 0 ? choices.number<std::uint64_t>({0, 1, ~std::uint64_t{0}}) : content.size();
  Bytes letter = laid_out(head, content);
  if (choices.one_of(16) == 0) letter.resize(choices.one_of(letter.size()) + 1);
  return letter;
}

}  // namespace

class Storm::Work {
 public:
  explicit Work(const std::filesystem::path& folder)
      : server_(folder / "server", Served::form(2), Bytes(16), options(),
                silent_host([this] { return !is_under_way(); })) {}

  void send(std::span<const std::byte> bytes) {
    Choices choices(bytes.first(std::min(bytes.size(), most_sent)));
    switch (choices.one_of(8)) {
      case 0:
        return read_texts(choices);
      case 1:
        return read_as_client(choices);
      case 2:
        return send_as_stranger(choices);
      default:
        return send_with_key(choices);
    }
  }

  bool serves() {
    const std::string facts = pack_facts(Served::facts());
    const Bytes weights(weight_bytes);
    connect();
    auto seal = prove();
    send_letter(*seal, {.say = Say::join}, bytes_of(facts));
    send_letter(*seal, {.say = Say::push, .steps = 1}, weights);
    send_letter(*seal, {.say = Say::leave}, {});
    finish();
    // The start of a stream and two letters have arrived: all weights after joining, and the shared ones
    // after the push.
    constexpr std::size_t around = 4 + Seal::bytes_added + sizeof(LineHead);
    return answered_.size() == sizeof(Seal::Start) + 2 * around + 16 + weight_bytes;
  }

 private:
  static VisitedServerOptions options() {
    return {.clients = std::numeric_limits<int>::max(), .deadline_seconds = 3600, .facts = {{"model", "a"}}};
  }

  void read_texts(Choices& choices) {
    const Bytes bytes = choices.take_some();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
      unpack(text);
      unpack_facts(text);
    } catch (const DeviceError&) {
      return;
    }
  }

  // Reads as a client from an impostor's connection.
  void read_as_client(Choices& choices) {
    std::array<int, 2> ends{};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data());
    const FileDescriptor far(ends[1]);
    Line line(FileDescriptor{ends[0]}, Seal::Side::client, server_.place().key, 1 << 10);
    write_all(far, choices.take_some());
    try {
      line.take();
    } catch (const LineLost&) {
      return;
    }
  }

  void send_as_stranger(Choices& choices) {
    connect();
    if (choices.one_of(2) == 0) write_all(end_, bytes_of("plx2"));
    while (!choices.are_over()) write_all(end_, choices.take_some());
    finish();
  }

  void send_with_key(Choices& choices) {
    connect();
    auto seal = prove();
    if (choices.one_of(4) > 0) send_letter(*seal, {.say = Say::join}, bytes_of(pack_facts(Served::facts())));
    while (!choices.are_over()) {
      const Bytes letter = letter_in(choices);
      send_chunk(*seal, letter, choices.one_of(32) > 0);
      if (choices.one_of(32) == 0) write_all(end_, choices.take_some());
    }
    finish();
  }

  void connect() {
    std::array<int, 2> ends{};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data());
    end_ = FileDescriptor(ends[0]);
    answered_.clear();
    server_.receive(FileDescriptor(ends[1]), "a storm");
  }

  // Does a client's part of the proof by the rules.
  std::unique_ptr<Seal> prove() {
    auto seal = make_seal(Seal::Side::client, server_.place().key);
    write_all(end_, bytes_of("plx2"));
    write_all(end_, seal->public_key());
    turns_ = 1;
    server_.serve();
    Seal::Block theirs{};
    read_answers();
    std::memcpy(theirs.data(), answered_.data(), std::min(theirs.size(), answered_.size()));
    answered_.clear();
    seal->meet(theirs);
    write_all(end_, seal->proof());
    write_all(end_, seal->start_sealing());
    return seal;
  }

  void send_letter(Seal& seal, LineHead head, std::span<const std::byte> content) {
    head.bytes = content.size();
    send_chunk(seal, laid_out(head, content), true);
  }

  void send_chunk(Seal& seal, const Bytes& chunk, bool is_last) {
    const std::size_t size = chunk.size() + Seal::bytes_added;
    Bytes sealed(4 + size);
    for (std::size_t i = 0; i < 4; ++i) sealed[i] = static_cast<std::byte>(size >> (8 * i));
    seal.seal(chunk, is_last, std::span(sealed).subspan(4));
    write_all(end_, sealed);
  }

  static void write_all(const FileDescriptor& to, std::span<const std::byte> bytes) {
    ::send(to.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // Closes the sending side, and lets the server work until it has noticed.
  void finish() {
    shutdown(end_.number(), SHUT_WR);
    turns_ = 10'000;
    server_.serve();
    end_ = FileDescriptor();
  }

  // Returns true while the server has not closed the connection. Called before each turn of the server.
  bool is_under_way() { return turns_-- > 0 && !read_answers(); }

  // Reads the server's answers. Returns true if the stream has ended.
  bool read_answers() {
    std::array<std::byte, 1 << 12> next{};
    while (true) {
      const ssize_t got = recv(end_.number(), next.data(), next.size(), 0);
      if (got <= 0) return got == 0 || errno != EAGAIN;
      answered_.insert(answered_.end(), next.begin(), next.begin() + got);
    }
  }

  VisitedServer server_;
  FileDescriptor end_;
  Bytes answered_;
  int turns_ = 0;
};

Storm::Storm(const std::filesystem::path& folder) : work_(std::make_unique<Work>(folder)) {}

Storm::~Storm() = default;

void Storm::send(std::span<const std::byte> bytes) { work_->send(bytes); }

bool Storm::serves() { return work_->serves(); }

}  // namespace plexaura::testing
