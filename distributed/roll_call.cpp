#include "distributed/roll_call.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "distributed/failure.h"
#include "distributed/tags.h"
#include "distributed/wait.h"

namespace plexaura {
namespace {

// What rank 0 answers.
struct Verdict {
  bool good = true;
  std::int32_t speaker = 0;
  std::array<char, 504> text{};
};

Verdict trouble(int speaker, const std::string& text) {
  Verdict verdict{false, speaker, {}};
  std::copy_n(text.begin(), std::min(text.size(), verdict.text.size() - 1), verdict.text.begin());
  return verdict;
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

class MessageRollCall final : public RollCall {
 public:
  MessageRollCall(Transport& transport, const Places& places, double deadline_seconds)
      : transport_(transport),
        places_(places),
        deadline_(deadline_seconds),
        heard_(static_cast<std::size_t>(transport.size())),
        requests_(heard_.size()),
        present_(heard_.size()) {}

  void meet(Announcement mine) override {
    mine.sequence = ++sequence_;
    if (transport_.rank() == 0) {
      heard_[0] = mine;
      verdict_ = judge(hear_everyone(mine));
      tell_everyone();
    } else {
      ask_root(mine);
    }
    if (verdict_.good) return;
    if (verdict_.speaker == transport_.rank()) throw DeviceError(verdict_.text.data());
    throw_quietly(verdict_.speaker, verdict_.text.data());
  }

  void leave_word(Announcement mine) noexcept override {
    mine.sequence = ++sequence_;
    try {
      if (transport_.rank() == 0) {
        verdict_ = trouble(0, left_text(0));
        tell_everyone();
      } else {
        heard_[0] = mine;
        Request sent = transport_.send(bytes_of(heard_[0]), 0, tag::roll_call);
        finish(sent, kPatienceForWords);
      }
    } catch (const std::exception&) {  // the others will reach their deadline instead
    }
  }

 private:
  static constexpr double kPatienceForWords = 0.2;

  bool finish(Request& request, double seconds) {
    Wait wait(seconds);
    while (!transport_.done(request)) {
      if (wait.expired()) return false;
      wait.pause();
    }
    return true;
  }

  // The ranks that did not come.
  std::vector<int> hear_everyone(const Announcement& mine) {
    const int size = transport_.size();
    for (int rank = 1; rank < size; ++rank)
      requests_[at(rank)] = transport_.receive(bytes_of(heard_[at(rank)]), rank, tag::roll_call);
    std::fill(present_.begin(), present_.end(), false);
    present_[0] = true;
    Wait wait(deadline_);
    for (int missing = size - 1; missing > 0;) {
      for (int rank = 1; rank < size; ++rank) {
        if (present_[at(rank)] || !transport_.done(requests_[at(rank)])) continue;
        present_[at(rank)] = true;
        --missing;
        if (!match(mine, heard_[at(rank)])) return {};  // no need to wait for the others
      }
      if (missing == 0 || wait.expired() || someone_died()) break;
      wait.pause();
    }
    std::vector<int> absent;
    for (int rank = 1; rank < size; ++rank) {
      if (!present_[at(rank)]) absent.push_back(rank);
    }
    return absent;
  }

  bool someone_died() {
    if (++checks_ % 256 != 0) return false;
    for (int rank = 1; rank < transport_.size(); ++rank) {
      if (!present_[at(rank)] && places_.is_dead(rank)) return true;
    }
    return false;
  }

  Verdict judge(const std::vector<int>& absent) const {
    for (int rank = 0; rank < transport_.size(); ++rank) {
      if (!present_[at(rank)] || match(heard_[0], heard_[at(rank)])) continue;
      if (heard_[0].call == Call::leave_in_error) return trouble(0, left_text(0));
      if (heard_[at(rank)].call == Call::leave_in_error) return trouble(rank, left_text(rank));
      const int speaker = leaves(heard_[0]) ? rank : 0;  // who leaves has nobody left to report to
      return trouble(speaker, describe_mismatch(0, heard_[0], rank, heard_[at(rank)]));
    }
    if (absent.empty()) return {};
    const auto dead =
        std::find_if(absent.begin(), absent.end(), [&](int rank) { return places_.is_dead(rank); });
    if (dead != absent.end()) return trouble(0, dead_text(*dead));
    return trouble(
        0, fmt::format("{} did not come to {} within {:.3g} s: stopped, stuck, or still at work elsewhere",
                       list_ranks(absent), describe(heard_[0]), deadline_));
  }

  std::string dead_text(int rank) const {
    return fmt::format("{} has died; the others wait for it at {}", places_.name(rank), describe(heard_[0]));
  }
  std::string left_text(int rank) const {
    return fmt::format("{} has left with an error of its own, which it reports", places_.name(rank));
  }

  void tell_everyone() {
    for (int rank = 1; rank < transport_.size(); ++rank)
      requests_[at(rank)] = transport_.send(bytes_of(verdict_), rank, tag::verdict);
    // After a bad verdict not everyone is there to take it.
    const double patience = verdict_.good ? deadline_ : kPatienceForWords;
    for (int rank = 1; rank < transport_.size(); ++rank) {
      if (!finish(requests_[at(rank)], patience) && verdict_.good) {
        throw DeviceError(fmt::format("{} did not take the answer to {} within {:.3g} s: stopped or stuck",
                                      places_.name(rank), describe(heard_[0]), deadline_));
      }
    }
  }

  void ask_root(Announcement& mine) {
    Request answer = transport_.receive(bytes_of(verdict_), 0, tag::verdict);
    Request sent = transport_.send(bytes_of(mine), 0, tag::roll_call);
    Wait wait(deadline_ + std::clamp(0.2 * deadline_, 0.5, 5.0));  // rank 0 knows more: let it speak first
    bool is_sent = false;
    while (!transport_.done(answer)) {
      is_sent = is_sent || transport_.done(sent);
      const bool died = ++checks_ % 256 == 0 && places_.is_dead(0);
      if (died || wait.expired()) {
        throw_in_turn(transport_.rank() - 1,
                      fmt::format("{} {}; rank {} waited {:.1f} s for its answer at {}", places_.name(0),
                                  died ? "has died" : "is stopped or stuck", transport_.rank(),
                                  wait.seconds(), describe(mine)));
      }
      wait.pause();
    }
    if (!is_sent) finish(sent, deadline_);
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  Transport& transport_;
  const Places& places_;
  double deadline_;
  std::uint64_t sequence_ = 0;
  std::uint64_t checks_ = 0;
  Verdict verdict_;
  std::vector<Announcement> heard_;
  std::vector<Request> requests_;
  std::vector<bool> present_;
};

}  // namespace

RollCall::~RollCall() = default;

std::unique_ptr<RollCall> make_message_roll_call(Transport& transport, const Places& places,
                                                 double deadline_seconds) {
  return std::make_unique<MessageRollCall>(transport, places, deadline_seconds);
}

}  // namespace plexaura
