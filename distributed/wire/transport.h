#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"

namespace plexaura {

// A message on its way. A plain value that only the transport which made it understands.
struct Request {
  std::uint64_t handle = 0;
};

// A message that waits to be received.
struct Envelope {
  int from = 0;
  std::size_t bytes = 0;
};

// The bytes of a plain value.
template <class T>
std::span<std::byte> as_message(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&value, 1));
}

// Messages between ranks, and nothing more: what `Communicator` needs of MPI (or of threads, in tests).
// Messages of one sender and tag arrive in the order in which they were sent. One thread at a time may use an
// object; two objects, even duplicates of each other, may be used by two threads. Errors of the library come
// as DeviceError.
class Transport {
 public:
  virtual ~Transport();

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Begin to send or to receive. The memory must stay untouched until done() has answered true. A message
  // longer than the receiver's memory is an error; a shorter one fills only its beginning.
  Request send(std::span<const std::byte> data, int to, int tag) {
    bytes_sent_ += static_cast<std::int64_t>(data.size());
    return begin_send(data, to, tag);
  }
  virtual Request receive(std::span<std::byte> data, int from, int tag) = 0;

  // Of all messages that were sent with this object.
  std::int64_t bytes_sent() const { return bytes_sent_; }

  // Whether the message has arrived (or left); makes progress, never waits. Not to be asked again after true.
  virtual bool done(Request& request) = 0;

  // Of a message that nobody waits for any more: keeps its memory as long as it may be read or written. Nothing
  // is cancelled, for that may wait for a sender that is dead.
  virtual void keep(const Request& request, std::shared_ptr<const void> memory) = 0;
  void keep(const Request& request, std::vector<std::byte> memory) {
    keep(request, std::make_shared<const std::vector<std::byte>>(std::move(memory)));
  }
  // Throws UserError for a message that is too long to be sent.
  static void check_length(std::size_t bytes);

  // The next message of this sender (or of `anyone`) and tag, if one is waiting to be received.
  static constexpr int anyone = -1;
  virtual std::optional<Envelope> waiting(int from, int tag) = 0;

  // The same ranks with messages of their own; the ranks of the same colour, in the order of ranks. Every
  // rank must call at the same point, and may block until all have: callers make sure that all are there.
  virtual std::unique_ptr<Transport> duplicate() = 0;
  virtual std::unique_ptr<Transport> split(int colour) = 0;

  // Whether the library outlives ranks that die: it knows which have, and the others can go on.
  virtual bool outlives_ranks() const { return false; }
  // The ranks that this process knows to be dead, ascending; none where the library does not outlive ranks. Messages
  // from and to them never end.
  virtual std::vector<int> dead() { return {}; }

  // Where the library outlives ranks: those on machines that have not answered for a second or two, although they were sent
  // something, are dead for it soon.
  virtual void drop_silent_links() {}

  // Where a call of the library blocks for too long: what may bring it to an end, on a thread of its own.
  virtual void when_stuck(const std::function<void()>&) {}

  // The ranks that are left without the lost ones, in the order of ranks. To be called by all that are left, at
  // the same point; this transport may be abandoned, and the new one is not. Where the library outlives ranks, those
  // are left that live, whoever is named as lost, and it may be called again when more have died. `deadline_seconds`: how
  // long the others may need to come.
  virtual std::unique_ptr<Transport> without(std::span<const int> lost, double deadline_seconds) = 0;

  // Where the library outlives ranks: whether all that live bring `yes`. All of them call it together, also after deaths, and get
  // the same answer whoever dies meanwhile.
  virtual bool agree(bool yes, double /*deadline_seconds*/) { return yes; }

  // The library's own sum over all ranks, in place, of a type that check_summable() takes. Blocks; where it never ends,
  // because a rank is lost, it may end the process with a sentence instead of throwing.
  virtual void all_reduce(DType dtype, std::byte* data, std::int64_t count) = 0;

  // A rank was lost or the ranks disagree: messages may be left unfinished, and closing down must not wait
  // for anyone. Holds for all duplicates and splits, too.
  virtual void abandon() noexcept = 0;
  virtual bool abandoned() const noexcept = 0;

 private:
  virtual Request begin_send(std::span<const std::byte> data, int to, int tag) = 0;

  std::int64_t bytes_sent_ = 0;
};

// The transport of a program that runs alone. There is nobody to send to.
std::unique_ptr<Transport> make_lone_transport();

}  // namespace plexaura
