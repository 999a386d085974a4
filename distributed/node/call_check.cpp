#include "distributed/node/call_check.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "distributed/failure/rank_wait.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

class MessageCallCheck final : public CallCheck {
 public:
  MessageCallCheck(Transport& transport, const Topology& topology, Alarm& alarm)
      : transport_(transport),
        topology_(topology),
        alarm_(alarm),
        outbox_(transport),
        arriving_(std::make_shared<Arriving>()),
        requests_(static_cast<std::size_t>(transport.size())),
        present_(requests_.size()) {
    arriving_->heard.resize(requests_.size());
  }

  std::uint8_t meet(CallSignature mine, double deadline_seconds) override {
    mine.sequence = ++sequence_;
    arriving_->heard[0] = mine;
    const PendingCall call{mine, deadline_seconds, topology_.numbers()};
    if (transport_.rank() != 0) {
      ask_root(call);
    } else {
      hear_everyone(call);
      answer_everyone(call);
    }
    return std::to_integer<std::uint8_t>(arriving_->answer);
  }

 private:
  // The memory of pending receives. If a wait fails, the transport keeps it.
  struct Arriving {
    std::vector<CallSignature> heard;
    std::byte answer{};  // the pace that rank 0 passes
  };

  void hear_everyone(const PendingCall& call) {
    const int size = transport_.size();
    std::fill(present_.begin(), present_.end(), false);
    for (int rank = 1; rank < size; ++rank) {
      requests_[at(rank)] = transport_.receive(as_message(arriving_->heard[at(rank)]), rank, tag::call_check);
    }
    try {
      await_everyone(call);
    } catch (...) {
      for (int rank = 1; rank < size; ++rank)
        if (!present_[at(rank)]) transport_.keep(requests_[at(rank)], arriving_);
      throw;
    }
  }

  void await_everyone(const PendingCall& call) {
    const int size = transport_.size();
    RankWait wait(alarm_, call);
    for (int missing = size - 1; missing > 0;) {
      for (int rank = 1; rank < size; ++rank) {
        if (present_[at(rank)] || !transport_.done(requests_[at(rank)])) continue;
        present_[at(rank)] = true;
        --missing;
        check_match(rank);
      }
      if (missing > 0) wait.pause();
    }
  }

  void check_match(int rank) {
    const CallSignature& mine = arriving_->heard[0];
    const CallSignature& theirs = arriving_->heard[at(rank)];
    if (match(mine, theirs)) return;
    const int root = topology_.number(0);
    const int other = topology_.number(rank);
    if (mine.call == Call::leave_in_error) alarm_.end_with_error_of(root, exit_status(mine));
    if (theirs.call == Call::leave_in_error) alarm_.end_with_error_of(other, exit_status(theirs));
    alarm_.fail(describe_mismatch(root, mine, other, theirs));
  }

  void answer_everyone(const PendingCall& call) {
    arriving_->answer = std::byte{call.at.pace};
    for (int rank = 1; rank < transport_.size(); ++rank) {
      outbox_.send(std::span(&arriving_->answer, 1), rank, tag::answer);
    }
    RankWait wait(alarm_, call);
    while (!outbox_.all_left()) wait.pause();
  }

  void ask_root(const PendingCall& call) {
    Request answer = transport_.receive(std::span(&arriving_->answer, 1), 0, tag::answer);
    outbox_.send(as_message(arriving_->heard[0]), 0, tag::call_check);
    RankWait wait(alarm_, call);
    try {
      while (!transport_.done(answer)) wait.pause();
    } catch (...) {
      transport_.keep(answer, arriving_);
      throw;
    }
    while (!outbox_.all_left()) wait.pause();
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  Transport& transport_;
  const Topology& topology_;
  Alarm& alarm_;
  std::uint64_t sequence_ = 0;
  Outbox outbox_;
  std::shared_ptr<Arriving> arriving_;
  std::vector<Request> requests_;
  std::vector<bool> present_;
};

}  // namespace

CallCheck::~CallCheck() = default;

std::unique_ptr<CallCheck> make_message_call_check(Transport& transport, const Topology& topology,
                                                   Alarm& alarm) {
  return std::make_unique<MessageCallCheck>(transport, topology, alarm);
}

}  // namespace plexaura
