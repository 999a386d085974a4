// A backend may let the devices of ranks sum. Then each device sums its own memory in a separate stream, and
// such a bucket is not copied to a host. A wait for a rank that does not come ends after a deadline.

#include "core/device/device_sums.h"

#include <array>
#include <doctest/doctest.h>
#include <functional>
#include <string>

#include "backends/registry.h"
#include "core/base/clock.h"
#include "core/device/transfer_counts.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/contracts/training/two_layers.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/broken_samples.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::device_sums_test {

namespace {

constexpr double soon = 1;  // seconds

bool is_cuda() { return test_backend().info().name.ends_with("cuda"); }

// Each rank opens the GPU with its own number.
std::unique_ptr<Backend> backend_of(int rank) {
  BackendOptions options;
  if (is_cuda()) options["device"] = std::to_string(rank);
  return open_backend(test_backend().info().name, options);
}

std::string identity_of(const Backend& backend) {
  const auto* const device = dynamic_cast<const SumsOnDevices*>(&backend);
  return device == nullptr || device->sums_library().empty() ? "" : device->device_identity();
}

bool two_devices_sum() {
  std::array<std::string, 2> identities;
  try {
    for (int rank = 0; rank < 2; ++rank)
      identities[static_cast<std::size_t>(rank)] = identity_of(*backend_of(rank));
  } catch (const UserError& error) {
    MESSAGE("skipped: " << error.what());  // there is only one GPU
    return false;
  }
  const bool simulated =
      test_backend().info().name == "far" || test_backend().info().name == "simulated_cuda";
  const bool distinct = !identities[0].empty() && identities[0] != identities[1];
  if (simulated) REQUIRE(distinct);
  if (!distinct) {
    MESSAGE("skipped: " << test_backend().info().name << " has no two devices that sum");
    return false;
  }
  return true;
}

std::unique_ptr<DeviceSums> join(Backend& backend, Collective& ranks, double deadline_seconds = 30) {
  auto& device = dynamic_cast<SumsOnDevices&>(backend);
  const std::string mine = ranks.rank() == 0 ? device.make_sums_token() : "";
  const std::string token = ranks.gather_all(mine, "the token").front();
  return device.join_sums(token, ranks.rank(), ranks.size(), deadline_seconds);
}

// Runs two ranks, each with its own device.
void on_two_devices(const std::function<void(Backend&, Collective&)>& body) {
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto backend = backend_of(ranks.rank());
    body(*backend, ranks);
  });
}

// Sums like `allreduce` does if devices sum.
class OnDevice final : public Strategy, public GradientSum {
 public:
  explicit OnDevice(DeviceSums& sums) : sums_(sums) {}
  StrategyParts parts() override { return {.gradients = this, .on_device = true}; }
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    for (std::size_t i = 0; i < border.buckets().size(); ++i) summed_.push_back(border.make_event(sums_));
  }
  void gradients_ready(std::size_t bucket, Event& final) override {
    border_->sum_on_device(bucket, final, sums_, *summed_[bucket]);
  }
  UpdateAnswer before_update(std::size_t bucket) override { return {.event = summed_[bucket].get()}; }
  void give_up() noexcept override { sums_.give_up(); }

 private:
  DeviceSums& sums_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::unique_ptr<ExchangeEvent>> summed_;
};

Batch batch_of(int rank) {
  const auto seed = static_cast<std::uint64_t>(rank);
  return two_layers::batch(1 + seed, 3 + seed);
}

struct End {
  std::vector<Tensor> values;
  double loss = 0;
  std::uint64_t copies = 0;  // of one step, if the backend counts copies
};

std::uint64_t copies_of(const Backend& backend) {
  const auto* const counts = dynamic_cast<const CountsTransfers*>(&backend);
  return counts == nullptr ? 0 : counts->transfers().copies;
}

// Runs eight steps, of which the last ones are replayed. Reads the weights after the last step without an
// explicit wait for its sums.
End train(Backend& backend, Strategy* strategy, Collective& ranks) {
  SmallTraining run(backend, two_layers::specs(), two_layers::model, batch_of(0), {.strategy = strategy});
  if (strategy != nullptr) strategy->begin(run.steps().border());
  const Batch batch = batch_of(ranks.rank());
  End end;
  for (int step = 0; step < 8; ++step) {
    const std::uint64_t before = copies_of(backend);
    run.launch(std::span(&batch, 1), 0.01, 8);
    if (step == 7) end.values = {run.value("first"), run.value("second")};
    end.loss = run.metrics().loss;
    if (step < 7) end.copies = copies_of(backend) - before;
  }
  return end;
}

// The seconds until the device of rank 0 continues, and its error. Rank 1 takes part in no sum.
struct Wait {
  double seconds = 0;
  std::string error;
};

Wait wait_alone(double deadline_seconds, bool gives_up) {
  Wait wait;
  on_two_devices([&](Backend& backend, Collective& ranks) {
    const auto sums = join(backend, ranks, deadline_seconds);
    if (ranks.rank() == 0) {
      DeviceValue value(backend, counting({DType::float32, {5}}), Layout::row_major(1));
      const double begin = seconds_now();
      sums->sum(DType::float32, value.address(), 5);
      if (gives_up) sums->give_up();
      wait.error = device_error([&] {
        wait_for(backend, Stream::copy);
        sums->check();
      });
      wait.seconds = seconds_now() - begin;
      CHECK_FALSE(device_error([&] { sums->check(); }).empty());
      CHECK_FALSE(device_error([&] { sums->sum(DType::float32, value.address(), 5); }).empty());
    }
    ranks.gather_all("", "the end");
  });
  return wait;
}

}  // namespace

TEST_CASE("devices sum in each floating type what every rank has in its memory") {
  if (!two_devices_sum()) return;
  on_two_devices([](Backend& backend, Collective& ranks) {
    const auto sums = join(backend, ranks);
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
      const TensorType type{dtype, {5}};
      DeviceValue value(backend, counting(type, 1 + ranks.rank()), Layout::row_major(1));
      sums->sum(dtype, value.address(), 5);
      wait_for(backend, Stream::copy);
      sums->check();
      CHECK(value.read() == counting(type, 3, 0.5));
    }
  });
}

TEST_CASE("a sum of devices to which another rank does not come ends after the deadline") {
  if (!two_devices_sum()) return;
  const Wait wait = wait_alone(soon, false);
  CHECK(wait.error.starts_with("a sum over ranks did not end within 1 s of its begin"));
  CHECK(wait.seconds >= soon);
  CHECK(wait.seconds < 20);
}

TEST_CASE("a sum of devices that is given up ends at once") {
  if (!two_devices_sum()) return;
  const Wait wait = wait_alone(30, true);
  CHECK(wait.error == "the sums over ranks were given up");
  CHECK(wait.seconds < 20);
}

TEST_CASE("devices that wait for another one to join end after the deadline") {
  if (!two_devices_sum()) return;
  const auto backend = backend_of(0);
  auto& device = dynamic_cast<SumsOnDevices&>(*backend);
  CHECK_FALSE(device_error([&] { device.join_sums(device.make_sums_token(), 0, 2, soon); }).empty());
}

TEST_CASE("buckets that devices sum end in the bits of those that hosts sum, and no host gets a copy") {
  if (!two_devices_sum()) return;
  on_two_devices([](Backend& backend, Collective& ranks) {
    SummingStrategy staging(ranks);
    const End staged = train(backend, &staging, ranks);
    const auto sums = join(backend, ranks);
    OnDevice on_device(*sums);
    const End summed = train(backend, &on_device, ranks);
    CHECK(summed.values == staged.values);
    CHECK(summed.loss == staged.loss);
    CHECK(summed.copies == train(backend, nullptr, ranks).copies);
    if (summed.copies > 0) CHECK(staged.copies > summed.copies);
    ranks.gather_all("", "the end");
  });
}

TEST_CASE("a rank whose own work fails tells the others by the tail that devices sum") {
  if (!two_devices_sum()) return;
  std::array<std::string, 2> ends;
  on_two_devices([&](Backend& backend, Collective& ranks) {
    const auto sums = join(backend, ranks);
    OnDevice strategy(*sums);
    ParameterStore store(two_layers::specs(), 1);
    const auto sixteen = tensor_dataset({{"x", Tensor(TensorType{DType::float32, {16, 6}})},
                                         {"t", Tensor(TensorType{DType::float32, {16, 2}})}});
    const ModelBuilder build = [](const ModelInputs& inputs) {
      return two_layers::model(inputs.graph(), inputs["x"], inputs["t"]);
    };
    Trainer trainer({.model = build,
                     .store = store,
                     .backend = backend,
                     .train = with_broken(sixteen, {15}),
                     .collective = &ranks,
                     .strategy = &strategy},
                    {.batch_size = 4, .shuffle = false});
    ends[static_cast<std::size_t>(ranks.rank())] = user_error([&] { trainer.run(); });
    ranks.gather_all("", "the end");
  });
  CHECK(ends[0] == "rank 1: sample 15 cannot be read");
  CHECK(ends[1] == "sample 15 cannot be read");
}

TEST_CASE("a step whose sums never end fails within the deadline") {
  if (!two_devices_sum()) return;
  on_two_devices([](Backend& backend, Collective& ranks) {
    const auto sums = join(backend, ranks, soon);
    if (ranks.rank() == 0) {
      OnDevice strategy(*sums);
      SmallTraining run(backend, two_layers::specs(), two_layers::model, batch_of(0),
                        {.strategy = &strategy});
      strategy.begin(run.steps().border());
      const std::string error = device_error([&] { run.step(batch_of(0), 0.01); });
      CHECK(error.starts_with("a sum over ranks did not end within 1 s"));
    }
    ranks.gather_all("", "the end");
  });
}

}  // namespace plexaura::testing::device_sums_test
