#include "core/compile/measure.h"

#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "backends/registry.h"
#include "core/device/forwarding_backend.h"
#include "core/device/transfer.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/gather.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/two_speeds.h"

namespace plexaura::testing::measure_test {

using namespace std::chrono_literals;

namespace {

struct Product {
  Graph graph;
  Node x = graph.input("x", {DType::float32, {4, 6}});
  Region region = single(graph, (x * x).id());
  RegionQuery query{graph, region, {std::nullopt, std::nullopt}, {true}};

  std::vector<double> times(Backend& backend, const std::vector<Candidate>& candidates) const {
    return measure(backend, query, candidates);
  }
};

using Step = std::function<void()>;

// A kernel that runs other functions instead of computing.
class Instead final : public Kernel {
 public:
  Instead(Step bind, Step run) : bind_(std::move(bind)), run_(std::move(run)) {}
  std::unique_ptr<Launch> bind(const Binding&) const override {
    bind_();
    return std::make_unique<Running>(run_);
  }

 private:
  class Running final : public Launch {
   public:
    explicit Running(Step run) : run_(std::move(run)) {}
    void run() override { run_(); }

   private:
    Step run_;
  };

  Step bind_;
  Step run_;
};

Candidate instead(Candidate candidate, const Step& make, const Step& bind, const Step& run) {
  candidate.make = [=] {
    make();
    return std::make_shared<const Instead>(bind, run);
  };
  return candidate;
}

}  // namespace

TEST_CASE("a candidate whose kernel fails is infinitely slow, and its error is thrown where all fail") {
  const Product product;
  const Candidate good = test_backend().propose(product.query)[0];
  const Step nothing = [] {};
  int runs = 0;
  const std::vector<Candidate> bad{
      instead(
          good, [] { throw UserError("not made"); }, nothing, nothing),
      instead(
          good, nothing, [] { throw DeviceError("not bound"); }, nothing),
      instead(good, nothing, nothing, [] { throw std::runtime_error("not run"); }),
      instead(good, nothing, nothing, [&runs] {
        if (++runs == 2) throw DeviceError("not run a second time");
      })};
  const std::vector<double> seconds = product.times(test_backend(), {bad[0], bad[1], good, bad[2], bad[3]});
  REQUIRE(seconds.size() == 5);
  for (const std::size_t index : {0U, 1U, 3U, 4U}) CHECK(std::isinf(seconds[index]));
  CHECK(std::isfinite(seconds[2]));
  CHECK(user_error([&] { product.times(test_backend(), {bad[0], bad[1]}); }) == "not made");
}

TEST_CASE("kernels that are slow run twice, alone or beside a fast one") {
  const Product product;
  const Candidate good = test_backend().propose(product.query)[0];
  const Step nothing = [] {};
  int runs = 0;
  const Candidate slow = instead(good, nothing, nothing, [&] {
    ++runs;
    std::this_thread::sleep_for(60ms);
  });
  product.times(test_backend(), {good, slow});
  CHECK(runs == 2);
  product.times(test_backend(), {slow, slow});
  CHECK(runs == 6);
}

TEST_CASE("a kernel that waits takes at least so long, and longer than the one that does not") {
  TwoSpeeds backend(test_backend(), "mul", 20ms, 0us);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 6}});
  const Node y = x * x;
  const Region region = single(graph, y.id());
  const RegionQuery query{graph, region, {std::nullopt, std::nullopt}, {true}};
  const std::vector<double> seconds = measure(backend, query, backend.propose(query));
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0] >= 20e-3);
  CHECK(seconds[1] > 0);
  CHECK(seconds[1] < seconds[0]);
}

namespace {

// Knows if a recording is being made.
class Recorder final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    return inner().record([&] {
      is_recording = true;
      body();
      is_recording = false;
    });
  }

  bool is_recording = false;
};

}  // namespace

// The host launches a kernel twice before the recording. If one run takes too long for repeated runs, it also
// launches the kernel once in each round.
TEST_CASE("where steps are recorded, repeated runs of a kernel are replays, and the host launches none") {
  Recorder backend(test_backend());
  if (backend.record([] {}) == nullptr) return;
  const Product product;
  const Candidate good = test_backend().propose(product.query)[0];
  const Step nothing = [] {};
  int launched = 0;
  const Candidate counted =
      instead(good, nothing, nothing, [&] { launched += backend.is_recording ? 0 : 1; });
  product.times(backend, {counted, counted});
  CHECK(launched >= 4);
  CHECK(launched <= 2 * (2 + 20));
}

namespace {

// A kernel that shows the values of its inputs.
class Looking final : public Kernel {
 public:
  using Look = std::function<void(const Binding& binding)>;
  explicit Looking(Look look) : look_(std::move(look)) {}
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    look_(binding);
    return std::make_unique<Nothing>();
  }

 private:
  struct Nothing final : Launch {
    void run() override {}
  };
  Look look_;
};

}  // namespace

TEST_CASE("a device of its own measures over numbers where inputs are floating, and a host over zeros") {
  Graph graph;
  const Node rows = graph.input("rows", {DType::float32, {5, 4'000}});
  const Node indices = graph.input("indices", {DType::int64, {3}});
  const Region region = single(graph, gather(rows, indices).id());
  const RegionQuery query{graph, region, {std::nullopt, std::nullopt}, {true}};
  const auto far = open_backend("far");
  for (Backend* backend : {&test_backend(), far.get()}) {
    std::set<float> seen;
    std::set<std::int64_t> seen_indices;
    Candidate candidate = backend->propose(query)[0];
    candidate.make = [&] {
      return std::make_shared<Looking>([&](const Binding& binding) {
        const auto read = [&](std::size_t i, const Node& node) {
          return read_value(*backend, binding.inputs[i], node.type(), Layout::row_major(node.shape().rank()));
        };
        const Tensor values = read(0, rows);
        const Tensor numbers = read(1, indices);
        seen.insert(values.as<float>().begin(), values.as<float>().end());
        seen_indices.insert(numbers.as<std::int64_t>().begin(), numbers.as<std::int64_t>().end());
      });
    };
    measure(*backend, query, std::vector{candidate, candidate});
    CHECK(seen_indices == std::set<std::int64_t>{0});
    if (backend->info().host_memory) {
      CHECK(seen == std::set<float>{0});
    } else {
      CHECK(seen.size() > 10'000);
      CHECK(*seen.begin() >= -1);
      CHECK(*seen.rbegin() <= 1);
    }
  }
}

TEST_CASE("kernels with scratch memory and outputs that nobody wants can be measured") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 16, 5, 5}});
  const Region region = single(graph, moments(x).mean.id());
  const RegionQuery query{graph, region, {std::nullopt}, {true, false, true}};
  const std::vector<Candidate> candidates = test_backend().propose(query);
  const std::vector<double> seconds = measure(test_backend(), query, candidates);
  REQUIRE(seconds.size() == candidates.size());
  for (const double each : seconds) CHECK(each > 0);
}

}  // namespace plexaura::testing::measure_test
