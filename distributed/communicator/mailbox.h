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
  sent,  // on its way; nobody says whether it arrives
  full,  // not sent: this rank does not take what was sent to it before
  lost   // not sent: this rank is dead
};

// Letters between ranks that make no calls together: whoever has something posts it, and takes what has come,
// from whomever. Beside a communicator, whose ranks it knows. A rank that dies is a status here, not an error;
// that a process is dead is seen on its own machine only. One thread at a time.
class Mailbox {
 public:
  // See Communicator::mailbox(). A letter that has begun to arrive is given up after `deadline_seconds`.
  Mailbox(std::unique_ptr<Transport> transport, const Topology& topology, std::shared_ptr<Alarm> alarm,
          double deadline_seconds);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Copies the bytes and returns at once. At most `most_bytes` are under way to a rank beside the longest of the
  // letters, which may be of any length: short ones leave while a long one travels.
  Posted post(int to, int tag, std::span<const std::byte> bytes);
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;

  // The next letter with this tag, from anybody; nothing where none has come whole within so many seconds. Letters
  // of one rank and tag come in the order in which it posted them, and keep back nobody else's. Throws an Error (see speaks())
  // where the run ends meanwhile.
  std::optional<Letter> take(int tag, double seconds);

  // The next letter with this tag that has come whole by now, for a thread that goes on without it. Finds nobody dead
  // and does not hear that the run ends.
  std::optional<Letter> take_arrived(int tag);

  // Lets letters leave, and those with this tag arrive, up to so many that nobody has taken. Finds nobody dead and does
  // not hear that the run ends: for a thread that only drives what another one has posted or will take. Whether anything
  // is still under way.
  bool drive(int tag, std::int64_t most_arriving);

  // For a rank that does not go on without the others, and waits for `what`. The same, but where one of them has died
  // a RankLost, unless it was spared. The next letter with any of these tags: of several that have come, one with the first of them.
  std::optional<Letter> take_from_living(std::span<const int> tags, double seconds, std::string_view what);
  std::optional<Letter> take_from_living(int tag, double seconds, std::string_view what) {
    return take_from_living(std::span(&tag, 1), seconds, what);
  }
  // Ends the run, for what this rank has waited for did not come in so many seconds: a RankLost that names the ranks
  // which do not answer.
  [[noreturn]] void give_up(double seconds, std::string_view what);
  // After a RankLost that is outlived, the ranks that it names, as they are counted here ...
  std::vector<int> ranks_of(const RankLost& loss) const;
  // ... and their death ends no wait here any more, for this rank goes on without them.
  void spare(const std::vector<int>& ranks);

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // How long a rank waits for another.
  double deadline_seconds() const { return deadline_; }
  bool is_lost(int rank) const;
  // As it was counted when the run was started.
  int number(int rank) const { return topology_.number(rank); }

 private:
  // A letter that has begun to arrive. What the transport writes to stays where it is when this is moved.
  struct Arriving {
    int tag;
    Letter letter;
    Request request;
    bool arrived;
    Wait patience;
    Wait dying;  // since its sender died
  };

  using Listen = void (Alarm::*)(const PendingCall& call);
  std::optional<Letter> await(std::span<const int> tags, double seconds, std::string_view what,
                              Listen listen);
  void begin_next(int tag);
  bool has_arrived(Arriving& letter);
  PendingCall pending(const CallSignature& at, double seconds) const;
  // The first letter that is whole; gives those up that do not go on.
  std::optional<Letter> finish(int tag);
  std::vector<Arriving>::iterator give_up(std::vector<Arriving>::iterator letter);

  std::unique_ptr<Transport> transport_;
  Topology topology_;
  std::shared_ptr<Alarm> alarm_;
  double deadline_;
  Outbox outbox_;
  std::vector<Arriving> arriving_;  // in the order in which they began
  Wait looks_{0};                   // between two looks, for letters may come all the time
  std::vector<int> spared_;         // as the ranks of the whole run are counted
};

}  // namespace plexaura
