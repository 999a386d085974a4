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
  serial,   // the client waits for the answer to each push
  threaded  // the client trains while a thread sends a push and receives its answer
};

// The client of a parameter server. It draws the parts on which it trains, each while it works on the one
// before. After every `push_every` steps it pushes what it has learned, and continues with the weights of the
// answer: a serial client at once, a threaded one after the step in which they arrive. At most one push is
// under way: a client that has to push again waits for the answer first. If several ranks serve, each gets
// its shard of the push, and each answer is taken in as a whole when it arrives. A client waits for other
// clients only if ParameterServer delays an answer.
class ParameterClient final : public Dealer, public WeightExchange {
 public:
  // The first `servers` ranks of the mailbox serve; the mailbox must outlive this object. `push_every` is a
  // number of steps; empty: the client pushes only when no parts are left. With `keeps_snapshot` the client
  // keeps the last answer, so that another rank can replace the only server.
  ParameterClient(Mailbox& mailbox, int servers, const ServerRule& rule,
                  std::optional<std::int64_t> push_every, ClientKind kind, bool keeps_snapshot);

  // Throws UserError for weights of a type other than float64 and float32, and for weights that do not fit into a letter.
  void begin(WeightsImmigration& border);
  Draw draw(const DealtSteps& steps) override;
  bool is_over() const override { return is_over_; }
  void stop() override;
  // Called after each step. Takes in weights that have arrived, and pushes if a push is due. Otherwise, if
  // this client has sent nothing for a while, it reports to the servers that it is at work. Returns true if
  // it has taken in weights.
  bool count_step();
  void after_update() override { count_step(); }
  // Called when no parts are left. Waits until this client has the weights that all clients get at that
  // point. If a client has died, returns earlier. Then is_over() returns false, and there are parts to draw.
  void show_weights() override;
  // Called after the last show_weights().
  void leave();
  // Ends the thread that drives letters.
  void give_up() noexcept { driver_.reset(); }
  // Continues the times and the snapshot of another client of this rank.
  void continue_from(const ParameterClient& former);
  // Sets the weights at the beginning. Called before begin().
  void begin_with(Snapshot snapshot) { newest_ = std::move(snapshot); }
  // Returns the last snapshot that was kept, or the one of begin_with(). Returns null if there is none: see
  // keeps_snapshot.
  const Snapshot& newest() const { return newest_; }

 private:
  struct Server {
    Shard shard;
    Draft letter;              // letter whose content is the push
    std::int64_t version = 0;  // version of the last weights from this server
    Wait unheard;              // time since the last letter to this server
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
  std::vector<Server> servers_;  // the servers in the order of ranks; empty before begin()
  // The last weights that this client got or pushed; changes are differences from these.
  std::vector<std::byte> began_;
  std::int64_t steps_ = 0;                 // number of steps since the last push
  std::ptrdiff_t answers_due_ = 0;         // number of servers that have not answered the last push
  bool stopped_ = false;                   // true: this client has demanded the end of the deal
  bool has_asked_ = false;                 // true: this client has asked for a part
  bool is_over_ = false;                   // true: the last deal is over
  std::optional<double> deal_began_ = {};  // start of the open deal, in seconds; empty: no deal is open
  double elapsed_ = 0;                     // seconds spent in deals that are over
  double waited_ = 0;                      // seconds of waiting in deals
  // The thread that drives letters. Null for a serial client. Declared last, so that it is destroyed first.
  std::unique_ptr<MailDriver> driver_;
};

}  // namespace plexaura
