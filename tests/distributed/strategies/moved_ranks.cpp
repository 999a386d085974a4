#include "tests/distributed/strategies/moved_ranks.h"

#include <doctest/doctest.h>
#include <string>

#include "backends/registry.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing {

namespace {

std::vector<ParameterSpec> specs() {
  const TensorType type{DType::float64, {2}};
  return {{"weight", type, ParameterRole::trainable, Initialiser::zeros()},
          {"running", type, ParameterRole::buffer, Initialiser::zeros()},
          {"frozen", type, ParameterRole::frozen, Initialiser::zeros()}};
}

Placement placement() {
  Placement placement{ArenaTypes::all(DType::float64), {}};
  for (const ParameterSpec& spec : specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  return placement;
}

}  // namespace

struct MovedRank::Parts {
  Parts() : backend(open_backend("cpu")), store(specs()) { store.place(placement(), *backend); }

  std::unique_ptr<Backend> backend;
  ParameterStore store;
  std::unique_ptr<WeightsImmigration> border;
};

MovedRank::MovedRank(Strategy& strategy) : parts_(std::make_unique<Parts>()), strategy_(strategy) {
  parts_->border = std::make_unique<WeightsImmigration>(parts_->store, 1 << 20);
  strategy_.begin(*parts_->border);
}

MovedRank::~MovedRank() = default;

void MovedRank::step(const StepPlace& place, double to) {
  parts_->border->begin_step(place, false);
  for (const ParameterSpec& spec : specs())
    parts_->store.write(spec.name, Tensor::of<double>(Shape{2}, {to, -to}));
  strategy_.after_update();
}

void MovedRank::serve() { strategy_.serve(*parts_->border); }

Numbers MovedRank::values() const {
  Numbers values;
  for (const ParameterSpec& spec : specs()) {
    const std::vector<double> both = parts_->store.read(spec.name).to_doubles();
    CHECK(both[0] == -both[1]);
    values.push_back(both[0]);
  }
  return values;
}

std::vector<Numbers> values_behind(const std::function<std::unique_ptr<Strategy>(Collective&)>& make,
                                   const std::vector<StepPlace>& steps,
                                   const std::vector<std::int64_t>& samples, int of_rank) {
  std::vector<Numbers> seen;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto strategy = make(ranks);
    MovedRank rank(*strategy);
    for (StepPlace place : steps) {
      place.samples = samples.at(static_cast<std::size_t>(ranks.rank()));
      rank.step(place, ranks.rank() == 0 ? 8 : 16);
      if (ranks.rank() == of_rank) seen.push_back(rank.values());
    }
  });
  return seen;
}

}  // namespace plexaura::testing
