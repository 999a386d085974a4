#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/rank_lost.h"
#include "distributed/failure/alarm.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"
#include "distributed/wire/wait.h"

namespace plexaura {

struct Letter {
  int from = 0;
  std::vector<std::byte> bytes;
};

enum class Posted {
  sent,  // the letter was sent; whether it arrives is not reported
  full,  // the letter was not sent, because the receiver has not taken earlier letters
  lost   // the letter was not sent, because the receiver is dead
};

// Letters between ranks that make no calls together: a rank posts a letter to any rank, and takes letters
// that have come from any rank. It belongs to a communicator and has the same ranks. The death of a rank is a
// status here, and an error only in take_from_living(). Only ranks of the same machine notice that a process is dead.
// One thread at a time may use it.
class Mailbox {
 public:
  // Users call Communicator::mailbox() instead. A letter that has begun to arrive is dropped if it is not
  // complete after `deadline_seconds`.
  Mailbox(std::unique_ptr<Transport> transport, const Topology& topology, std::shared_ptr<Alarm> alarm,
          double deadline_seconds);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Copies the bytes and returns at once. At most `most_bytes` may be under way to a rank, not counting the
  // longest letter. So short letters can leave while a long one is under way.
  Posted post(int to, int tag, std::span<const std::byte> bytes);
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;

  // Waits for the next letter with this tag from any rank. Returns nothing if none is complete within
  // `seconds`. Letters with one sender and one tag come in the order in which they were posted, and do not
  // delay those of other senders. Throws an Error (see speaks()) if the run ends meanwhile.
  std::optional<Letter> take(int tag, double seconds);

  // Returns the next letter with this tag that is complete now, or nothing. Does not notice that a rank has
  // died or that the run ends.
  std::optional<Letter> take_arrived(int tag);

  // Lets letters leave, and letters with this tag arrive, up to `most_arriving` that nobody has taken. It
  // serves a thread that only drives letters, while other threads post and take them. Does not notice that a
  // rank has died or that the run ends. Returns true if letters are still under way.
  bool drive(int tag, std::int64_t most_arriving);

  // Waits as take() does, for a rank that cannot continue without the other ranks. Throws a RankLost if a rank has died
  // that spare() did not name. Returns the next letter with any of these tags. If several letters have come, returns one
  // with the earliest tag in the list. `what` names the expected letter in errors.
  std::optional<Letter> take_from_living(std::span<const int> tags, double seconds, std::string_view what);
  std::optional<Letter> take_from_living(int tag, double seconds, std::string_view what) {
    return take_from_living(std::span(&tag, 1), seconds, what);
  }
  // Ends the run because the letter, or the room for a letter, that `what` names did not come within `seconds`.
  // Throws a RankLost that names the ranks that do not answer, or another Error if all answer.
  [[noreturn]] void give_up(double seconds, std::string_view what);
  // Returns the ranks that a RankLost names, numbered as in this mailbox. Used for errors with is_outlived().
  std::vector<int> ranks_of(const RankLost& loss) const;
  // From now on, the death of one of these ranks ends no wait of this mailbox. Called by a rank that continues without
  // them.
  void spare(const std::vector<int>& ranks);

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // Returns the seconds that one rank waits for another, as Communicator::mailbox() has set them.
  double deadline_seconds() const { return deadline_; }
  bool is_lost(int rank) const;
  // Returns the number that a rank had at the start of the run.
  int number(int rank) const { return topology_.number(rank); }

 private:
  // A letter that has begun to arrive. When the object is moved, the memory to which the transport writes
  // stays in place.
  struct Arriving {
    int tag;
    Letter letter;
    Request request;
    bool arrived;
    Wait patience;
    Wait dying;  // the time since the sender died
  };

  using Listen = void (Alarm::*)(const PendingCall& call);
  std::optional<Letter> await(std::span<const int> tags, double seconds, std::string_view what,
                              Listen listen);
  void begin_next(int tag);
  bool has_arrived(Arriving& letter);
  PendingCall pending(const CallSignature& at, double seconds) const;
  // Returns the first complete letter with this tag, and drops letters whose sender is dead or too slow.
  std::optional<Letter> finish(int tag);
  std::vector<Arriving>::iterator give_up(std::vector<Arriving>::iterator letter);

  std::unique_ptr<Transport> transport_;
  Topology topology_;
  std::shared_ptr<Alarm> alarm_;
  double deadline_;
  Outbox outbox_;
  std::vector<Arriving> arriving_;  // letters that are arriving, in the order in which they began
  Wait looks_{0};            // limits how often the alarm is queried, because letters may come continually
  std::vector<int> spared_;  // ranks that spare() named, numbered as in PendingCall
};

}  // namespace plexaura
