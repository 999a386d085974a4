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

namespace plexaura {

struct Survivors::Group {
  Group(std::unique_ptr<Communicator> left, const RunOptions& options, const std::string& processor);

  std::unique_ptr<Communicator> ranks;
  std::unique_ptr<Communicator> exchange;
  std::unique_ptr<Strategy> own_strategy;
  std::optional<Rebroadcast> realigning;
  Strategy* strategy;
};

Survivors::Group::Group(std::unique_ptr<Communicator> left, const RunOptions& options,
                        const std::string& processor)
    : ranks(std::move(left)),
      exchange(ranks->duplicate("the exchange of gradients")),
      own_strategy(make_strategy(options.strategy, *exchange)),
      strategy(own_strategy.get()) {
  const bool unlike = !find_difference(*ranks, "the kind of processor", processor).empty();
  if (unlike && strategy != nullptr)
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
  group_ = std::make_unique<Group>(all_.without({}), options_, processor_);
  trainer.regroup(*group_->ranks, group_->strategy);
  const auto facts = trainer.facts();
  check_agreement(*group_->ranks, facts);
  const std::string sentence = note_who_is_left() + " from step " + facts.at("the first step");
  tell_event(EventKind::survived, group_->ranks->size(), sentence);
  if (group_->ranks->rank() == 0) report.speak(log_);
  report.say(sentence);
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
