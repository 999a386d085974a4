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

// The server's side: holds the weights, takes in what clients push and answers each push with the weights as they are
// behind it, so that no client gets weights without its own last push and none are sent that nobody asked for. A letter
// has the weights of one version, which counts the pushes. It also deals out the data. When nothing is left to be
// dealt, all clients rest, and all of them get the same weights.
//
// Where several serve, each does so with its shard of the weights, as if that were all of them: with versions, staleness
// and a bound of its own, of which the others do not know. The first one alone deals out the data.
//
// Where the communicator outlives ranks, it goes on when clients die as long as parts are dealt: what these had drawn and
// not pushed is dealt to the others. Between two deals, where clients call each other, all come together anew.
class ParameterServer final : public Server {
 public:
  // The first so many ranks of the mailbox, which outlives this, serve, and all others are clients. `max_staleness`: a client that is more than so
  // many pushes, counted since all rested, ahead of the slowest one at work waits for that one. `push_limit`: see
  // PushJudge. `may_be_succeeded`: clients keep what they get as snapshots, and need its account.
  ParameterServer(Mailbox& mailbox, int servers, const ServerRule& rule,
                  std::optional<std::int64_t> max_staleness, double push_limit, bool may_be_succeeded);

  // The weights to begin with are those of the border, unless there is a snapshot. Until all clients have left. Throws a
  // RankLost where one has died and all come together anew, or all have, and where clients wait and nobody writes within
  // the deadline; and UserError, which ends the run, where a push is not taken in. Of a server that has thrown the table and newest() alone are used any more.
  void serve(WeightsImmigration& border) override;

  const ClientTable& table() const { return table_; }
  // That of the server which has served this one's clients before, and others.
  void go_on_from(const ClientTable& table);
  // Before serve(): the server goes on with these weights, what is left of the parts, and the table. May be null.
  void begin_with(Snapshot snapshot);
  // As it stands; null where it has none and does not serve yet.
  Snapshot newest() const;

 private:
  enum class State : std::uint8_t {
    works,
    waits,  // it has pushed, and gets its weights when it may go on
    rests,  // the same when all others rest, too
    gone,
    lost  // it has died
  };
  struct Client {
    State state = State::works;
    std::int64_t pushes = 0;                  // since all rested
    std::optional<DealtSteps> asks_for = {};  // a part of these, and was not answered yet

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
  void go_on();
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
  std::vector<Client> clients_;  // in the order of ranks
  PartDeal deal_;
  ClientTable table_;
  Snapshot begins_with_;
  std::int64_t version_ = 0;
  std::int64_t answers_ = 0;  // with weights, of servers before this one, too
  WeightForm form_;
  std::optional<Draft> answer_;        // its content are the weights, or the shard
  std::exception_ptr loss_ = nullptr;  // the last one
};

}  // namespace plexaura
