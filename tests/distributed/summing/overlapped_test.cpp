#include "distributed/summing/overlapped.h"

#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/strategies/strategies.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::overlapped_test {

namespace {

// Instead of summing a bucket, reports that it was asked to, and waits for the other ranks.
class Meeting final : public BucketSum {
 public:
  explicit Meeting(Communicator& ranks) : BucketSum(ranks) {}
  void gradients_ready(std::size_t, Event&) override {}
  UpdateAnswer before_update(std::size_t) override {
    asked.set_value();
    communicator().barrier("a bucket");
    return {};
  }

  std::promise<void> asked;

 private:
  void sum(std::size_t, DType, std::span<std::byte>, std::string_view) override {}
};

// An exchange over the communicator with one bucket under way.
class BucketUnderWay {
 public:
  explicit BucketUnderWay(Communicator& exchange)
      : BucketUnderWay(std::make_unique<Meeting>(exchange), exchange) {}
  Overlapped& strategy() { return strategy_; }

 private:
  BucketUnderWay(std::unique_ptr<Meeting> inner, Communicator& exchange)
      : asked_(inner->asked.get_future()),
        passed_(open_backend("cpu")->make_event()),
        strategy_(std::move(inner), exchange) {
    strategy_.gradients_ready(0, *passed_);
    asked_.wait();
  }

  std::future<void> asked_;
  std::unique_ptr<Event> passed_;
  Overlapped strategy_;
};

class Listener final : public EventSink {
 public:
  void event(EventKind, std::int64_t, std::string_view text) noexcept override {
    if (text == "bucket 0 of step 0") hears_wait = true;
  }
  std::atomic<bool> hears_wait = false;
};

// Sums a bucket only after the training thread has reported that it waits for it.
class Held final : public BucketSum {
 public:
  explicit Held(Communicator& ranks) : BucketSum(ranks) { send_events_to(&listener); }
  ~Held() override { send_events_to(nullptr); }

 private:
  void sum(std::size_t, DType, std::span<std::byte>, std::string_view) override {
    while (!listener.hears_wait) std::this_thread::yield();
  }

  static inline Listener listener;  // lives as long as any thread may send events
};

}  // namespace

TEST_CASE("overlapped: a bucket is exchanged before anybody asks for it") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    const auto exchange = ranks.duplicate("the exchange of gradients");
    const BucketUnderWay under_way(*exchange);
    ranks.barrier("the end");
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>{"fine", "fine"});
}

TEST_CASE("overlapped: a rank that fails gives up what it exchanges, and the others hear of it") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = 600});
    const auto exchange = ranks.duplicate("the exchange of gradients");
    if (rank == 0) {
      BucketUnderWay under_way(*exchange);
      under_way.strategy().give_up();
      ranks.leave(2);
      throw UserError("no more");
    }
    ranks.barrier("the end");
  });
  CHECK(ends == std::vector<std::string>{"says no more",
                                         "hears rank 0 has left with an error of its own, which it reports"});
}

TEST_CASE(
    "overlapped: tells how long the thread that trains waits for buckets, and for the others to agree") {
  const auto backend = open_backend("cpu");
  const TensorType type{DType::float32, {100}};
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", type, ParameterRole::trainable, Layout::row_major(1));
  ThreadNetwork network(2);
  std::optional<ExchangeRecord> of_bucket;
  std::optional<ExchangeRecord> of_agreement;
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    if (rank == 0) {
      ParameterStore store({{"weight", type, ParameterRole::trainable, Initialiser::zeros()}});
      store.place(placement, *backend);
      WeightsImmigration border(store, 1 << 20);
      const auto final = backend->make_event();
      final->signal();
      Overlapped strategy(std::make_unique<Held>(ranks), ranks);
      strategy.begin(border);
      strategy.gradients_ready(0, *final);
      strategy.before_update(0);
      of_bucket = strategy.take_exchange_record();
      strategy.agree();
      of_agreement = strategy.take_exchange_record();
    } else {
      ranks.barrier("the update of step 0");
    }
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>{"fine", "fine"});
  REQUIRE(of_bucket);
  CHECK(of_bucket->overlaps);
  CHECK(of_bucket->bytes == 400);
  CHECK(*of_bucket->waited_seconds > 0);
  CHECK(*of_bucket->waited_seconds <= of_bucket->seconds);
  REQUIRE(of_agreement);
  CHECK(of_agreement->bytes == 0);
  CHECK(of_agreement->seconds > 0);
  CHECK(of_agreement->waited_seconds == of_agreement->seconds);
}

TEST_CASE("overlapped: made between hosts, and where it is asked for") {
  for (const bool two_hosts : {false, true}) {
    CAPTURE(two_hosts);
    ThreadNetwork network(2);
    const auto ends = endings(2, [&](int rank) {
      ProcessPlace place = this_place();
      if (two_hosts) place.host = rank == 0 ? "a" : "b";
      GroupCommunicator ranks(network.transport(rank), {.shared_memory = false}, nullptr, place);
      for (const std::string name : {"allreduce", "reduce-broadcast"})
        for (const Overlap overlap : {Overlap::automatic, Overlap::on, Overlap::both, Overlap::off}) {
          const auto strategy = make_strategy({.name = name, .overlap = overlap}, ranks);
          const bool is_overlapped = dynamic_cast<Overlapped*>(strategy.get()) != nullptr;
          const bool expected = is_asked_for(overlap) || (overlap == Overlap::automatic && two_hosts);
          if (is_overlapped != expected || strategy->parts().updates_late != (overlap == Overlap::both))
            throw InternalError(name + " overlaps otherwise than asked");
        }
      ranks.leave(0);
    });
    CHECK(ends == std::vector<std::string>{"fine", "fine"});
  }
}

TEST_CASE("overlapped: training gives the same bits") {
  for (const char* strategy : {"strategy=allreduce", "strategy=reduce-broadcast", "compression=bf16"})
    for (const char* other : {"training.micro_batches=2", "training.optimizer.max_gradient_norm=0.1"}) {
      CAPTURE(strategy);
      CAPTURE(other);
      std::vector<std::string> settings{sanitized ? "training.epochs=1" : "training.epochs=2",
                                        "training.batch_size=7",
                                        other,
                                        "distributed.bucket_bytes=500",
                                        std::string("distributed.") + strategy,
                                        "distributed.overlap=off"};
      const std::string expected = train_iris(3, settings)[0].weights;
      for (const char* overlap : {"on", "both"}) {
        settings.back() = std::string("distributed.overlap=") + overlap;
        for (const IrisEnd& end : train_iris(3, settings)) CHECK(end.weights == expected);
      }
    }
}

TEST_CASE("overlapped: with the forward pass, too, weights are whole wherever a run ends or compares them") {
  for (const char* other :
       {"training.precision=float32", "training.optimizer={name: lamb, learning_rate: 0.01}"})
    for (const int ranks : sanitized ? std::vector{3} : std::vector{2, 4}) {
      CAPTURE(other);
      CAPTURE(ranks);
      std::vector<std::string> settings{"training.epochs=2",
                                        "training.batch_size=8",
                                        "distributed.bucket_bytes=500",
                                        "distributed.verify_every=3",
                                        other,
                                        "distributed.overlap=off"};
      const std::string expected = train_iris(ranks, settings, 23)[0].weights;
      settings.back() = "distributed.overlap=both";
      for (const IrisEnd& end : train_iris(ranks, settings, 23)) CHECK(end.weights == expected);
    }
}

}  // namespace plexaura::testing::overlapped_test
