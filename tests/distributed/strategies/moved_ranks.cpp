#include "tests/distributed/strategies/moved_ranks.h"

#include <atomic>
#include <doctest/doctest.h>
#include <string>

#include "backends/registry.h"
#include "tests/support/leaving_collective.h"
#include "tests/support/passing_collective.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing {

namespace {

std::vector<ParameterSpec> specs(DType dtype) {
  const TensorType type{dtype, {2}};
  return {{"weight", type, ParameterRole::trainable, Initialiser::zeros()},
          {"second", type, ParameterRole::trainable, Initialiser::zeros()},
          {"running", type, ParameterRole::buffer, Initialiser::zeros()},
          {"frozen", type, ParameterRole::frozen, Initialiser::zeros()}};
}

Placement placement(DType dtype) {
  Placement placement{ArenaTypes::all(dtype), {}};
  for (const ParameterSpec& spec : specs(dtype))
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  return placement;
}

}  // namespace

struct MovedRank::Parts {
  explicit Parts(DType dtype) : backend(open_backend("cpu")), store(specs(dtype)) {
    store.place(placement(dtype), *backend);
  }

  std::unique_ptr<Backend> backend;
  ParameterStore store;
  std::unique_ptr<WeightsImmigration> border;
};

MovedRank::MovedRank(Strategy& strategy, DType dtype)
    : parts_(std::make_unique<Parts>(dtype)), strategy_(strategy.parts()) {
  parts_->border = std::make_unique<WeightsImmigration>(parts_->store, 1 << 20);
  strategy.begin(*parts_->border);
}

MovedRank::~MovedRank() = default;

void MovedRank::step(const StepPlace& place, double to) {
  parts_->border->begin_step(place, false);
  for (const ParameterSpec& spec : parts_->store.specs())
    parts_->store.write(spec.name, Tensor::of<double>(Shape{2}, {to, -to}).cast(spec.type.dtype));
  strategy_.weights->after_update();
}

void MovedRank::proceed(Strategy& next, const StepPlace& place) {
  std::vector<StrategyState> state = strategy_.state->state();
  strategy_ = next.parts();
  parts_->border = std::make_unique<WeightsImmigration>(parts_->store, 1 << 20);
  next.begin(*parts_->border);
  parts_->border->begin_step(place, false);
  strategy_.state->take_state(std::move(state));
  strategy_.state->complete_exchange();
}

void MovedRank::serve() { strategy_.server->serve(*parts_->border); }

Numbers MovedRank::values() const { return read({"weight", "running", "frozen"}); }

Numbers MovedRank::weights() const { return read({"weight", "second"}); }

Numbers MovedRank::read(const std::vector<std::string>& names) const {
  Numbers values;
  for (const std::string& name : names) {
    const std::vector<double> both = parts_->store.read(name).to_doubles();
    CHECK(both[0] == -both[1]);
    values.push_back(both[0]);
  }
  return values;
}

namespace {

std::vector<Numbers> read_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps,
                                 const std::vector<std::int64_t>& samples, int of_rank, DType dtype,
                                 Numbers (MovedRank::*read)() const) {
  std::vector<Numbers> seen;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto strategy = make(ranks);
    MovedRank rank(*strategy, dtype);
    for (StepPlace place : steps) {
      place.samples = samples.at(static_cast<std::size_t>(ranks.rank()));
      rank.step(place, ranks.rank() == 0 ? 8 : 16);
      if (ranks.rank() == of_rank) seen.push_back((rank.*read)());
    }
  });
  return seen;
}

}  // namespace

std::vector<Numbers> values_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps,
                                   const std::vector<std::int64_t>& samples, int of_rank, DType dtype) {
  return read_behind(make, steps, samples, of_rank, dtype, &MovedRank::values);
}

std::vector<Numbers> weights_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps) {
  return read_behind(make, steps, {4, 4}, 0, DType::float64, &MovedRank::weights);
}

namespace {

double goal(int rank) { return 8.0 * (rank + 1); }

void make_steps(MovedRank& rank, std::vector<StepPlace> steps, double to) {
  for (StepPlace& place : steps) {
    place.samples = 4;
    rank.step(place, to);
  }
}

struct Survivor {
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<MovedRank> rank;
};

void train_until_loss(Collective& ranks, const MakeStrategy& make, const LossOfLast& loss, Survivor& survivor,
                      std::atomic<bool>& one_has_heard) {
  LeavingCollective leaving(ranks, ranks.rank() == 2 ? loss.call : std::string_view());
  PassingCollective passing(leaving, loss.one_has_passed && ranks.rank() == 0 ? loss.call : "",
                            one_has_heard);
  survivor.strategy = make(passing);
  survivor.rank = std::make_unique<MovedRank>(*survivor.strategy);
  try {
    make_steps(*survivor.rank, loss.steps, goal(ranks.rank()));
  } catch (const Gone&) {
  } catch (const RankLost&) {
    one_has_heard = true;
  }
  if (ranks.rank() == 0) make_steps(*survivor.rank, loss.ahead, goal(0));
  if (loss.shown) survivor.strategy->parts().weights->show_weights();
}

}  // namespace

std::array<std::vector<Numbers>, 2> values_without_last(const MakeStrategy& make, const LossOfLast& loss) {
  std::array<Survivor, 3> all;
  std::atomic<bool> one_has_heard = false;
  ThreadRanks(3).run([&](Collective& ranks) {
    train_until_loss(ranks, make, loss, all.at(static_cast<std::size_t>(ranks.rank())), one_has_heard);
  });
  std::array<std::vector<Numbers>, 2> seen;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto number = static_cast<std::size_t>(ranks.rank());
    MovedRank& rank = *all.at(number).rank;
    const auto next = make(ranks);
    rank.proceed(*next, loss.ahead.empty() ? loss.steps.back() : loss.ahead.back());
    seen.at(number).push_back(rank.values());
    for (const StepPlace& place : loss.behind) {
      make_steps(rank, {place}, goal(ranks.rank()));
      seen.at(number).push_back(rank.values());
    }
  });
  return seen;
}

}  // namespace plexaura::testing
