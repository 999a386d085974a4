#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/params/weights_immigration.h"
#include "distributed/group/wait.h"
#include "distributed/mailbox.h"
#include "distributed/server/client_table.h"
#include "distributed/server/letters.h"
#include "distributed/server/part_deal.h"
#include "distributed/server/server_rule.h"

namespace plexaura {

// The server's side: holds the weights, takes in what clients push and answers each push with the weights as they are
// behind it, so that no client gets weights without its own last push and none are sent that nobody asked for. A letter
// has the weights of one version, which counts the pushes. It also deals out the data. When nothing is left to be
// dealt, all clients rest, and all of them get the same weights.
class ParameterServer {
 public:
  // All other ranks of the mailbox, which outlives this, are clients. `max_staleness`: a client that is more than so
  // many pushes, counted since all rested, ahead of the slowest one at work waits for that one.
  ParameterServer(Mailbox& mailbox, const ServerRule& rule, std::optional<std::int64_t> max_staleness);

  // The weights to begin with are those of the border. Until all clients have left. Throws a RankLost where one dies,
  // or where clients wait and nobody writes within the deadline.
  void serve(WeightsImmigration& border);

  const ClientTable& table() const { return table_; }

 private:
  enum class State : std::uint8_t {
    works,
    waits,  // it has pushed, and gets its weights when it may go on
    rests,  // the same when all others rest, too
    gone
  };
  struct Client {
    State state = State::works;
    std::int64_t pushes = 0;  // since all rested

    bool awaits_weights() const { return state == State::waits || state == State::rests; }
  };

  Client& client(int rank) { return clients_[static_cast<std::size_t>(rank - 1)]; }
  bool all_are(State state) const;
  bool somebody_waits() const;
  void read(const Letter& letter);
  void take_push(const Letter& letter, const LetterHead& head);
  void go_on();
  bool is_ahead(const Client& client) const;
  void post(int rank, const LetterHead& head, bool with_weights);
  void send_weights(int rank);
  void ask_for_patience();

  Mailbox& mailbox_;
  ServerRule rule_;
  std::optional<std::int64_t> max_staleness_;
  std::vector<Client> clients_;  // the first is rank 1
  PartDeal deal_;
  ClientTable table_;
  std::int64_t version_ = 0;
  DType dtype_ = DType::float32;
  std::size_t trainables_ = 0;
  std::optional<Draft> answer_;  // its content are the weights
};

}  // namespace plexaura
