#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/dealer.h"
#include "core/exchange/strategy.h"
#include "distributed/communicator/mail_driver.h"
#include "distributed/servers/ranks/letters.h"
#include "distributed/servers/ranks/shared_weights.h"
#include "distributed/servers/ranks/snapshot.h"
#include "distributed/servers/server_rule.h"
#include "distributed/wire/wait.h"

namespace plexaura {

enum class ClientKind : std::uint8_t {
  serial,   // waits for the answer to each push
  threaded  // trains on while a push and the answer to it travel, which a thread of its own drives
};

// A client's side: draws the parts on which it trains, each while it is at work on the one before, pushes every so many
// steps what it has learned, and goes on with the weights that come as the answer: at once, or behind the step in which
// they have come, all of them from one answer. One push is under way at most, so that a client which is to push again
// waits for the answer. Where several serve, each gets its shard of the push, and the answers are taken in as they come,
// each of them whole. So it waits for the server with each draw and each push, and for other clients only where
// ParameterServer says so.
class ParameterClient final : public Dealer, public WeightExchange {
 public:
  // The first so many ranks of the mailbox, which outlives this, serve. `push_every`: steps; none: it pushes when nothing
  // more is dealt. `keeps_snapshot`: for a server that goes on when this one has died, which must be the only one.
  ParameterClient(Mailbox& mailbox, int servers, const ServerRule& rule,
                  std::optional<std::int64_t> push_every, ClientKind kind, bool keeps_snapshot);

  // Throws UserError for weights of a type other than float64 and float32, and for those that no letter holds.
  void begin(WeightsImmigration& border);
  Draw draw(const DealtSteps& steps) override;
  bool is_over() const override { return is_over_; }
  void stop() override;
  // After each step: takes in weights that have come, and pushes where that is due. Where it does not push and has
  // written nothing for a while, it tells the server that it is at work. Returns whether it has taken in weights.
  bool count_step();
  void after_update() override { count_step(); }
  // When nothing more is dealt: returns with the weights that all clients get then. Where a client has died meanwhile,
  // it may return sooner, and is_over() tells that there are parts to be drawn.
  void show_weights() override;
  // After the last rest.
  void leave();
  // No letter is driven by another thread any more.
  void give_up() noexcept { driver_.reset(); }
  // The times that it tells the server go on behind those of another client of this rank.
  void go_on_from(const ParameterClient& former);
  // Before begin(): the weights to begin with.
  void begin_with(Snapshot snapshot) { newest_ = std::move(snapshot); }
  // That it got last, or begins with.
  const Snapshot& newest() const { return newest_; }

 private:
  struct Server {
    Shard shard;
    Draft letter;              // its content is pushed
    std::int64_t version = 0;  // of the weights that it sent last
    Wait unheard;              // since the last letter to it
  };

  Server& server(int rank) { return servers_[static_cast<std::size_t>(rank)]; }
  int servers() const { return static_cast<int>(servers_.size()); }
  void push(Word word);
  bool await_answers(std::string_view what);
  std::vector<Letter> answers_that_have_come();
  bool take_in(std::vector<Letter> answers);
  void take_in(Letter answer, std::span<std::byte> own);
  std::span<std::byte> began(const Shard& shard);
  Snapshot snapshot_of_the_beginning(std::span<const std::byte> weights) const;
  void ask_for_part(const DealtSteps& steps);
  double elapsed() const;
  std::optional<Letter> take(int tag, std::string_view what);
  Letter await(Word word, std::string_view what);
  void post(int rank, LetterHead head, bool with_content = false);
  std::unique_lock<std::mutex> hold_mailbox();

  Mailbox& mailbox_;
  ServerRule rule_;
  std::optional<std::int64_t> push_every_;
  bool keeps_snapshot_;
  Snapshot newest_;
  std::optional<SharedWeights> weights_;
  int server_count_;
  std::vector<Server> servers_;     // from begin() on, in the order of ranks
  std::vector<std::byte> began_;    // from which its changes count: the weights that it got or pushed last
  std::int64_t steps_ = 0;          // since its last push
  std::ptrdiff_t answers_due_ = 0;  // to that
  bool stopped_ = false;            // the deal, by this client
  bool has_asked_ = false;          // for a part
  bool is_over_ = false;            // the last deal
  std::optional<double> deal_began_ = {};  // seconds; none: no deal is open
  double elapsed_ = 0;                     // in deals
  double waited_ = 0;                      // in deals
  std::unique_ptr<MailDriver> driver_;     // null: of a serial client. Goes first
};

}  // namespace plexaura
