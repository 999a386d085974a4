#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/params/dealer.h"
#include "core/params/weights_immigration.h"
#include "distributed/group/wait.h"
#include "distributed/mailbox.h"
#include "distributed/server/letters.h"
#include "distributed/server/server_rule.h"
#include "distributed/server/shared_weights.h"

namespace plexaura {

// A client's side: draws the parts on which it trains, each while it is at work on the one before, pushes every so many
// steps what it has learned, and goes on with the weights that come as the answer. It waits for the server with each
// draw and each push, and for other clients only where ParameterServer says so.
class ParameterClient final : public Dealer {
 public:
  // The mailbox, whose rank 0 is the server, outlives this. `push_every`: steps; none: it pushes when nothing more is
  // dealt.
  ParameterClient(Mailbox& mailbox, const ServerRule& rule, std::optional<std::int64_t> push_every);

  // Throws UserError for weights of a type other than float64 and float32, and for those that no letter holds.
  void begin(WeightsImmigration& border);
  Draw draw(std::int64_t first, std::int64_t end) override;
  void stop() override;
  // Behind each step. Where it does not push then and has written nothing for a while, it tells the server that it is
  // at work.
  void count_step();
  // When nothing more is dealt: comes back with the weights that all clients get then.
  void rest();
  // After the last rest.
  void leave();

 private:
  void push(Word word, std::string_view what);
  void ask_for_part(std::int64_t first, std::int64_t end);
  Letter await(Word word, std::string_view what);
  void post(const LetterHead& head, bool with_content);

  Mailbox& mailbox_;
  ServerRule rule_;
  std::optional<std::int64_t> push_every_;
  std::optional<SharedWeights> weights_;
  std::optional<Draft> letter_;
  std::vector<std::byte> began_;  // the weights that it got last, where changes of them are pushed
  std::int64_t version_ = 0;
  std::int64_t steps_ = 0;                 // since then
  bool stopped_ = false;                   // the deal, by this client
  bool has_asked_ = false;                 // for a part
  std::optional<Letter> part_;             // that came before what was awaited
  Wait unheard_;                           // since its last letter
  std::optional<double> deal_began_ = {};  // seconds; none: no deal is open
  double elapsed_ = 0;                     // in deals
  double waited_ = 0;                      // in deals
};

}  // namespace plexaura
