#include "training/ranks/verify_ranks.h"

#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <map>
#include <mutex>
#include <vector>

#include "backends/registry.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::verify_ranks_test {

namespace {

constexpr std::int64_t no_state = -1;

void flip(ParameterStore& store, const char* name, std::int64_t state = no_state) {
  Tensor value = state < 0 ? store.read(name) : store.read_state(state, name);
  value.data()[value.bytes() - 1] ^= std::byte{1};
  state < 0 ? store.write(name, value) : store.write_state(state, name, value);
}

ParameterStore placed_store() {
  ParameterStore store = small_store();
  Placement placement;
  placement.types = ArenaTypes::all(DType::float64);
  for (const ParameterSpec& spec : store.specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(2));
  store.place(placement, test_backend());
  store.require_states(2);
  return store;
}

bool holds(const ParameterStore& store, const ParameterStore& other) {
  for (const ParameterSpec& spec : other.specs()) {
    if (!(store.read(spec.name) == other.read(spec.name))) return false;
    for (std::int64_t state = 0; state < other.states(); ++state)
      if (!(store.read_state(state, spec.name) == other.read_state(state, spec.name))) return false;
  }
  return true;
}

// Trains on this number of ranks, and flips a bit of rank 1 after step 4. Returns true if all ranks end with
// equal values.
template <class S = SummingStrategy>
bool ends_equal(int count, std::int64_t verify_every, std::int64_t steps = 9) {
  std::map<int, std::vector<double>> ends;
  std::mutex mutex;
  ThreadRanks(count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    S strategy(ranks);
    TrainerOptions options = momentum();
    options.steps = steps;
    options.verify_every = verify_every;
    Trainer trainer({small_model, store, *backend, points(40), {}, &ranks, &strategy}, options);
    Recorder observer;
    observer.after_step = [&](const StepRecord& record) {
      if (record.step == 4 && ranks.rank() == 1) flip(store, "first");
    };
    trainer.run(observer);
    const std::lock_guard lock(mutex);
    ends[ranks.rank()] = weights(store);
  });
  return std::ranges::all_of(ends, [&](const auto& end) { return end.second == ends[0]; });
}

// Ranks that may differ: each trains for itself, or keeps its own weights until it gets others.
class Apart final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  StrategyParts parts() override { return {.weights = &no_exchange_, .scope = GradientScope::local}; }

 private:
  WeightExchange no_exchange_;
};

class Realigning final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  StrategyParts parts() override { return {.gradients = this, .realigns_weights = true}; }
};

}  // namespace

TEST_CASE("ranks that may differ are not compared") {
  CHECK(!ends_equal<Apart>(3, 2));
  CHECK(!ends_equal<Realigning>(3, 2));
}

TEST_CASE("ranks that train are compared every so many steps, and at the end") {
  CHECK(!ends_equal(3, 0));
  CHECK(ends_equal(3, 2));
  CHECK(ends_equal(3, 1000));
  CHECK(error_text<DeviceError>([] {
          ends_equal(2, 2);
        }).starts_with("after step 4 the 2 ranks hold different bits in "));
}

TEST_CASE("ranks that hold the same are left alone") {
  ThreadRanks(3).run([&](Collective& ranks) {
    ParameterStore store = placed_store();
    const std::uint64_t version = store.version();
    verify_ranks(ranks, store, 5, ranks.rank());
    CHECK(store.version() == version);
  });
}

TEST_CASE("a rank that holds other bits than the majority takes those of the majority") {
  const ParameterStore right = placed_store();
  for (int wrong = 0; wrong < 3; ++wrong)
    ThreadRanks(3).run([&](Collective& ranks) {
      ParameterStore store = placed_store();
      if (ranks.rank() == wrong) {
        flip(store, "second");
        flip(store, "first", 1);
      }
      verify_ranks(ranks, store, 5, ranks.rank());
      CHECK(holds(store, right));
    });
}

TEST_CASE("a loss scale that differs is that of the majority again") {
  ThreadRanks(3).run([&](Collective& ranks) {
    ParameterStore store({{"weight", {DType::float32, {3}}, ParameterRole::trainable, Initialiser::zeros()}});
    store.set_types(ArenaTypes::mixed(DType::float16));
    store.place({}, test_backend());
    if (ranks.rank() == 2) store.write_loss_scale({.scale = 32});
    verify_ranks(ranks, store, 5, ranks.rank());
    CHECK(store.read_loss_scale() == LossScale{});
  });
}

TEST_CASE("several ranks may hold wrong bits, each in another tensor") {
  const ParameterStore right = placed_store();
  ThreadRanks(5).run([&](Collective& ranks) {
    ParameterStore store = placed_store();
    if (ranks.rank() == 0) flip(store, "first");
    if (ranks.rank() >= 3) flip(store, "second");
    verify_ranks(ranks, store, 5, ranks.rank());
    CHECK(holds(store, right));
  });
}

TEST_CASE("where no majority agrees the run ends, and nothing is changed") {
  std::atomic<int> unchanged = 0;
  const std::string text = error_text<DeviceError>([&] {
    ThreadRanks(4).run([&](Collective& ranks) {
      ParameterStore store = placed_store();
      if (ranks.rank() == 1) flip(store, "first");      // three ranks agree
      if (ranks.rank() >= 2) flip(store, "second", 0);  // two ranks against two
      ParameterStore before = placed_store();
      if (ranks.rank() == 1) flip(before, "first");
      if (ranks.rank() >= 2) flip(before, "second", 0);
      try {
        verify_ranks(ranks, store, 70, ranks.rank());
      } catch (const DeviceError&) {
        if (holds(store, before)) ++unchanged;
        throw;
      }
    });
  });
  CHECK(unchanged == 4);
  CHECK(
      text ==
      "after step 70 the 4 ranks hold different bits in state 0 of the optimizer for second, and no majority "
      "shows which are right: the memory or the processor of a rank is faulty, or a strategy of your own "
      "treats ranks differently; check the machines, and continue "
      "from the last checkpoint with --resume");
}

}  // namespace plexaura::testing::verify_ranks_test
