#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace plexaura {

// What a server and a client that is a job of its own say to each other.
enum class Say : std::uint32_t {
  // From the client.
  ask,    // brings the key of the server's file, and asks how its samples are: answered by `told`
  join,   // brings its facts, and its number if it comes back: answered by `welcome` or `refused`
  push,   // what it has learned; where it has made no steps, nothing: answered by `weights` or `refused`
  beat,   // that it is alive; no answer
  leave,  // its work is over; no answer
  // From the server.
  told,
  welcome,  // all weights
  refused,  // with a sentence
  weights   // trainables and buffers
};

// The beginning of every letter. `bytes` of content follow it.
struct LineHead {
  static constexpr std::uint32_t sign =
      0x31786c70;  // "plx1"; another order of bytes, or another program, gives another one

  std::uint32_t begin = sign;
  Say say = Say::beat;
  std::uint64_t bytes = 0;
  std::int64_t version = 0;  // welcome and weights: theirs; push: that of the weights it began with
  std::int64_t number = 0;   // join and welcome: of the client, from 1; 0: it has none yet
  std::int64_t steps = 0;    // push: in which it learned
  double elapsed_seconds =
      0;  // push: of the client, since it has joined; and of that what it waited for the server
  double waited_seconds = 0;
};

struct LineLetter {
  LineHead head = {};
  std::vector<std::byte> content = {};
};

// The other end has gone, or says what no Plexaura says.
class LineLost final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// One end of a connection of TCP, which never blocks: letters leave and arrive as far as the system takes and has them.
// MPI has no way for jobs of their own that stands a client's death: see docs/parameter_servers.md. One thread at a time.
class Line {
 public:
  // Takes the socket of a connection. Letters with more than `most_bytes` of content are refused as LineLost.
  Line(int socket, std::size_t most_bytes);
  Line(Line&& other) noexcept;
  Line& operator=(Line&& other) noexcept;
  ~Line();

  int socket() const { return socket_; }
  void take_up_to(std::size_t bytes) { most_bytes_ = bytes; }

  // Copies the letter; flush() sends it.
  void post(LineHead head, std::span<const std::byte> content = {});
  // Sends what the system takes now. Whether all has left. Throws LineLost.
  bool flush();
  // The next letter that has come whole. Throws LineLost.
  std::optional<LineLetter> take();
  // Bytes that the other end is known to have moved so far: those that came, and those for which it made room while the system took
  // no more.
  std::uint64_t moved() const { return moved_; }

 private:
  bool fill(std::span<std::byte> whole, std::size_t& filled);

  int socket_;
  std::size_t most_bytes_;
  std::deque<std::vector<std::byte>> leaving_;
  std::size_t left_ = 0;  // bytes of the first of them
  LineLetter arriving_;
  std::size_t head_filled_ = 0;
  std::size_t content_filled_ = 0;
  bool is_full_ = false;  // the system took no more of what is leaving
  std::uint64_t moved_ = 0;
};

// Waits until a letter may have come, or, where `sends`, something can leave; so long at most.
void await_line(const Line& line, bool sends, double seconds);

std::span<const std::byte> bytes_of(const std::string& text);
std::string text_of(const LineLetter& letter);
// Of a letter whose content pack_facts() made. Throws LineLost where it is none.
std::map<std::string, std::string> facts_of(const LineLetter& letter);

}  // namespace plexaura
