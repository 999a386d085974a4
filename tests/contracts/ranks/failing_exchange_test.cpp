// An exchange in a thread of the strategy may fail or never end. A wait for it then ends with its error, or
// with a sentence that names the bucket and the step. No wait is endless, also not at the end of the run.

#include <chrono>
#include <doctest/doctest.h>
#include <functional>
#include <thread>

#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/contracts/training/two_layers.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::failing_exchange_test {

namespace {

Batch some_batch() { return two_layers::batch(1, 2); }

// In the second step, which ends an epoch, the exchange fails on one rank after all buckets are summed.
class FailingOnRank1 final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  void begin(WeightsImmigration& border) override {
    SummingStrategy::begin(border);
    done_ = border.make_event();
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    SummingStrategy::before_update(bucket);
    if (bucket + 1 < border_->buckets().size()) return {};
    done_->reset();
    if (border_->step() == 2 && ranks_.rank() == 1)
      done_->fail(std::make_exception_ptr(DeviceError("the link of rank 1 is down")));
    else
      done_->signal();
    return {.event = done_.get()};
  }

 private:
  std::unique_ptr<ExchangeEvent> done_;
};

using Exchange = std::function<void(ExchangeEvent& done)>;

// In the second step, runs a given function as the exchange of bucket 1, in a separate thread.
class Exchanging final : public Strategy, public GradientSum, public WeightExchange {
 public:
  Exchanging(Exchange exchange, bool agrees, double seconds)
      : exchange_(std::move(exchange)), agrees_(agrees), seconds_(seconds) {}
  ~Exchanging() override {
    if (thread_.joinable()) thread_.join();
  }
  StrategyParts parts() override {
    return {.gradients = this, .weights = reads_weights ? this : nullptr, .agrees = agrees_};
  }
  void gradients_ready(std::size_t, Event&) override {}
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    for (std::size_t i = 0; i < border.buckets().size(); ++i) done_.push_back(border.make_event());
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    ExchangeEvent& done = *done_[bucket];
    done.reset();
    const bool is_second = border_->step() == 2;
    if (bucket == 1 && is_second)
      thread_ = std::thread([this, &done] { exchange_(done); });
    else if (bucket == 0 && is_second && first_fails)
      done.fail(std::make_exception_ptr(DeviceError("rank 1 was lost")));
    else
      done.signal();
    return {.event = &done, .deadline_seconds = seconds_};
  }

  void after_update() override { CHECK(border_->emigrate("first").type() == two_layers::first); }

  bool first_fails = false;    // the exchange of bucket 0 fails in the second step
  bool reads_weights = false;  // reads the weights after each update

 private:
  Exchange exchange_;
  bool agrees_;
  double seconds_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::unique_ptr<ExchangeEvent>> done_;
  std::thread thread_;
};

// The error of the second of two steps, and whether the step changed weights.
struct End {
  std::string error;
  bool changed = false;
};

End second_step(const Exchange& exchange, bool agrees, double seconds = 30) {
  Exchanging strategy(exchange, agrees, seconds);
  SmallTraining run(test_backend(), two_layers::specs(), two_layers::model, some_batch(),
                    {.strategy = &strategy});
  strategy.begin(run.steps().border());
  run.step(some_batch(), 0.01);
  const Tensor before = run.value("first");
  End end;
  end.error = device_error([&] { run.step(some_batch(), 0.01); });
  end.changed = run.value("first") != before;
  return end;
}

}  // namespace

TEST_CASE("an exchange that fails on a thread of its own fails the step with its error") {
  const Exchange fails = [](ExchangeEvent& done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done.fail(std::make_exception_ptr(DeviceError("rank 1 was lost")));
  };
  CHECK(second_step(fails, false).error == "rank 1 was lost");
  const End agreeing = second_step(fails, true);
  CHECK(agreeing.error == "rank 1 was lost");
  CHECK_FALSE(agreeing.changed);
}

TEST_CASE("an exchange that never ends fails the step with a sentence that names it") {
  const Exchange nothing = [](ExchangeEvent&) {};
  const char* text =
      "bucket 1 of step 2 was not exchanged within 0.2 s: the strategy did not signal its event";
  CHECK(second_step(nothing, false, 0.2).error == text);
  const End agreeing = second_step(nothing, true, 0.2);
  CHECK(agreeing.error == text);
  CHECK_FALSE(agreeing.changed);
}

TEST_CASE(
    "an exchange that never ends is named, too, where the host waits for the device before it is asked") {
  for (const bool watch : {true, false}) {
    Exchanging strategy([](ExchangeEvent&) {}, false, 0.2);
    strategy.reads_weights = !watch;
    SmallTraining run(test_backend(), two_layers::specs(), two_layers::model, some_batch(),
                      {.strategy = &strategy, .watch = watch});
    strategy.begin(run.steps().border());
    run.step(some_batch(), 0.01);
    CHECK(device_error([&] {
            run.step(some_batch(), 0.01);
          }).starts_with("bucket 1 of step 2 was not exchanged within 0.2 s"));
  }
}

TEST_CASE("nobody waits for exchanges that never end behind one that has failed") {
  Exchanging strategy([](ExchangeEvent&) {}, false, 30);
  strategy.first_fails = true;
  SmallTraining run(test_backend(), two_layers::specs(), two_layers::model, some_batch(),
                    {.strategy = &strategy});
  strategy.begin(run.steps().border());
  run.step(some_batch(), 0.01);
  CHECK(device_error([&] { run.step(some_batch(), 0.01); }) == "rank 1 was lost");
  CHECK(run.value("first").type() == two_layers::first);
}

TEST_CASE("a step whose exchange never ends can be given up without reading what it answered") {
  Exchanging strategy([](ExchangeEvent&) {}, false, 0.2);
  SmallTraining run(test_backend(), two_layers::specs(), two_layers::model, some_batch(),
                    {.strategy = &strategy});
  strategy.begin(run.steps().border());
  run.step(some_batch(), 0.01);
  const Batch batch = some_batch();
  device_error([&] { run.launch(std::span(&batch, 1), 0.01); });
}

TEST_CASE("an exchange that fails on one rank alone ends all with its error") {
  const auto train = [&] {
    ThreadRanks(2).run([&](Collective& ranks) {
      RowsRun run;
      FailingOnRank1 strategy(ranks);
      Trainer(run.parts(12, ranks, &strategy), {.batch_size = 6}).run();
    });
  };
  CHECK(device_error(train) == "the link of rank 1 is down");
}

TEST_CASE("an event that has failed starts anew") {
  ExchangeEvent event(test_backend().make_event());
  event.fail(std::make_exception_ptr(DeviceError("lost")));
  event.signal();
  CHECK(event.passed());
  CHECK_THROWS_AS(event.wait(), DeviceError);
  event.reset();
  CHECK_FALSE(event.passed());
  CHECK_FALSE(event.ends_within(0.01));
  event.signal();
  event.fail(std::make_exception_ptr(DeviceError("too late")));
  event.wait();
  event.record(Stream::compute);
  CHECK(event.ends_within(0));
  event.wait();
}

}  // namespace plexaura::testing::failing_exchange_test
