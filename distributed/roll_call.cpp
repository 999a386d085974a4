#include "distributed/roll_call.h"

#include <vector>

#include "distributed/rank_wait.h"
#include "distributed/tags.h"

namespace plexaura {
namespace {

class MessageRollCall final : public RollCall {
 public:
  MessageRollCall(Transport& transport, const Places& places, Alarm& alarm, double deadline_seconds)
      : transport_(transport),
        places_(places),
        alarm_(alarm),
        deadline_(deadline_seconds),
        heard_(static_cast<std::size_t>(transport.size())),
        requests_(heard_.size()),
        present_(heard_.size()) {}

  void meet(Announcement mine) override {
    mine.sequence = ++sequence_;
    heard_[0] = mine;
    if (transport_.rank() != 0) return ask_root(mine);
    hear_everyone(mine);
    answer_everyone(mine);
  }

 private:
  void hear_everyone(const Announcement& mine) {
    const int size = transport_.size();
    for (int rank = 1; rank < size; ++rank) {
      requests_[at(rank)] = transport_.receive(as_message(heard_[at(rank)]), rank, tag::roll_call);
    }
    std::fill(present_.begin(), present_.end(), false);
    RankWait wait(alarm_, mine, deadline_);
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
    const Announcement& mine = heard_[0];
    const Announcement& theirs = heard_[at(rank)];
    if (match(mine, theirs)) return;
    const int root = places_.number(0);
    const int other = places_.number(rank);
    if (mine.call == Call::leave_in_error) alarm_.end_with_error_of(root);
    if (theirs.call == Call::leave_in_error) alarm_.end_with_error_of(other);
    alarm_.fail(describe_mismatch(root, mine, other, theirs));
  }

  void answer_everyone(const Announcement& mine) {
    for (int rank = 1; rank < transport_.size(); ++rank) {
      requests_[at(rank)] = transport_.send(std::span(&answer_, 1), rank, tag::answer);
    }
    RankWait wait(alarm_, mine, deadline_);
    for (int rank = 1; rank < transport_.size(); ++rank) {
      while (!transport_.done(requests_[at(rank)])) wait.pause();
    }
  }

  void ask_root(const Announcement& mine) {
    Request answer = transport_.receive(std::span(&answer_, 1), 0, tag::answer);
    Request sent = transport_.send(as_message(heard_[0]), 0, tag::roll_call);
    RankWait wait(alarm_, mine, deadline_);
    while (!transport_.done(answer)) wait.pause();
    while (!transport_.done(sent)) wait.pause();
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  Transport& transport_;
  const Places& places_;
  Alarm& alarm_;
  double deadline_;
  std::uint64_t sequence_ = 0;
  std::byte answer_{};
  std::vector<Announcement> heard_;
  std::vector<Request> requests_;
  std::vector<bool> present_;
};

}  // namespace

RollCall::~RollCall() = default;

std::unique_ptr<RollCall> make_message_roll_call(Transport& transport, const Places& places, Alarm& alarm,
                                                 double deadline_seconds) {
  return std::make_unique<MessageRollCall>(transport, places, alarm, deadline_seconds);
}

}  // namespace plexaura
