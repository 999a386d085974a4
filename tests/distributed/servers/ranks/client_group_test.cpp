#include "distributed/servers/ranks/client_group.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/servers/ranks/async_server.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::client_group_test {

namespace {

const Settings brief{"training.epochs=4", "training.precision=float64", "distributed.strategy=async-server",
                     "distributed.mix=1"};

// A rank whose steps are made by the test, or the server. It has two buckets: one of a trainable parameter,
// and one of a buffer and the tail.
class Member {
 public:
  explicit Member(AsyncServer& strategy)
      : strategy_(strategy.parts()),
        backend_(open_backend("cpu")),
        store_(std::vector{spec("weight"), running()}) {
    Placement placement{ArenaTypes::all(DType::float64), {}};
    for (const ParameterSpec& each : store_.specs())
      placement.append(each.name, each.type, each.role, Layout::row_major(1));
    store_.place(placement, *backend_);
    store_.require_states(1);
    border_.emplace(store_, 1 << 20);
    strategy.begin(*border_);
  }

  // Makes a step with this number in all elements. Returns the first element of each bucket and the last
  // element of all.
  std::vector<double> average(double own, std::int64_t samples) {
    border_->begin_step({.number = 1, .samples = samples}, false);
    for (std::size_t bucket = 0; bucket < border_->buckets().size(); ++bucket) {
      border_->stage_out(bucket);
      std::ranges::fill(elements(bucket), own);
      strategy_.gradients->gradients_ready(bucket, border_->staged(bucket));
    }
    std::vector<double> found;
    for (std::size_t bucket = 0; bucket < border_->buckets().size(); ++bucket) {
      strategy_.gradients->before_update(bucket);
      found.push_back(elements(bucket).front());
    }
    found.push_back(elements(border_->buckets().size() - 1).back());
    return found;
  }

  void step(double to) {
    store_.write("weight", Tensor::of<double>(Shape{2}, {to, -to}));
    strategy_.weights->after_update();
  }
  void set_state(double number) {
    store_.write_state(0, "weight", Tensor::of<double>(Shape{2}, {number, number}));
  }
  double state() const { return store_.read_state(0, "weight").to_doubles()[0]; }
  double weight() const { return store_.read("weight").to_doubles()[0]; }
  Draw draw(std::int64_t steps, std::int64_t parts_of_last) {
    return strategy_.dealer->draw({.first = 0, .end = steps, .parts = 2, .parts_of_last = parts_of_last});
  }
  void rest() { strategy_.weights->show_weights(); }
  void serve() { strategy_.server->serve(*border_); }

 private:
  static ParameterSpec spec(const char* name) {
    return {name, {DType::float64, {2}}, ParameterRole::trainable, Initialiser::zeros()};
  }
  static ParameterSpec running() {
    return {"running", {DType::float64, {2}}, ParameterRole::buffer, Initialiser::zeros()};
  }
  std::span<double> elements(std::size_t bucket) { return elements_of<double>(border_->gradients(bucket)); }

  StrategyParts strategy_;
  std::unique_ptr<Backend> backend_;
  ParameterStore store_;
  std::optional<WeightsImmigration> border_;
};

// Runs a server and a client of two ranks, each of which does `work`.
template <class Work>
void run(const AsyncServerOptions& options, Work work) {
  ThreadNetwork network(3);
  const auto ends = endings(3, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.deadline_seconds = 20});
    AsyncServer strategy(all, options);
    if (strategy.parts().server != nullptr) {
      Member(strategy).serve();
    } else {
      Member member(strategy);
      work(member, rank - 1);
      strategy.end();
    }
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
}

}  // namespace

TEST_CASE(
    "client group: gradients and buffers are means over the samples of all, and the tail is each rank's") {
  run({.group = 2}, [](Member& member, int rank) {
    CHECK(member.average(rank == 0 ? 4 : 8, rank == 0 ? 3 : 1) ==
          std::vector<double>{5, 5, rank == 0 ? 4.0 : 8.0});
    CHECK(member.average(rank == 0 ? 4 : 0, rank == 0 ? 3 : 0) ==
          std::vector<double>{4, 4, rank == 0 ? 4.0 : 0.0});
    member.rest();
  });
}

// The ranks differ like ranks whose processors round differently.
TEST_CASE("client group: all take the optimizer's state of the lowest when they rest") {
  run({.group = 2}, [](Member& member, int rank) {
    member.set_state(rank == 0 ? 4 : 8);
    member.rest();
    CHECK(member.state() == 4);
  });
}

TEST_CASE(
    "client group: all draw parts of one block, and take the weights that the lowest gets in the same step") {
  run({.group = 2, .push_every = 2}, [](Member& member, int rank) {
    const auto part_of = [&](const Draw& drawn) {
      return std::pair(drawn.step_in_epoch, drawn.part.value_or(-1));
    };
    CHECK(part_of(member.draw(2, 1)) == std::pair<std::int64_t, std::int64_t>(0, rank));
    CHECK(part_of(member.draw(2, 1)) == std::pair<std::int64_t, std::int64_t>(1, rank));
    CHECK(part_of(member.draw(2, 1)).second == -1);
    member.step(8);
    CHECK(member.weight() == 8);
    member.step(8);
    CHECK(member.weight() == 4);  // half of the way from 0
    member.step(8);
    CHECK(member.weight() == 8);
    member.rest();
    CHECK(member.weight() == 6);
  });
}

TEST_CASE("client group: where a rank draws and the other makes a step, they part, and the deal ends") {
  for (const int failing : {0, 1})
    run({.group = 2}, [&](Member& member, int rank) {
      CHECK(member.draw(50, 2).part == rank);
      if (rank != failing) {
        CHECK(member.average(rank + 1, 2) == std::vector<double>(3, rank + 1));
        member.step(8);
        CHECK(member.weight() == 8);
      }
      int drawn = 0;
      while (member.draw(50, 2).part) ++drawn;
      CHECK(drawn == 0);
      member.rest();
    });
}

TEST_CASE("client group: trains as one rank, also with parts of unequal size and with none") {
  for (const char* batch : sanitized ? std::vector{"7"} : std::vector{"8", "7"}) {
    const Settings sized{std::string("training.batch_size=") + batch};
    const auto alone = train_iris(1, with({brief[0], brief[1]}, sized));
    for (const char* every : {"1", "4", "epoch"})
      for (const int ranks : sanitized ? std::vector{3} : std::vector{2, 3}) {
        CAPTURE(every);
        CAPTURE(ranks);
        const auto grouped =
            train_iris(1 + ranks, with(with(brief, sized), {"distributed.group=" + std::to_string(ranks),
                                                            std::string("distributed.push_every=") + every}));
        REQUIRE(std::ssize(grouped) == ranks);
        for (const IrisEnd& end : grouped) {
          CHECK(end.weights == grouped[0].weights);
          CHECK(distance(end.values, alone[0].values) < 1e-12);
        }
      }
  }
}

TEST_CASE("client group: a run goes on from its checkpoint, and not with ranks that were no client before") {
  const TemporaryFolder folder;
  const auto resumes = [&](const char* group, int ranks) {
    const auto saving = with(brief, {"output.dir=" + (folder / "run").string(), "distributed.push_every=4"});
    return train_iris(1 + ranks, with(saving, {std::string("distributed.group=") + group}), {}, true);
  };
  const auto save = [&](const char* group) {
    std::filesystem::remove_all(folder / "run");
    const auto saving = with(brief, {"output.dir=" + (folder / "run").string(), "distributed.push_every=4"});
    CHECK(train_iris(5, with(saving, {std::string("distributed.group=") + group}), 18)[0].steps == 18);
  };
  save("4");
  CHECK(distance(resumes("4", 4)[0].values, train_iris(1, {brief[0], brief[1]})[0].values) < 1e-12);
  save("4");
  CHECK(resumes("2", 4)[0].steps == 60);
  save("1");
  CHECK_THROWS_WITH_AS(
      resumes("2", 4),
      doctest::Contains("the checkpoint is not of clients of several ranks and distributed.group is 2, "),
      InternalError);
}

TEST_CASE("client group: two of them learn the flowers as one rank does" * doctest::skip(sanitized)) {
  const double alone = train_iris(1, {})[0].accuracy;
  for (const char* client : {"serial", "threaded"})
    for (const char* strategy : {"async-server", "downpour"}) {
      const auto ends = train_iris(
          6, {std::string("distributed.strategy=") + strategy, "distributed.push_every=4",
              "distributed.servers=2", "distributed.group=2", std::string("distributed.client=") + client});
      REQUIRE(ends.size() == 4);
      for (const IrisEnd& end : ends) CHECK(end.weights == ends[0].weights);
      CHECK(ends[0].accuracy >= alone - 0.04);  // 0.04 is a little more than one of 30 flowers
    }
}

TEST_CASE("client group: ranks that cannot be divided into groups are a mistake") {
  ThreadNetwork network(4);
  const auto ends = endings(4, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {});
    CHECK_THROWS_WITH_AS(
        AsyncServer(all, {.group = 2}),
        doctest::Contains("3 ranks train, and distributed.group makes clients of 2 ranks each; "
                          "start another number of ranks, or change one of the two"),
        UserError);
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(4, "fine"));
}

}  // namespace plexaura::testing::client_group_test
