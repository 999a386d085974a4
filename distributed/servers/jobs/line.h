#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "distributed/seal/seal.h"

namespace plexaura {

// What a server and a client that is a job of its own say to each other.
enum class Say : std::uint32_t {
  // From the client.
  ask,    // how samples of the server are: answered by `told`
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
  // Another order of bytes gives another one. The first build of Plexaura sends it in the clear.
  static constexpr std::uint32_t sign = 0x31786c70;  // "plx1"

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

// The other end has gone, does not know the key, or says what no Plexaura says.
class LineLost final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// One end of a connection of TCP, which never blocks: letters leave and arrive as far as the system takes and has them. They are
// sealed, and none travels before both ends have proven that they know the key: see Seal. MPI has no way for jobs of their
// own that stands a client's death: see docs/reference/parameter_servers.md. One thread at a time.
class Line {
 public:
  // `key`: that of the server's file. Letters with more than `most_bytes` of content are refused as LineLost.
  Line(FileDescriptor socket, Seal::Side side, std::string_view key, std::size_t most_bytes);

  int socket() const { return socket_.number(); }
  void take_up_to(std::size_t bytes) { most_bytes_ = bytes; }

  // Goes on with the proof as far as bytes have come. Whether both ends have proven that they know the key. Throws LineLost.
  bool prove();
  bool is_proven() const { return awaited_ == Awaited::letters; }
  // Whether a client has sent what may become a proof.
  bool has_greeted() const { return awaited_ != Awaited::greeting; }

  // Behind the proof. Seals a copy of the letter; flush() sends it.
  void post(LineHead head, std::span<const std::byte> content = {});
  // Sends what the system takes now. Whether all has left. Throws LineLost.
  bool flush();
  bool has_sent_all() const { return leaving_.empty(); }
  // The next letter that has come whole, behind the proof. Throws LineLost.
  std::optional<LineLetter> take();
  // Bytes that the other end is known to have moved so far: those that came, and those for which it made room while the system took
  // no more.
  std::uint64_t moved() const { return moved_; }

 private:
  // What comes next, in the order in which it comes: `answer` and `start` to a client, `greeting` and `proof` to a server.
  enum class Awaited { greeting, proof, answer, start, letters };

  std::size_t size_of_awaited() const;
  bool fill(std::size_t size);
  void send_bytes(std::initializer_list<std::span<const std::byte>> parts);
  void take_step_of_proof();
  void answer_greeting();
  void check_proof(const Seal::Block& proof);
  [[noreturn]] void refuse_first_build();
  void post_chunk(std::span<const std::byte> chunk, bool is_last);
  bool take_chunk();
  void take_in(std::span<const std::byte> chunk, bool is_last);

  FileDescriptor socket_;
  Seal::Side side_;
  std::size_t most_bytes_;
  std::unique_ptr<Seal> seal_;
  Awaited awaited_;
  std::deque<std::vector<std::byte>> leaving_;
  std::size_t left_ = 0;         // bytes of the first of them
  std::vector<std::byte> came_;  // of what is awaited
  std::size_t filled_ = 0;       // bytes of that
  std::vector<std::byte> chunk_;
  LineLetter arriving_;
  bool has_head_ = false;  // of the letter that arrives
  bool is_whole_ = false;  // that letter
  bool is_full_ = false;   // the system took no more of what is leaving
  std::uint64_t moved_ = 0;
};

// Waits until a letter may have come, or, where `sends`, something can leave; so long at most.
void await_line(const Line& line, bool sends, double seconds);

std::span<const std::byte> bytes_of(const std::string& text);
std::string text_of(const LineLetter& letter);
// Of a letter whose content pack_facts() made. Throws LineLost where it is none.
std::map<std::string, std::string> facts_of(const LineLetter& letter);

}  // namespace plexaura
