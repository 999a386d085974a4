#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// A call between ranks in which this rank waits.
struct PendingCall {
  const CallSignature& at;
  double deadline_seconds;
  // Ranks that make the call, numbered as in the communicator of all ranks; empty: any rank may be one of them.
  std::span<const int> members;
  std::span<const int> spared = {};  // ranks whose death does not end the wait, with the same numbers
};

// A wait that interrupt_waits() has ended. Other ranks do not learn of it.
class WaitInterrupted final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Ends the ranks of a run together when one of them is lost. All communicators of a process share one alarm,
// and every rank that waits in any of them calls it. A rank that finds another one dead, or whose deadline
// has passed, asks all ranks where they are. Ranks that wait answer; ranks that do not answer are the lost
// ones, even if the asking rank waited for another. If several ranks ask, the lowest of them reports: it
// sends its sentence to the other ranks, which end without printing. If a link is cut, the ranks on each side
// do this separately. All functions may be called from any thread.
//
// If `outlives` is true, ranks may outlive others. Then no rank is asked about dead ones: the library informs
// every waiting rank, which throws. If ranks are stopped (SIGSTOP) and do not come within a deadline, the
// lowest other rank of their host kills them, so that they count as dead. Ranks that cannot be reached any
// more are given up.
class Alarm {
 public:
  // Collective. Only the alarm may use the transport. `outlives` may be true only if the transport outlives
  // ranks.
  explicit Alarm(std::unique_ptr<Transport> transport, bool outlives = false);

  int rank() const { return transport_->rank(); }

  // Sets where the ranks run. Before that, only deaths that the library reports are found.
  void set_topology(const Topology& topology);

  // Called regularly by a waiting rank. Throws an Error (see speaks()) if the run has ended, and a RankLost
  // if a rank has died.
  void look(const PendingCall& call);

  // Called regularly by a waiting rank that continues if other ranks die. Throws an Error only if the run has
  // ended.
  void listen(const PendingCall& call);

  // Lets look() throw WaitInterrupted as long as `on` is true.
  void interrupt_waits(bool on) { is_interrupted_ = on; }

  // Called when the deadline of this rank has passed. Throws a RankLost if ranks do not answer, otherwise another
  // Error. A rank that leaves with an error reports that error itself; here it informs the other ranks that it leaves.
  [[noreturn]] void give_up(const PendingCall& call);

  // Ends the run with a sentence that this rank prints, unless the run has already ended otherwise.
  [[noreturn]] void fail(const std::string& text);

  // Ends the run because `rank` has failed. That rank reports its error itself. All other ranks end without
  // printing, with the exit status of that error.
  [[noreturn]] void end_with_error_of(int rank, int exit_status);

 private:
  struct Note {
    enum class Kind : std::uint32_t { question, answer, verdict, absent };
    Kind kind = Kind::question;
    std::int32_t speaker = 0;
    std::array<char, 1016> text{};  // for a verdict: see pack(); for `absent`: the absent ranks
  };
  struct Verdict {
    int speaker = 0;
    std::string text;
    std::vector<int> lost = {};  // the lost ranks, numbered as at the start
    std::string call = {};
    int exit_status = 1;
  };
  static std::string pack(const Verdict& verdict);
  static Verdict unpack(int speaker, std::string_view packed);

  // The functions below may be called only while the lock is held.
  void hear(const CallSignature& at);
  void take(const Note& note, int from, const CallSignature& at);
  void send(Note::Kind kind, int speaker, std::string_view text, std::span<const int> to);
  void listen(double seconds, const CallSignature& at, bool until_all_have_answered);
  bool agree_on_speaker(const PendingCall& call);
  void bury_absent(const PendingCall& call);
  void tell(Verdict verdict);
  [[noreturn]] void end(std::unique_lock<std::mutex> lock, bool speaks);
  bool all_have_answered() const;
  // Return the numbers of ranks at the start, which sentences and errors use.
  int number(int rank) const;
  std::vector<int> numbers_of(const std::vector<int>& ranks) const;
  std::vector<int> find_dead(const PendingCall& call);
  std::vector<int> silent(std::span<const int> among, const PendingCall& call) const;
  std::vector<int> absent(const PendingCall& call) const;
  [[noreturn]] void continue_without(const std::vector<int>& dead, const PendingCall& call) const;
  Verdict judge(const PendingCall& call);
  std::string describe_death(const std::vector<int>& dead, const PendingCall& call) const;
  std::string describe_absent(const std::vector<int>& absent, const PendingCall& call) const;
  std::string describe_stall(std::span<const int> members, const PendingCall& call) const;

  std::atomic<bool> is_interrupted_ = false;
  std::mutex mutex_;
  std::unique_ptr<Transport> transport_;
  bool outlives_;
  Outbox outbox_;
  std::optional<Topology> topology_;
  std::vector<int> others_;
  std::vector<std::optional<std::string>> answers_;  // for each rank that has answered, where it waits
  int lowest_asker_;
  std::optional<Verdict> verdict_;
};

}  // namespace plexaura
