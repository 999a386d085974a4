#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/rank_lost.h"
#include "core/exchange/strategy.h"
#include "distributed/communicator/mailbox.h"
#include "distributed/servers/client_table.h"
#include "distributed/servers/push_judge.h"
#include "distributed/servers/ranks/letters.h"
#include "distributed/servers/ranks/part_deal.h"
#include "distributed/servers/ranks/snapshot.h"
#include "distributed/servers/server_rule.h"
#include "distributed/wire/wait.h"

namespace plexaura {

// A parameter server. It holds the weights, takes in pushes of clients, and answers each push with the weights after it. So the
// weights that a client gets contain its last push, and the server sends no weights unasked. The version of the weights counts the
// pushes. The server also deals out the data. When nothing is left to deal, all clients rest, and all of them get the same weights.
//
// If several ranks serve, each treats its shard as if it were all weights: it has its own versions, staleness and bound. Only the
// first one deals out the data.
//
// If the communicator can continue after ranks have died, the server also continues when clients die during a deal. It deals
// their unfinished parts, which they have drawn and not pushed, to the living clients. Between two deals the clients call each
// other. If a client dies then, the survivors make a new communicator.
class ParameterServer final : public Server {
 public:
  // The first `servers` ranks of the mailbox serve, and all others are clients; the mailbox must outlive this
  // object. `max_staleness`: a client waits while its pushes exceed those of the slowest client at work by
  // more than this number, counted since all clients rested. For `push_limit` see PushJudge. With
  // `may_be_succeeded`, letters with weights also carry the account, because clients keep them as snapshots.
  ParameterServer(Mailbox& mailbox, int servers, const ServerRule& rule,
                  std::optional<std::int64_t> max_staleness, double push_limit, bool may_be_succeeded);

  // Serves until all clients have left. Begins with the weights of the border, or with those of the snapshot if there
  // is one. Throws RankLost if the death of a client is not outlived or falls between two deals, and if all clients
  // have died; the error of Mailbox::give_up() if clients wait and nobody writes within the deadline; and UserError,
  // which ends the run, if a push is refused. After an exception only table() and newest() may be used.
  void serve(WeightsImmigration& border) override;

  const ClientTable& table() const { return table_; }
  // Continues the table of the server that served these clients, and others, before.
  void continue_from(const ClientTable& table);
  // Sets the weights, the parts that are left to deal, and the table of clients. Called before serve().
  // `snapshot` may be null.
  void begin_with(Snapshot snapshot);
  // Returns the present state. Returns null before serve() if begin_with() has set no snapshot.
  Snapshot newest() const;

 private:
  enum class State : std::uint8_t {
    works,
    waits,  // the client has pushed, and gets weights when it may continue
    rests,  // the client has pushed, and gets weights when all others rest, too
    gone,
    lost  // the client has died
  };
  struct Client {
    State state = State::works;
    std::int64_t pushes = 0;                  // number of pushes since all clients rested
    std::optional<DealtSteps> asks_for = {};  // steps of which the client waits for a part

    bool awaits_weights() const { return state == State::waits || state == State::rests; }
    bool waits() const { return awaits_weights() || asks_for; }
  };

  int index_of(int rank) const { return rank - servers_; }
  Client& client(int rank) { return clients_[static_cast<std::size_t>(index_of(rank))]; }
  bool all_are(State state) const;
  std::vector<int> living() const;
  void take_over(const Letter& snapshot);
  void await_letter(Wait& silence);
  void lose(const RankLost& loss);
  void say_who_has_died(const std::vector<int>& numbers, std::int64_t parts) const;
  bool is_to_regroup() const;
  [[noreturn]] void regroup();
  void read(const Letter& letter);
  void deal_out();
  void take_push(const Letter& letter, const LetterHead& head);
  std::string refusal(int rank, const std::string& objection) const;
  void proceed();
  std::int64_t fewest_pushes() const;
  void post(int rank, const LetterHead& head);
  void post_weights(int rank, bool again);
  void ask_for_patience();

  Mailbox& mailbox_;
  int servers_;
  ServerRule rule_;
  std::optional<std::int64_t> max_staleness_;
  PushJudge judge_;
  bool may_be_succeeded_;
  std::vector<Client> clients_;  // the clients in the order of ranks
  PartDeal deal_;
  ClientTable table_;
  Snapshot begins_with_;
  std::int64_t version_ = 0;
  std::int64_t answers_ = 0;  // number of letters with weights, including those of servers before this one
  WeightForm form_;
  std::optional<Draft> answer_;        // letter whose content is the weights, or the shard
  std::exception_ptr loss_ = nullptr;  // error of the last death of a client
};

}  // namespace plexaura
