#include "app/survivors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "app/report/memory_text.h"
#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/communicator/handshake.h"
#include "distributed/strategies/rebroadcast.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_order.h"
#include "distributed/wire/failure.h"
#include "distributed/wire/tags.h"
#include "training/loop/signals.h"

namespace plexaura {
namespace {

constexpr double as_long_as_it_takes = 1e8;  // seconds; stands for no limit
// The longest time that a spare waits for the other ranks while they compile programs or compute.
constexpr double patience_seconds = 3600;

std::vector<int> first_of(const std::vector<int>& ranks, int count) {
  return {ranks.begin(), ranks.begin() + std::min<std::ptrdiff_t>(count, std::ssize(ranks))};
}

std::vector<int> without(const std::vector<int>& ranks, const std::vector<int>& others) {
  std::vector<int> rest;
  std::ranges::set_difference(ranks, others, std::back_inserter(rest));
  return rest;
}

// Returns the number of ranks that train or serve. Spares are not counted.
int seats_of(const Roles& roles) { return roles.trainers() + static_cast<int>(roles.serving().size()); }

std::string ending(const std::vector<int>& ranks, const char* of_one, const char* of_many) {
  return fmt::format("{} {}", list_ranks(ranks), ranks.size() == 1 ? of_one : of_many);
}

}  // namespace

struct Survivors::Group {
  // `left` is a communicator of the living ranks. `number` is the number of this rank at the start.
  Group(std::unique_ptr<Communicator> left, const Roles& at_start, int number, const RunOptions& options,
        const std::string& processor);

  std::unique_ptr<Communicator> living;
  std::vector<int> numbers;  // for each living rank, its number at the start
  std::unique_ptr<Communicator> exchange;
  std::unique_ptr<Strategy> own_strategy;
  std::optional<Roles> roles;
  std::optional<Rebroadcast> realigning;
  Strategy* strategy = nullptr;

 private:
  void check_served() const;
  void choose_strategy(int shards, const RunOptions& options);
};

Survivors::Group::Group(std::unique_ptr<Communicator> left, const Roles& at_start, int number,
                        const RunOptions& options, const std::string& processor)
    : living(std::move(left)) {
  for (const std::string& text : living->gather_all(std::to_string(number), "who is left"))
    numbers.push_back(std::stoi(text));
  if (!at_start.serving().empty()) check_served();
  const int seats = seats_of(at_start);
  const bool is_spare = living->rank() >= seats;
  exchange = living->size() > seats ? living->split(is_spare ? 1 : 0, "the exchange of gradients")
                                    : living->duplicate("the exchange of gradients");
  if (!is_spare) choose_strategy(options.on_loss == OnLoss::exact ? at_start.trainers() : 0, options);
  roles.emplace(*living, own_strategy.get(), is_spare);
  if (is_spare || roles->serves()) return;
  const bool unlike = !find_difference(roles->training(), "the kind of processor", processor).empty();
  if (unlike) strategy = realign(strategy, roles->training(), options.rebroadcast_every, realigning);
}

void Survivors::Group::check_served() const {
  if (numbers.size() > 1) return;
  const DeviceError error(
      fmt::format("all ranks but {} have died, and a parameter server needs a client; continue from the last "
                  "checkpoint with --resume",
                  numbers.front()));
  agree_on_error(*living, std::make_exception_ptr(error), "the weights of the ranks that are left");
}

// Makes the strategy of the group. `shards` is the number of shards in each sum of gradients; 0: one for each
// rank.
void Survivors::Group::choose_strategy(int shards, const RunOptions& options) {
  exchange->choose_algorithm(options.algorithm);
  StrategyOptions chosen = options.strategy;
  chosen.even_alone = shards > 0 || keeps_own_weights(chosen.name);
  own_strategy = make_strategy(chosen, *exchange);
  strategy = own_strategy.get();
  if (shards > 0) exchange->bring_shards(shards);
}

Survivors::Survivors(const Roles& roles, Strategy* strategy, const RunOptions& options, std::string processor,
                     RecordFiles files)
    : roles_at_start_(roles),
      strategy_at_start_(strategy),
      trainers_(roles.trainers()),
      options_(options),
      processor_(std::move(processor)),
      files_(std::move(files)),
      trains_(!roles.is_spare() && !roles.serves()),
      numbers_(static_cast<std::size_t>(roles.all().size())) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

Survivors::~Survivors() = default;

const Roles& Survivors::roles() const { return group_ ? *group_->roles : roles_at_start_; }

Strategy& Survivors::strategy() const {
  return strategy_or_none(group_ ? group_->strategy : strategy_at_start_);
}

bool Survivors::has_spares() const { return roles().all().size() > seats_of(roles_at_start_); }

TrainingResult Survivors::run(ParameterStore& store, Backend& backend, Trainer* trainer, RunReport* report) {
  const StopSignals signals;  // lives also while ranks regroup; a spare ignores signals
  await_the_beginning();
  std::vector<std::reference_wrapper<TrainingObserver>> observers;
  if (report != nullptr) observers.emplace_back(*report);
  for (bool is_lost = false;; is_lost = true) {
    TrainingResult result;
    bool has_ended = false;
    try {
      if (is_lost) proceed(trainer, report);
      if (roles().serves()) {
        roles().serve(strategy(), store, backend, options_.trainer.bucket_bytes);
      } else if (trains_) {
        roles().share_parameters(store);
        result = trainer->run(observers);
        if (has_spares()) notify_spares(result.signal, "the end of training");
      } else {
        result.signal = stand_by();
      }
      has_ended = true;
    } catch (const RankLost& loss) {
      if (!is_outlived(loss)) throw;
    }
    if (all_have_ended(has_ended)) return result;
  }
}

// Called after all ranks have ended their work. So the death of a rank, which the others outlive, has no effect.
int Survivors::share_status(int mine) const {
  try {
    return roles().share_status(mine);
  } catch (const RankLost& loss) {
    if (!loss.is_outlived()) throw;
    return mine;
  }
}

bool Survivors::is_outlived(const RankLost& loss) const {
  return loss.is_outlived() && roles_at_start_.all().outlives_ranks();
}

// Returns true if all ranks have ended. A rank that has ended may have to continue: other ranks may have died
// before they could report the end to a third rank.
bool Survivors::all_have_ended(bool has_ended) {
  Communicator& all = roles_at_start_.all();
  if (!all.outlives_ranks()) return has_ended;
  // While ranks agree, no other thread may call Open MPI 5: its agreements would fail, or crash.
  strategy().give_up();
  return all.agree(has_ended, patience());
}

// Returns the seconds to wait for other ranks to regroup. A spare and a rank that serves wait longer, because ranks
// that train detect a death only after their current computation. 0 means the deadline of the communicator.
double Survivors::patience() const { return trains_ ? 0 : patience_seconds; }

// Waits until training begins. A death before that ends the run: a spare ends with the same error as the
// other ranks.
void Survivors::await_the_beginning() {
  if (!has_spares()) return;
  if (trains_) return notify_spares(0, "the beginning of training");
  report_event(EventKind::spare, 1);
  hear(patience_seconds, "the beginning of training");
}

// Waits as a spare. Returns the signal that ended the run. Throws RankLost if a rank dies, so that run()
// regroups.
int Survivors::stand_by() {
  report_event(EventKind::spare, 1);
  return hear(as_long_as_it_takes, "the death of another rank");
}

// Sends the signal from rank 0, which trains, to all spares.
void Survivors::notify_spares(int signal, std::string_view what) {
  Communicator& living = roles().all();
  if (living.rank() != 0) return;
  const std::array<std::int32_t, 1> message{signal};
  for (int spare = trainers_; spare < living.size(); ++spare)
    living.send({spare, tag::spares}, std::as_bytes(std::span(message)), what);
}

int Survivors::hear(double deadline_seconds, std::string_view what) {
  std::array<std::int32_t, 1> message{};
  roles().all().receive({0, tag::spares, deadline_seconds}, std::as_writable_bytes(std::span(message)), what);
  return message[0];
}

// Makes a group of the ranks that are left.
void Survivors::regroup() {
  const Strategy* former = former_.empty() ? strategy_at_start_ : former_.back()->strategy;
  if (group_) {
    former = group_->strategy;
    former_.push_back(std::move(group_));
  }
  Communicator& all = roles_at_start_.all();
  group_ =
      std::make_unique<Group>(all.without({}, patience()), roles_at_start_, all.rank(), options_, processor_);
  if (former != nullptr) strategy().continue_from(*former);
}

void Survivors::proceed(Trainer* trainer, RunReport* report) {
  const bool was_spare = !trains_;
  regroup();
  trains_ = !group_->roles->is_spare() && !group_->roles->serves();
  if (group_->roles->serves() && trainer != nullptr) trainer->step_aside();
  if (!trains_) return former_.clear();
  if (was_spare) report_event(EventKind::spare, 0);
  const bool exact = options_.on_loss == OnLoss::exact;
  trainer->regroup(ranks(), group_->strategy, exact ? std::optional(taken_parts()) : std::nullopt);
  former_.clear();
  const auto facts = trainer->facts();
  check_agreement(ranks(), facts);
  const std::string sentence = note_who_is_left() + " from step " + facts.at("the first step");
  report_event(EventKind::survived, group_->living->size(), sentence);
  if (ranks().rank() == 0) report->speak(files_);
  report->say(sentence);
  report->say(memory_sentence(*trainer, options_.trainer));
}

// Returns the parts of a step that this rank computes. All ranks compute the same division.
TakenParts Survivors::taken_parts() const {
  const auto blocks = divide_shards(trainers_, ranks().size());
  const ShardRange own = blocks[static_cast<std::size_t>(ranks().rank())];
  return {trainers_, {own.first, own.last - own.first}};
}

// Returns a sentence such as "rank 2 has died; rank 4 takes over; ranks 0, 1, 3 and 4 continue", with the
// numbers at the start. All ranks return the sentence of the lowest rank, which has trained from the start
// and so knows the ranks of the former group.
std::string Survivors::note_who_is_left() {
  const int seats = seats_of(roles_at_start_);
  const std::vector<int> at_work = first_of(group_->numbers, seats);
  std::vector<int> new_ones = without(at_work, first_of(numbers_, seats));
  if (!roles().serving().empty() && at_work.front() != numbers_.front()) new_ones = {at_work.front()};
  const std::vector<int> dead = without(numbers_, group_->numbers);
  std::string sentence = dead.empty() ? "no rank has died" : ending(dead, "has died", "have died");
  if (!new_ones.empty()) sentence += "; " + ending(new_ones, "takes over", "take over");
  sentence += "; " + ending(at_work, "continues", "continue");
  numbers_ = group_->numbers;
  return ranks().gather_all(sentence, "which ranks continue").front();
}

}  // namespace plexaura
