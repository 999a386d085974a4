// Tests of runs on streams, on one rank and on three ranks that are threads.
#include "training/loop/streams.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <optional>

#include "backends/registry.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/point_stream.h"
#include "tests/training/small_run.h"
#include "training/loop/overfit.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::streams_test {
namespace {

constexpr int rank_count = 3;

// Returns options for epochs of five steps of six samples.
TrainerOptions five_steps() {
  TrainerOptions options = momentum();
  options.batch_size = 6;
  options.steps_per_epoch = 5;
  return options;
}

// A run of one rank.
struct StreamRun {
  ParameterStore store = small_store();
  Recorder seen;
  TrainingResult result;

  void train(const TrainerOptions& options, const PointStreamOptions& stream, bool resumes = false) {
    Trainer trainer({.model = small_model,
                     .store = store,
                     .backend = test_backend(),
                     .train = nullptr,
                     .validation = points(9, 100),
                     .stream = point_stream(stream)},
                    options);
    if (resumes) {
      const bool has_resumed = trainer.resume();
      REQUIRE(has_resumed);
    }
    result = trainer.run(seen);
  }
};

// The end of a run on one of several ranks.
struct RankEnd {
  std::int64_t steps = 0;
  bool stream_ended = false;
  std::size_t epochs = 0;  // that were reported
  std::string error = {};
  std::vector<double> weights = {};
};

std::array<RankEnd, rank_count> ends(const TrainerOptions& options, const PointStreamOptions& stream,
                                     bool resumes = false, double deadline_seconds = 30) {
  std::array<RankEnd, rank_count> ends;
  ThreadRanks(rank_count, deadline_seconds).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Recorder seen;
    RankEnd& end = ends.at(static_cast<std::size_t>(ranks.rank()));
    try {
      Trainer trainer({.model = small_model,
                       .store = store,
                       .backend = *backend,
                       .train = nullptr,
                       .validation = points(9, 100),
                       .collective = &ranks,
                       .strategy = &strategy,
                       .stream = point_stream(stream)},
                      options);
      if (resumes) together(ranks, "resuming", [&] { trainer.resume(); });
      const TrainingResult result = trainer.run(seen);
      end = {.steps = result.steps, .stream_ended = result.stream_ended, .weights = weights(store)};
    } catch (const UserError& error) {
      end.error = error.what();
    }
    end.epochs = seen.epochs.size();
  });
  return ends;
}

std::string refusal(const TrainerOptions& options, const TrainerParts& parts) {
  return user_error([&] { const Trainer trainer(parts, options); });
}

}  // namespace

TEST_CASE("a run on a stream equals a run on the same samples in the same order") {
  TrainerOptions options = five_steps();
  StreamRun streamed;
  streamed.train(options, {.counts = {1000}});
  options.steps_per_epoch = 0;
  options.shuffle = false;
  SmallRun random_access;
  random_access.train(options, points(30), points(9, 100));
  CHECK(streamed.result.steps == 15);
  CHECK(!streamed.result.stream_ended);
  CHECK(weights(streamed.store) == weights(random_access.store));
  REQUIRE(streamed.seen.epochs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(streamed.seen.epochs[i].train_loss == random_access.seen.epochs[i].train_loss);
    CHECK(streamed.seen.epochs[i].val_loss == random_access.seen.epochs[i].val_loss);
  }
}

TEST_CASE("a run ends with its stream, after a validation and a checkpoint") {
  for (const auto& [count, steps, epochs] : {std::tuple{47, 7, 2}, {60, 10, 2}, {6, 1, 1}}) {
    CAPTURE(count);
    const TemporaryFolder folder;
    TrainerOptions options = five_steps();
    options.output = folder / "run";
    StreamRun run;
    run.train(options, {.counts = {count}});
    CHECK(run.result.stream_ended);
    CHECK(run.result.steps == steps);
    CHECK(run.result.signal == 0);
    REQUIRE(run.seen.epochs.size() == static_cast<std::size_t>(epochs));
    CHECK(run.seen.epochs.back().step == steps);
    CHECK(run.seen.epochs.back().val_loss > 0);
    // Once more, the stream has no samples for another step, and then it has grown.
    StreamRun again;
    again.train(options, {.counts = {count}}, true);
    CHECK(again.result.steps_now == 0);
    CHECK(again.result.stream_ended);
    CHECK(weights(again.store) == weights(run.store));
    StreamRun more;
    more.train(options, {.counts = {count + 6}}, true);
    CHECK(more.result.steps_now == 1);
  }
}

TEST_CASE("a run on a stream that stops anywhere and goes on ends bitwise equal") {
  for (const std::int64_t buffer : {1, 11}) {
    TrainerOptions options = five_steps();
    options.shuffle_buffer = buffer;
    StreamRun whole;
    whole.train(options, {.counts = {80}});
    for (const std::int64_t stop : {1, 4, 5, 8, 13}) {
      const TemporaryFolder folder;
      options.output = folder / "run";
      options.steps = stop;
      StreamRun first;
      first.train(options, {.counts = {80}});
      CHECK(first.result.steps == stop);
      options.steps.reset();
      StreamRun second;
      second.train(options, {.counts = {80}}, true);
      StreamRun third;
      third.train(options, {.counts = {80}}, true);
      CHECK(third.seen.epochs.empty());
      CHECK(weights(third.store) == weights(whole.store));
      options.output.clear();
      CHECK(second.result.steps == 13);
      CHECK(second.result.stream_ended);
      CHECK(weights(second.store) == weights(whole.store));
      CHECK(second.seen.epochs.back().train_loss == whole.seen.epochs.back().train_loss);
    }
  }
}

TEST_CASE("an interrupted stream stops its run like a signal, and the resumed run ends bitwise equal") {
  for (const std::int64_t interrupted : {0, 5, 32, 33}) {
    CAPTURE(interrupted);
    StreamRun whole;
    TrainerOptions options = five_steps();
    whole.train(options, {.counts = {80}});
    const TemporaryFolder folder;
    options.output = folder / "run";
    StreamRun first;
    first.train(options, {.counts = {80}, .interrupted = interrupted});
    CHECK(first.result.steps == interrupted / 6);
    CHECK(!first.result.stream_ended);
    CHECK(first.seen.epochs.size() == static_cast<std::size_t>(interrupted / 30));
    if (interrupted < 6) continue;
    StreamRun second;
    second.train(options, {.counts = {80}}, true);
    CHECK(second.result.stream_ended);
    CHECK(weights(second.store) == weights(whole.store));
    CHECK(second.seen.epochs.back().train_loss == whole.seen.epochs.back().train_loss);
  }
}

TEST_CASE("an interrupted stream of one rank stops all ranks after the same step") {
  for (const RankEnd& end :
       ends(five_steps(), {.counts = {100, 100, 100}, .is_divided = true, .interrupted = 7})) {
    CHECK(end.error.empty());
    CHECK(end.steps == 3);
    CHECK(!end.stream_ended);
    CHECK(end.epochs == 0);
  }
}

TEST_CASE("the first rank whose stream ends ends the run of all ranks") {
  const auto found = ends(five_steps(), {.counts = {100, 15, 100}, .is_divided = true});
  for (const RankEnd& end : found) {
    CHECK(end.error.empty());
    CHECK(end.steps == 7);  // of two samples for each rank
    CHECK(end.stream_ended);
    CHECK(end.epochs == 2);
    CHECK(end.weights == found[0].weights);
  }
}

TEST_CASE("ranks that read one stream train as one rank does") {
  StreamRun alone;
  alone.train(five_steps(), {.counts = {50}});
  const std::vector<double> expected = weights(alone.store);
  for (const RankEnd& end : ends(five_steps(), {.counts = {50}})) {
    CHECK(end.steps == alone.result.steps);
    REQUIRE(end.weights.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(end.weights[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("ranks with streams of their own go on bitwise, and only as many ranks as before") {
  const PointStreamOptions stream{.counts = {40, 40, 40}, .is_divided = true};
  TrainerOptions options = five_steps();
  options.batch_size = 7;  // the ranks use 3, 2 and 2 samples of a step
  const auto whole = ends(options, stream);
  const TemporaryFolder folder;
  options.output = folder / "run";
  options.steps = 8;
  ends(options, stream);
  options.steps.reset();
  const auto rest = ends(options, stream, true);
  CHECK(rest[0].error.empty());
  CHECK(rest[0].steps == whole[0].steps);
  CHECK(rest[0].weights == whole[0].weights);
  StreamRun alone;
  CHECK(contains(user_error([&] { alone.train(options, {.counts = {400}}, true); }),
                 "was made with 3 streams, one of each rank and now there is one stream"));
  SmallRun table;
  options.steps_per_epoch = 0;
  Trainer trainer({small_model, table.store, test_backend(), points(35)}, options);
  CHECK(contains(user_error([&] { trainer.resume(); }), "now there is data that is no stream"));
}

TEST_CASE("other ranks wait for one that passes over samples for longer than a deadline") {
  PointStreamOptions stream{.counts = {40, 40, 40}, .is_divided = true};
  TrainerOptions options = five_steps();
  const TemporaryFolder folder;
  options.output = folder / "run";
  options.steps = 8;
  ends(options, stream);
  options.steps = 9;
  stream.slow = 16;
  for (const RankEnd& end : ends(options, stream, true, 2)) {
    CHECK(end.error.empty());
    CHECK(end.steps == 9);
  }
}

TEST_CASE("an error of one stream ends the run of all ranks with its sentence") {
  const auto found = ends(five_steps(), {.counts = {100, 100, 100}, .is_divided = true, .broken = 9});
  for (const RankEnd& end : found) CHECK(contains(end.error, "sample 9 cannot be read"));
  CHECK(found[0].epochs == 0);
  // Two samples of each rank make a step: rank 1 ends where rank 2 fails.
  for (const RankEnd& end : ends(five_steps(), {.counts = {100, 14, 100}, .is_divided = true, .broken = 14}))
    CHECK(contains(end.error, "sample 14 cannot be read"));
}

TEST_CASE("a run reads no samples after its last planned step") {
  TrainerOptions options = five_steps();
  StreamRun run;
  run.train(options, {.counts = {100}, .broken = 90});
  CHECK(run.result.steps == 15);
  options.steps = 4;
  StreamRun shorter;
  shorter.train(options, {.counts = {24}});
  CHECK(shorter.result.steps == 4);
  CHECK(!shorter.result.stream_ended);
}

TEST_CASE("a stream without a step for all ranks is an error of all ranks") {
  const auto found = ends(five_steps(), {.counts = {100, 1, 100}, .is_divided = true});
  for (const RankEnd& end : found) {
    CHECK(contains(end.error, "the stream of rank 1 has too few samples for one step of 6"));
    CHECK(end.steps == 0);
  }
  StreamRun empty;
  CHECK(contains(user_error([&] { empty.train(five_steps(), {.counts = {0}}); }), "too few samples"));
}

TEST_CASE("options that a stream needs or cannot follow are errors") {
  ParameterStore store = small_store();
  const TrainerParts on_stream{.model = small_model,
                               .store = store,
                               .backend = test_backend(),
                               .train = nullptr,
                               .stream = point_stream({.counts = {50}})};
  TrainerOptions options = five_steps();
  options.steps_per_epoch = 0;
  CHECK(contains(refusal(options, on_stream), "steps_per_epoch must say how many steps an epoch has"));
  options.steps_per_epoch = -1;
  CHECK(contains(refusal(options, on_stream), "steps_per_epoch is -1"));
  options = five_steps();
  options.shuffle_buffer = 0;
  CHECK(contains(refusal(options, on_stream), "shuffle_buffer is 0"));
  options = five_steps();
  options.weights = std::make_shared<const std::vector<double>>(50, 1.0);
  CHECK(contains(refusal(options, on_stream), "weights draws samples at random"));
  options = five_steps();
  options.on_error = OnError::skip;
  CHECK(contains(refusal(options, on_stream), "on_error is skip"));
  TrainerParts both = on_stream;
  both.train = points(30);
  CHECK(contains(refusal(five_steps(), both), "set TrainerParts::train or stream, not both"));
  both.stream = nullptr;
  CHECK(contains(refusal(five_steps(), both), "are for a stream, and there is none"));
  CHECK(contains(user_error([&] { overfit(on_stream, five_steps(), {}); }), "a stream has each sample once"));
}

TEST_CASE("a strategy with which ranks do not read their parts of each step refuses a stream") {
  class Couriered final : public Strategy, public Courier {
   public:
    StrategyParts parts() override { return {.courier = this}; }
    void send(Stream, int, std::span<const std::byte>) override {}
    std::optional<std::vector<std::byte>> receive(Stream, std::string_view) override { return std::nullopt; }
    void close(Stream, bool) noexcept override {}
  };
  Couriered strategy;
  SingleProcess alone;
  ParameterStore store = small_store();
  CHECK(contains(refusal(five_steps(), {.model = small_model,
                                        .store = store,
                                        .backend = test_backend(),
                                        .train = nullptr,
                                        .collective = &alone,
                                        .strategy = &strategy,
                                        .stream = point_stream({.counts = {50}})}),
                 "with this strategy a rank does not read the samples of its own part"));
}

}  // namespace plexaura::testing::streams_test
