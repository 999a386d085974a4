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

// The kinds of letters between a server and a client that is a job of its own.
enum class Say : std::uint32_t {
  // Sent by a client:
  ask,    // asks for the facts about the server's samples; answered by `told`
  join,   // brings the client's facts, and its number if it comes back; answered by `welcome` or `refused`
  push,   // brings what the client has learned, or nothing after no steps; answered by `weights` or `refused`
  beat,   // shows that the client is alive; no answer
  leave,  // ends the client's work; no answer
  // Sent by the server:
  told,
  welcome,  // brings all weights
  refused,  // brings a sentence with the reason
  weights   // brings trainable parameters and buffers
};

// The beginning of every letter. `bytes` of content follow it.
struct LineHead {
  // A number that differs on machines with another byte order. Clients of the first protocol send it
  // unencrypted.
  static constexpr std::uint32_t sign = 0x31786c70;  // the letters "plx1"

  std::uint32_t begin = sign;
  Say say = Say::beat;
  std::uint64_t bytes = 0;
  // For welcome and weights: version of the weights; for push: version of the weights with which the client
  // began.
  std::int64_t version = 0;
  std::int64_t number = 0;  // for join and welcome: number of the client, from 1; 0: it has none yet
  std::int64_t steps = 0;   // for push: number of steps since the last push
  // For push: the seconds since the client joined, and the seconds of them in which it waited for the server.
  double elapsed_seconds = 0;
  double waited_seconds = 0;
};

struct LineLetter {
  LineHead head = {};
  std::vector<std::byte> content = {};
};

// The error for a connection whose other end has closed it, does not know the key, or does not follow the
// protocol.
class LineLost final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// One end of a TCP connection. Its calls never block: they send what the system accepts and receive what has arrived.
// Letters are sealed, and none is sent before both ends have proven that they know the key: see Seal. Only the
// refusal of a client of the first protocol is not sealed. MPI cannot connect separate jobs so that one survives the
// death of another: see docs/reference/parameter_servers.md. Only one thread at a time may use a line.
class Line {
 public:
  // `key` is the key in the server's file. A letter with more than `most_bytes` bytes of content makes take()
  // throw LineLost.
  Line(FileDescriptor socket, Seal::Side side, std::string_view key, std::size_t most_bytes);

  int socket() const { return socket_.number(); }
  void take_up_to(std::size_t bytes) { most_bytes_ = bytes; }

  // Continues the proof as far as bytes have arrived. Returns true if both ends have proven that they know
  // the key. Throws LineLost if the connection is lost or the proof is wrong.
  bool prove();
  bool is_proven() const { return awaited_ == Awaited::letters; }
  // True if a client has sent its greeting.
  bool has_greeted() const { return awaited_ != Awaited::greeting; }

  // Seals a copy of the letter; flush() sends it. Called after the proof.
  void post(LineHead head, std::span<const std::byte> content = {});
  // Sends as many bytes as the system accepts now. Returns true if all bytes were sent. Throws LineLost if
  // the connection is lost.
  bool flush();
  bool has_sent_all() const { return leaving_.empty(); }
  // Returns the next letter that has arrived completely. Returns nothing if there is none, and before the
  // proof. Throws LineLost if the connection is lost.
  std::optional<LineLetter> take();
  // Returns the number of bytes which show that the other end is alive. It counts bytes that have arrived. It
  // also counts bytes sent after the system had accepted no more, because the other end had read some by
  // then.
  std::uint64_t moved() const { return moved_; }

 private:
  // The message that this end expects next. A client expects `answer` and `start`, and a server expects
  // `greeting` and `proof`. Letters follow.
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
  std::size_t left_ = 0;         // number of bytes of leaving_.front() that are sent
  std::vector<std::byte> came_;  // bytes of the expected message
  std::size_t filled_ = 0;       // number of these bytes that have arrived
  std::vector<std::byte> chunk_;
  LineLetter arriving_;
  bool has_head_ = false;  // true if the head of arriving_ is complete
  bool is_whole_ = false;  // true if arriving_ is complete
  bool is_full_ = false;   // true if the system accepted no more bytes
  std::uint64_t moved_ = 0;
};

// Waits until bytes have arrived or, if `sends` is true, until bytes can be sent. Waits at most `seconds`.
void await_line(const Line& line, bool sends, double seconds);

std::span<const std::byte> bytes_of(const std::string& text);
std::string text_of(const LineLetter& letter);
// Unpacks a letter whose content pack_facts() made. Throws LineLost for other content.
std::map<std::string, std::string> facts_of(const LineLetter& letter);

}  // namespace plexaura
