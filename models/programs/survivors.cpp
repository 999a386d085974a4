#include "models/programs/survivors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/events.h"
#include "distributed/failure/failure.h"
#include "distributed/handshake.h"
#include "distributed/strategies/rebroadcast.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_order.h"
#include "training/signals.h"

namespace plexaura {
namespace {

// Of the messages to spares; users of the communicator count theirs from 0.
constexpr int tag = 30'002;
constexpr double as_long_as_it_takes = 1e8;  // seconds
// What a spare waits for while the others make their programs, or compute what they are at.
constexpr double patience_seconds = 3600;

std::vector<int> first_of(const std::vector<int>& ranks, int count) {
  return {ranks.begin(), ranks.begin() + std::min<std::ptrdiff_t>(count, std::ssize(ranks))};
}

std::vector<int> without(const std::vector<int>& ranks, const std::vector<int>& others) {
  std::vector<int> rest;
  std::ranges::set_difference(ranks, others, std::back_inserter(rest));
  return rest;
}

std::string ending(const std::vector<int>& ranks, const char* of_one, const char* of_many) {
  return fmt::format("{} {}", list_ranks(ranks), ranks.size() == 1 ? of_one : of_many);
}

}  // namespace

struct Survivors::Group {
  // `left`: those that live, of which so many train. `number`: of this rank, as at the start.
  Group(std::unique_ptr<Communicator> left, int trainers, int number, const RunOptions& options,
        const std::string& processor);

  std::unique_ptr<Communicator> living;
  std::vector<int> numbers;  // of all of them, as at the start
  std::unique_ptr<Communicator> part;
  Communicator* ranks = nullptr;  // those that train; the rest is theirs alone
  std::unique_ptr<Communicator> exchange;
  std::unique_ptr<Strategy> own_strategy;
  std::optional<Rebroadcast> realigning;
  Strategy* strategy = nullptr;

 private:
  void choose_strategy(int shards, const RunOptions& options, const std::string& processor);
};

Survivors::Group::Group(std::unique_ptr<Communicator> left, int trainers, int number,
                        const RunOptions& options, const std::string& processor)
    : living(std::move(left)) {
  for (const std::string& text : living->gather_all(std::to_string(number), "who is left"))
    numbers.push_back(std::stoi(text));
  const bool trains = living->rank() < trainers;
  if (living->size() > trainers) part = living->split(trains ? 0 : 1, "the ranks that train");
  if (!trains) return;
  ranks = part ? part.get() : living.get();
  choose_strategy(options.on_loss == OnLoss::exact ? trainers : 0, options, processor);
}

// `shards`: of which sums are made; 0: one for each rank.
void Survivors::Group::choose_strategy(int shards, const RunOptions& options, const std::string& processor) {
  exchange = ranks->duplicate("the exchange of gradients");
  exchange->choose_algorithm(options.algorithm);
  StrategyOptions chosen = options.strategy;
  chosen.even_alone = shards > 0 || keeps_own_weights(chosen.name);
  own_strategy = make_strategy(chosen, *exchange);
  strategy = own_strategy.get();
  if (shards > 0) exchange->bring_shards(shards);
  const bool unlike = !find_difference(*ranks, "the kind of processor", processor).empty();
  if (unlike && strategy != nullptr && !strategy->realigns_weights())
    strategy = &realigning.emplace(*strategy, *ranks, options.rebroadcast_every);
}

Survivors::Survivors(const Roles& roles, const RunOptions& options, std::string processor, std::string log)
    : all_(roles.candidates()),
      training_(roles.is_spare() ? nullptr : &roles.training()),
      trainers_(roles.trainers()),
      options_(options),
      processor_(std::move(processor)),
      log_(std::move(log)),
      trains_(!roles.is_spare()),
      numbers_(static_cast<std::size_t>(all_.size())) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

Survivors::~Survivors() = default;

Communicator& Survivors::ranks() { return group_ ? *group_->ranks : *training_; }

Communicator& Survivors::living() { return group_ ? *group_->living : all_; }

bool Survivors::has_spares() { return living().size() > trainers_; }

TrainingResult Survivors::run(Trainer& trainer, RunReport& report) {
  const StopSignals signals;  // also while ranks regroup; a spare leaves them to those that train
  await_the_beginning();
  if (!all_.outlives_ranks()) return trainer.run(report);
  for (bool is_lost = false;; is_lost = true) {
    const std::optional<TrainingResult> end = attempt(is_lost, trainer, report);
    // A rank that has come to the end may be needed by one that has not, as others have died before they could tell it.
    if (all_.agree(end.has_value(), patience())) return *end;
  }
}

// Nothing where another rank has died meanwhile.
std::optional<TrainingResult> Survivors::attempt(bool is_lost, Trainer& trainer, RunReport& report) {
  try {
    if (is_lost) go_on(trainer, report);
    return trains_ ? train(trainer, report) : stand_by();
  } catch (const RankLost& loss) {
    if (!loss.is_outlived()) throw;
    return std::nullopt;
  }
}

// Those that train come when they hear of a death, which may be behind a long computation.
double Survivors::patience() const { return trains_ ? 0 : patience_seconds; }

// Before training begins nobody goes on: a spare that hears of a death then ends as the others do.
void Survivors::await_the_beginning() {
  if (!has_spares()) return;
  if (trains_) return tell_spares(0, "the beginning of training");
  tell_event(EventKind::spare, 1);
  hear(patience_seconds, "the beginning of training");
}

TrainingResult Survivors::train(Trainer& trainer, RunReport& report) {
  TrainingResult result = trainer.run(report);
  if (has_spares()) tell_spares(result.signal, "the end of training");
  return result;
}

TrainingResult Survivors::stand_by() {
  tell_event(EventKind::spare, 1);
  TrainingResult result;
  result.signal = hear(as_long_as_it_takes, "the death of another rank");
  return result;
}

// From the lowest rank, which trains.
void Survivors::tell_spares(int signal, std::string_view what) {
  if (living().rank() != 0) return;
  const std::array<std::int32_t, 1> message{signal};
  for (int spare = trainers_; spare < living().size(); ++spare)
    living().send({spare, tag}, std::as_bytes(std::span(message)), what);
}

int Survivors::hear(double deadline_seconds, std::string_view what) {
  std::array<std::int32_t, 1> message{};
  living().receive({0, tag, deadline_seconds}, std::as_writable_bytes(std::span(message)), what);
  return message[0];
}

void Survivors::go_on(Trainer& trainer, RunReport& report) {
  if (group_) former_.push_back(std::move(group_));
  const bool was_spare = !trains_;
  group_ =
      std::make_unique<Group>(all_.without({}, patience()), trainers_, all_.rank(), options_, processor_);
  trains_ = group_->living->rank() < trainers_;
  if (!trains_) return former_.clear();
  if (was_spare) tell_event(EventKind::spare, 0);
  const bool exact = options_.on_loss == OnLoss::exact;
  trainer.regroup(*group_->ranks, group_->strategy, exact ? std::optional(taken_parts()) : std::nullopt);
  former_.clear();
  const auto facts = trainer.facts();
  check_agreement(*group_->ranks, facts);
  const std::string sentence = note_who_is_left() + " from step " + facts.at("the first step");
  tell_event(EventKind::survived, group_->living->size(), sentence);
  if (group_->ranks->rank() == 0) report.speak(log_);
  report.say(sentence);
}

// All ranks divide the parts alike.
TakenParts Survivors::taken_parts() const {
  const auto blocks = divide_shards(trainers_, group_->ranks->size());
  const ShardRange own = blocks[static_cast<std::size_t>(group_->ranks->rank())];
  return {trainers_, {own.first, own.last - own.first}};
}

// "rank 2 has died; rank 4 takes over; ranks 0, 1, 3 and 4 go on", numbered as at the start. The lowest rank has trained all
// the time, and knows who was there before.
std::string Survivors::note_who_is_left() {
  const std::vector<int> train = first_of(group_->numbers, trainers_);
  const std::vector<int> new_ones = without(train, first_of(numbers_, trainers_));
  std::string sentence = ending(without(numbers_, group_->numbers), "has died", "have died");
  if (!new_ones.empty()) sentence += "; " + ending(new_ones, "takes over", "take over");
  sentence += "; " + ending(train, "goes on", "go on");
  numbers_ = group_->numbers;
  return group_->ranks->gather_all(sentence, "who goes on").front();
}

}  // namespace plexaura
