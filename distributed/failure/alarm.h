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

// A call in which a rank waits for others.
struct PendingCall {
  const CallSignature& at;
  double deadline_seconds;
  std::span<const int> members;  // ranks of the whole run that make the call; empty: not known yet, so any
  std::span<const int> spared = {};  // ranks of the whole run that may be dead: the wait goes on without them
};

// A wait of this rank was ended by itself. The others know nothing of it.
class WaitInterrupted final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// How the ranks of a run end together when one of them is lost. All communicators of a process share one
// alarm, and every rank that waits in any of them listens to it. A rank that finds another one dead, or whose
// deadline is over, asks all ranks where they are. Ranks that wait answer; ranks that do not answer are the
// lost ones, even where the rank that asked was waiting for another. Of several ranks that ask, the lowest
// speaks. It sends its sentence to the others, which end without a word. Where a link is cut, the ranks on
// either side do this among themselves. All functions may be called from any thread.
//
// Where the others are to go on without ranks that die (`outlives`), nobody is asked about these: every rank that waits
// hears of them from the library, and throws. Ranks that are stopped (SIGSTOP) and do not come within a deadline are
// killed by the lowest other rank of their host, so that they are dead; those that cannot be reached any more are given up.
class Alarm {
 public:
  // Collective. The transport is for the alarm alone. `outlives`: only where the transport does.
  explicit Alarm(std::unique_ptr<Transport> transport, bool outlives = false);

  int rank() const { return transport_->rank(); }

  // Where the ranks run. Until this is known nobody is found dead.
  void set_topology(const Topology& topology);

  // Called now and then by a rank that waits. Throws an Error (see speaks()) when the run is over, and
  // where a rank has died a RankLost.
  void look(const PendingCall& call);

  // Called now and then by a rank that goes on when others die: throws as look(), but where the run is over
  // alone.
  void listen(const PendingCall& call);

  // While it is on, look() throws WaitInterrupted.
  void interrupt_waits(bool on) { is_interrupted_ = on; }

  // The deadline of this rank is over: throws a RankLost where some ranks do not answer. A rank that leaves in
  // error tells the others that it has, and does not speak: it reports its error itself.
  [[noreturn]] void give_up(const PendingCall& call);

  // This rank ends the run with a sentence, which it speaks.
  [[noreturn]] void fail(const std::string& text);

  // The run is over because `rank` fails, which reports that itself: all others end without a word, and with the
  // exit status that its error has.
  [[noreturn]] void end_with_error_of(int rank, int exit_status);

 private:
  struct Note {
    enum class Kind : std::uint32_t { question, answer, verdict, absent };
    Kind kind = Kind::question;
    std::int32_t speaker = 0;
    std::array<char, 1016> text{};  // of a verdict: see pack(); of `absent` the ranks
  };
  struct Verdict {
    int speaker = 0;
    std::string text;
    std::vector<int> lost = {};  // in `call`
    std::string call = {};
    int exit_status = 1;
  };
  static std::string pack(const Verdict& verdict);
  static Verdict unpack(int speaker, std::string_view packed);

  // All of these need the lock.
  void hear(const CallSignature& at);
  void take(const Note& note, int from, const CallSignature& at);
  void send(Note::Kind kind, int speaker, std::string_view text, std::span<const int> to);
  void listen(double seconds, const CallSignature& at, bool until_all_have_answered);
  bool settle(const PendingCall& call);
  void bury_absent(const PendingCall& call);
  void tell(Verdict verdict);
  [[noreturn]] void end(std::unique_lock<std::mutex> lock, bool speaks);
  bool all_have_answered() const;
  // As sentences, and errors, name ranks.
  int number(int rank) const;
  std::vector<int> numbers_of(const std::vector<int>& ranks) const;
  std::vector<int> find_dead(const PendingCall& call);
  std::vector<int> silent(std::span<const int> among, const PendingCall& call) const;
  std::vector<int> absent(const PendingCall& call) const;
  [[noreturn]] void go_on_without(const std::vector<int>& dead, const PendingCall& call) const;
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
  std::vector<std::optional<std::string>> answers_;  // where each rank says it waits
  int lowest_asker_;
  std::optional<Verdict> verdict_;
};

}  // namespace plexaura
