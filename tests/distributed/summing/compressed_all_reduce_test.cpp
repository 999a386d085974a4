#include "distributed/summing/compressed_all_reduce.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/communicator/handshake.h"
#include "distributed/strategies/strategies.h"
#include "testing/values.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::compressed_all_reduce_test {

namespace {

const std::vector<Settings> compressions{
    {"distributed.compression=fp16"},
    {"distributed.compression=bf16"},
    {"distributed.compression=top-k", "distributed.compression_ratio=0.05"},
    {"distributed.compression=powersgd"}};

}  // namespace

TEST_CASE("compressed allreduce: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  const auto plain = train_iris(3, {});
  for (const Settings& compression : compressions) {
    CAPTURE(compression[0]);
    check_learns(3, compression);
    CHECK(train_iris(3, compression)[0].weights != plain[0].weights);
  }
}

TEST_CASE("compressed allreduce: where all elements cross, the weights are those without compression") {
  const Settings settings{"training.epochs=2", "distributed.bucket_bytes=500"};
  const auto plain = train_iris(2, settings);
  const auto ends =
      train_iris(2, with(settings, {"distributed.compression=top-k", "distributed.compression_ratio=1"}));
  CHECK(ends[0].weights == plain[0].weights);
}

// Micro-batches are added before the compression, so they change results only by rounding.
TEST_CASE("compressed allreduce: micro-batches are compressed together") {
  for (const Settings& compression : compressions) {
    const Settings short_run = with(compression, {"training.epochs=1", "distributed.bucket_bytes=500"});
    const auto whole = train_iris(2, short_run);
    const auto cut = train_iris(2, with(short_run, {"training.micro_batches=2"}));
    CHECK(cut[1].weights == cut[0].weights);
    CHECK(distance(cut[0].values, whole[0].values) < 1e-2);
  }
}

// The weights of the first layer come first, and begin with the same values in any run.
TEST_CASE("compressed allreduce: frozen parameters stay as they are") {
  for (const Settings& compression : compressions) {
    const Settings frozen = with(compression, {"training.epochs=1", "training.freeze=[fc1.*]"});
    const auto ends = train_iris(2, frozen);
    const auto others = train_iris(2, with(frozen, {"training.optimizer.learning_rate=0.1"}));
    constexpr std::size_t first_layer = (4 * 30 + 30) * sizeof(float);
    CHECK(ends[0].weights.substr(0, first_layer) == others[0].weights.substr(0, first_layer));
    CHECK(ends[0].weights.substr(first_layer) != others[0].weights.substr(first_layer));
    CHECK(ends[1].weights == ends[0].weights);
  }
}

// Step 20 is within an epoch, and step 30 ends one. The checkpoint has what ranks owe.
TEST_CASE("compressed allreduce: a resumed run ends as one that was never stopped") {
  for (const Settings& compression : compressions)
    for (const std::int64_t stop : sanitized ? std::vector{20} : std::vector{20, 30}) {
      CAPTURE(compression[0]);
      check_resumes(3, with(compression, {few_epochs}), stop);
    }
}

// One rank of each host owes for the whole host.
TEST_CASE("compressed allreduce: so does one on hosts with several ranks") {
  const std::vector<std::string> hosts{"a", "b", "b"};
  for (const Settings& compression : compressions) {
    CAPTURE(compression[0]);
    const Settings settings = with(compression, {few_epochs});
    check_resumes(hosts, settings, 20);
    const auto whole = train_iris(hosts, settings);
    CHECK(whole[0].weights != train_iris(3, settings)[0].weights);
    for (const IrisEnd& end : whole) CHECK(end.weights == whole[0].weights);
  }
}

// Ranks that did not compress before may have to now.
TEST_CASE("compressed allreduce: a run goes on where its ranks share hosts in another way") {
  const TemporaryFolder folder;
  const Settings settings{"training.epochs=4", "output.dir=" + (folder / "run").string()};
  const std::vector<std::string> first{"a", "a", "b"};
  for (const Settings& compression : compressions)
    for (const std::vector<std::string>& next : {std::vector<std::string>{"a", "b", "b"}, {"a", "a", "a"}}) {
      CAPTURE(compression[0]);
      train_iris(first, with(compression, settings), 20);
      const auto end = train_iris(next, with(compression, settings), {}, true);
      for (const IrisEnd& rank : end) CHECK(rank.weights == end[0].weights);
      CHECK(end[0].steps == 60);
      std::filesystem::remove_all(folder / "run");
    }
}

// With another method or another number of ranks, what an earlier run owed is dropped.
TEST_CASE("compressed allreduce: a run goes on with another compression, or with none") {
  const TemporaryFolder folder;
  const Settings settings{"training.epochs=4", "output.dir=" + (folder / "run").string()};
  for (const char* next : {"none", "fp16", "powersgd"}) {
    train_iris(2, with(settings, {"distributed.compression=bf16"}), 20);
    const auto end =
        train_iris(2, with(settings, {std::string("distributed.compression=") + next}), {}, true);
    CHECK(end[1].weights == end[0].weights);
    CHECK(end[0].steps == 60);
    std::filesystem::remove_all(folder / "run");
  }
}

// Each rank owes gradients of its own, so the weights after resume() depend on what the checkpoint has of every rank.
TEST_CASE("compressed allreduce: an Optimizer resumes with the gradients that its ranks owe") {
  const TemporaryFolder folder;
  constexpr int ranks = 2;
  ThreadNetwork network(ranks);
  const auto said = endings(ranks, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.deadline_seconds = 60}, nullptr, this_place());
    const auto exchange = all.duplicate("the exchange of gradients");
    const StrategyOptions options{.compression = {.name = "top-k", .ratio = 0.1}};
    const auto backend = open_backend("cpu");
    const auto weights_after = [&](int first, int last, bool resumes, bool saves) {
      const auto strategy = make_strategy(options, *exchange);
      ParameterStore store({{"w", {DType::float32, {40}}, ParameterRole::trainable, Initialiser::ones()}});
      Graph graph;
      const Node x = graph.input("x", {DType::float32, {40}});
      const Node loss = mean(square(graph.parameter("w", {DType::float32, {40}}) * x));
      Optimizer optimizer({.loss = loss}, store, *backend,
                          {.learning_rate = 0.1, .ranks = exchange.get(), .strategy = strategy.get()});
      if (resumes && !optimizer.resume(folder.path())) throw InternalError("there is no checkpoint");
      for (int step = first; step <= last; ++step) {
        Random random{static_cast<std::uint64_t>(10 * step + rank)};
        optimizer.step({{"x", make({DType::float32, {40}}, between(-1, 1), random)}});
      }
      if (saves) optimizer.save(folder.path());
      return store.read("w");
    };
    const Tensor whole = weights_after(1, 8, false, false);
    weights_after(1, 4, false, true);
    if (weights_after(5, 8, true, false) != whole) throw InternalError("the weights differ");
    all.leave(0);
  });
  for (const std::string& end : said) CHECK(end == "fine");
}

}  // namespace plexaura::testing::compressed_all_reduce_test
