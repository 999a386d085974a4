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

// A message that is being sent or received. A plain value that only the transport that made it understands.
struct Request {
  std::uint64_t handle = 0;
};

// A message that has arrived and waits to be received.
struct Envelope {
  int from = 0;
  std::size_t bytes = 0;
};

// Returns the bytes of a plain value.
template <class T>
std::span<std::byte> as_message(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&value, 1));
}

// Messages between ranks: all that `Communicator` needs of MPI (or of threads, in tests). Messages of one
// sender and tag arrive in the order in which they were sent. One thread at a time may use an object;
// different objects, even duplicates of each other, may be used by different threads. Errors of the library
// are thrown as DeviceError.
class Transport {
 public:
  virtual ~Transport();

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Begin to send or to receive. The memory must not be touched until done() has returned true. A message
  // longer than the receiver's memory is an error; a shorter one fills only the beginning.
  virtual Request send(std::span<const std::byte> data, int to, int tag) = 0;
  virtual Request receive(std::span<std::byte> data, int from, int tag) = 0;

  // Returns the size of all messages that were sent with this object.
  std::int64_t bytes_sent() const { return bytes_sent_; }

  // True if the message has arrived (or left). Makes progress, and never waits. Must not be called again
  // after true.
  virtual bool done(Request& request) = 0;

  // For a message that nobody waits for any more: keeps its memory as long as it may be read or written. The
  // message is not cancelled, because that may wait for a dead sender.
  virtual void keep(const Request& request, std::shared_ptr<const void> memory) = 0;
  void keep(const Request& request, std::vector<std::byte> memory) {
    keep(request, std::make_shared<const std::vector<std::byte>>(std::move(memory)));
  }
  // Throws UserError for a message that is too long to be sent.
  static void check_length(std::size_t bytes);

  // Returns the next message of this sender (or of `anyone`) and tag if one waits to be received.
  static constexpr int anyone = -1;
  virtual std::optional<Envelope> waiting(int from, int tag) = 0;

  // duplicate() returns a transport of the same ranks with separate messages. split() returns a transport of
  // the ranks that pass the same colour, in the order of ranks. Every rank must call at the same point. The
  // call may block until all ranks have called, so callers first make sure that all ranks are there.
  virtual std::unique_ptr<Transport> duplicate() = 0;
  virtual std::unique_ptr<Transport> split(int colour) = 0;

  // True if the library survives the death of ranks: it knows which ranks are dead, and the other ranks can
  // continue.
  virtual bool outlives_ranks() const { return false; }
  // Returns the ranks that this process knows to be dead, in ascending order; none if the library does not
  // outlive ranks. Messages from and to them never complete.
  virtual std::vector<int> dead() { return {}; }

  // If the library outlives ranks: marks ranks as dead if data was sent to their machines and these have not
  // answered for a second or two.
  virtual void drop_silent_links() {}

  // Sets a function that is called on another thread if a call of the library blocks for too long. It tries
  // to let the call return.
  virtual void when_stuck(const std::function<void()>&) {}

  // Returns a transport of the ranks that are left after `lost`, in the order of ranks. All ranks that are
  // left call it at the same point. This transport may have been abandoned; the new one is not. If the
  // library outlives ranks, the ranks that are left are those that live, whatever `lost` names, and it may be
  // called again after more deaths. `deadline_seconds` is the time to wait for the other ranks.
  virtual std::unique_ptr<Transport> without(std::span<const int> lost, double deadline_seconds) = 0;

  // If the library outlives ranks: returns true if all living ranks pass `yes`. They all call it together,
  // also after deaths, and get the same answer whichever ranks die meanwhile.
  virtual bool agree(bool yes, double /*deadline_seconds*/) { return yes; }

  // Computes the library's own sum over all ranks, in place, of a type that check_summable() accepts. Blocks.
  // If a rank is lost, the call may never end; the process may then end with a message instead of an
  // exception.
  virtual void all_reduce(DType dtype, std::byte* data, std::int64_t count) = 0;

  // Called if a rank was lost or the ranks disagree: messages may stay unfinished, and closing must not wait
  // for other ranks. Applies to all duplicates and splits too.
  virtual void abandon() noexcept = 0;
  virtual bool abandoned() const noexcept = 0;

 protected:
  // Adds to bytes_sent(). Called by send().
  void count_sent(std::size_t bytes) { bytes_sent_ += static_cast<std::int64_t>(bytes); }

 private:
  std::int64_t bytes_sent_ = 0;
};

// Returns the transport of a program that runs alone and has no rank to send to.
std::unique_ptr<Transport> make_lone_transport();

}  // namespace plexaura
