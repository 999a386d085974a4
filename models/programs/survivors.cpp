#include "models/programs/survivors.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "core/events.h"
#include "distributed/failure/failure.h"
#include "distributed/handshake.h"
#include "distributed/strategies/rebroadcast.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

struct Survivors::Group {
  // `shards`: of which sums are made; 0: one for each rank.
  Group(std::unique_ptr<Communicator> left, const RunOptions& options, const std::string& processor,
        int shards);

  std::unique_ptr<Communicator> ranks;
  std::unique_ptr<Communicator> exchange;
  std::unique_ptr<Strategy> own_strategy;
  std::optional<Rebroadcast> realigning;
  Strategy* strategy;
};

Survivors::Group::Group(std::unique_ptr<Communicator> left, const RunOptions& options,
                        const std::string& processor, int shards)
    : ranks(std::move(left)), exchange(ranks->duplicate("the exchange of gradients")) {
  exchange->choose_algorithm(options.algorithm);
  StrategyOptions chosen = options.strategy;
  chosen.even_alone = shards > 0;
  own_strategy = make_strategy(chosen, *exchange);
  strategy = own_strategy.get();
  if (shards > 0) exchange->bring_shards(shards);
  const bool unlike = !find_difference(*ranks, "the kind of processor", processor).empty();
  if (unlike && strategy != nullptr && !strategy->realigns_weights())
    strategy = &realigning.emplace(*strategy, *ranks, options.rebroadcast_every);
}

Survivors::Survivors(Communicator& all, const RunOptions& options, std::string processor, std::string log)
    : all_(all),
      options_(options),
      processor_(std::move(processor)),
      log_(std::move(log)),
      number_(all.rank()),
      numbers_(static_cast<std::size_t>(all.size())) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

Survivors::~Survivors() = default;

Communicator& Survivors::ranks() { return group_ ? *group_->ranks : all_; }

TrainingResult Survivors::run(Trainer& trainer, RunReport& report) {
  bool is_lost = false;
  while (true) try {
      if (is_lost) go_on(trainer, report);
      is_lost = false;
      return trainer.run(report);
    } catch (const RankLost& loss) {
      if (!loss.is_outlived() || !all_.outlives_ranks()) throw;
      is_lost = true;
    }
}

// The group before lives until the trainer has let go of it.
void Survivors::go_on(Trainer& trainer, RunReport& report) {
  const std::unique_ptr<Group> before = std::move(group_);
  const bool exact = options_.on_loss == OnLoss::exact;
  group_ = std::make_unique<Group>(all_.without({}), options_, processor_, exact ? all_.size() : 0);
  trainer.regroup(*group_->ranks, group_->strategy, exact ? std::optional(taken_parts()) : std::nullopt);
  const auto facts = trainer.facts();
  check_agreement(*group_->ranks, facts);
  const std::string sentence = note_who_is_left() + " from step " + facts.at("the first step");
  tell_event(EventKind::survived, group_->ranks->size(), sentence);
  if (group_->ranks->rank() == 0) report.speak(log_);
  report.say(sentence);
}

// All ranks divide the parts alike.
TakenParts Survivors::taken_parts() const {
  const auto blocks = divide_shards(all_.size(), group_->ranks->size());
  const ShardRange own = blocks[static_cast<std::size_t>(group_->ranks->rank())];
  return {all_.size(), {own.first, own.last - own.first}};
}

// "rank 2 has died; ranks 0, 1 and 3 go on", numbered as at the start.
std::string Survivors::note_who_is_left() {
  std::vector<int> left;
  for (const std::string& number : group_->ranks->gather_all(std::to_string(number_), "who is left"))
    left.push_back(std::stoi(number));
  std::vector<int> dead;
  std::ranges::set_difference(numbers_, left, std::back_inserter(dead));
  numbers_ = std::move(left);
  return fmt::format("{} {} died; {} {} on", list_ranks(dead), dead.size() == 1 ? "has" : "have",
                     list_ranks(numbers_), numbers_.size() == 1 ? "goes" : "go");
}

}  // namespace plexaura
