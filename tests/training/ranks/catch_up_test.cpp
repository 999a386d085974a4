#include "training/ranks/catch_up.h"

#include <array>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::catch_up_test {

namespace {

constexpr int count = 3;

// Makes a store whose arenas have different dtypes.
ParameterStore make_store(Backend& backend, double value) {
  const TensorType type{DType::float32, {3}};
  ParameterStore store({{"weight", type, ParameterRole::trainable, Initialiser::zeros()},
                        {"seen", type, ParameterRole::buffer, Initialiser::zeros()},
                        {"fixed", type, ParameterRole::frozen, Initialiser::zeros()}});
  Placement placement;
  placement.types = {DType::float32, DType::float32, DType::float64, DType::float16};
  store.set_types(placement.types);
  placement.append("weight", type, ParameterRole::trainable, Layout::row_major(1));
  placement.append("seen", type, ParameterRole::buffer, Layout::row_major(1));
  store.place(placement, backend);
  store.require_states(2);
  Tensor tensor(type);
  for (float& element : tensor.as<float>()) element = static_cast<float>(value);
  for (const char* name : {"weight", "seen", "fixed"}) store.write(name, tensor);
  for (const int index : {0, 1}) store.write_state(index, "weight", tensor.cast(DType::float64));
  store.write_loss_scale({.skipped_steps = static_cast<float>(value)});
  return store;
}

// The result of each rank, and the place that all agree on.
struct End {
  RunPlace place;
  std::array<double, count> weights{};
};

// Runs the meeting of ranks. All values of a rank are its number.
End meet(const std::array<RunPlace, count>& places, bool unlike = false) {
  End end;
  ThreadRanks(count).run([&](Collective& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = make_store(*backend, static_cast<double>(rank));
    const std::uint64_t version = store.version();
    const RunPlace place = catch_up(ranks, places.at(rank), store, unlike);
    if (rank == 0) end.place = place;
    const Tensor weight = store.read("weight");
    for (const char* name : {"seen", "fixed"}) CHECK(store.read(name) == weight);
    for (const int index : {0, 1}) CHECK(store.read_state(index, "weight") == weight.cast(DType::float64));
    CHECK(store.read_shadow("weight") == weight.cast(DType::float16));
    CHECK(store.read_loss_scale().skipped_steps == weight.as<float>()[2]);
    end.weights.at(rank) = weight.to_doubles()[2];
    const bool changed = weight.to_doubles()[2] != static_cast<double>(rank);
    CHECK((store.version() > version) == changed);
  });
  return end;
}

}  // namespace

TEST_CASE("ranks that are behind take everything from the lowest that is ahead") {
  const RunPlace behind{.step = 3, .step_in_epoch = 3};
  const RunPlace ahead{.step = 4, .epoch = 1, .epoch_loss = 2.5, .epoch_ended = true};
  const End end = meet({behind, ahead, ahead});
  CHECK(end.weights == std::array<double, count>{1, 1, 1});
  CHECK(end.place.step == 4);
  CHECK(end.place.epoch == 1);
  CHECK(end.place.epoch_loss == 2.5);
  CHECK(end.place.epoch_ended);
}

TEST_CASE("ranks behind one step keep what they have, and validate where one of them has still to") {
  const End end = meet(
      {RunPlace{.step = 4, .saved = true}, RunPlace{.step = 4, .epoch_ended = true}, RunPlace{.step = 4}});
  CHECK(end.weights == std::array<double, count>{0, 1, 2});
  CHECK(end.place.epoch_ended);
  CHECK_FALSE(end.place.saved);
}

TEST_CASE(
    "ranks whose steps were dealt out meet the others where none of them has, and else have their sums") {
  const RunPlace apart{.step = 4, .epoch_loss = 1, .is_to_meet = true};
  CHECK(meet({apart, apart, apart}).place.is_to_meet);
  for (const bool ended : {true, false}) {
    const End end = meet({apart, RunPlace{.step = 4, .epoch_loss = 3, .epoch_ended = ended}, apart});
    CHECK_FALSE(end.place.is_to_meet);
    CHECK(end.place.epoch_ended == ended);
    CHECK(end.place.epoch_loss == 3);
    CHECK(end.weights == std::array<double, count>{0, 1, 2});
  }
}

TEST_CASE("a spare takes everything from the lowest rank, before the first step as well") {
  const RunPlace spare{.step = RunPlace::nowhere};
  const PlateauState plateau{.observations = 3, .best = 0.5, .reductions = 1};
  const RunPlace place{.step = 7, .first_step = 5, .plateau = plateau, .saved = true};
  const End end = meet({place, place, spare});
  CHECK(end.weights == std::array<double, count>{0, 0, 0});
  CHECK(end.place.step == 7);
  CHECK(end.place.first_step == 5);
  CHECK(end.place.plateau == plateau);
  CHECK(meet({spare, RunPlace{}, spare}).weights == std::array<double, count>{1, 1, 1});
}

TEST_CASE("spares alone have nothing to go on from") {
  const RunPlace spare{.step = RunPlace::nowhere};
  CHECK(device_error([&] {
          meet({spare, spare, spare});
        })
            .starts_with("all ranks that trained have died or ended, and spares take their weights from one "
                         "that is left; "));
}

TEST_CASE("ranks that all train for themselves take the place of the one that is ahead, and no weights") {
  const RunPlace behind{.step = 3, .keeps_own = true};
  RunPlace ahead{.step = 4, .keeps_own = true};
  const End end = meet({behind, ahead, behind}, true);
  CHECK(end.weights == std::array<double, count>{0, 1, 2});
  CHECK(end.place.step == 4);
  CHECK(end.place.keeps_own);
  ahead.keeps_own = false;  // it has lost its state
  CHECK(meet({behind, ahead, behind}).weights == std::array<double, count>{1, 1, 1});
  CHECK_FALSE(meet({behind, ahead, behind}).place.keeps_own);
}

TEST_CASE("ranks behind one step whose weights may be unlike take those of one") {
  const RunPlace place{.step = 4};
  CHECK(meet({place, place, place}, true).weights == std::array<double, count>{0, 0, 0});
}

}  // namespace plexaura::testing::catch_up_test
