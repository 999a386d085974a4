#include "core/compile/tuner.h"

#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "core/compile/compile.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/two_speeds.h"

namespace plexaura::testing::tuner_test {

namespace {

using namespace std::chrono_literals;

const TensorType type{DType::float32, {4, 6}};

// The graph of a program with one relu.
struct Model {
  Graph graph;
  std::vector<ProgramOutput> outputs{{.node = relu(graph.input("x", type)) + 1}};

  // Returns the kernel that was chosen for the relu.
  std::string chosen(Backend& backend, Tuner* tuner) const {
    const auto program = compile(graph, outputs, backend, {.tuner = tuner});
    VM vm(program, backend);
    vm.run({{"x", pattern(type.shape).cast(type.dtype)}});
    vm.wait();
    return program->instructions[0].implementation;
  }
};

// A backend that passes its candidates for relu through a function of the test.
class Offering final : public ForwardingBackend {
 public:
  using Change = std::function<void(std::vector<Candidate>&)>;
  explicit Offering(Change change) : ForwardingBackend(test_backend()), change_(std::move(change)) {}
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    if (query.region.kind == "relu") change_(candidates);
    return candidates;
  }

 private:
  Change change_;
};

// A backend with another name, like that of another build or machine.
class Renamed final : public ForwardingBackend {
 public:
  Renamed(Backend& inner, BackendInfo info) : ForwardingBackend(inner), info_(std::move(info)) {}
  const BackendInfo& info() const override { return info_; }

 private:
  BackendInfo info_;
};

std::shared_ptr<const Kernel> fails() { throw DeviceError("the device is on fire"); }

TwoSpeeds second_is_faster() { return {test_backend(), "relu", 20ms, 0us}; }

}  // namespace

TEST_CASE("without a tuner, and with one that is off, estimates choose") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  CHECK(model.chosen(backend, nullptr) == "first");
  Tuner off(Tuning::off);
  CHECK(model.chosen(backend, &off) == "first");
  CHECK(off.measured() == 0);
}

TEST_CASE("the kernel that is faster when it runs is taken, and is measured once") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Tuner tuner(Tuning::cached);
  CHECK(model.chosen(backend, &tuner) == "second");
  CHECK(tuner.measured() == 1);
  CHECK(model.chosen(backend, &tuner) == "second");
  CHECK(tuner.measured() == 1);
}

TEST_CASE("times that are known are believed and not measured again, but by who shall measure") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Tuner before(Tuning::cached);
  model.chosen(backend, &before);

  TwoSpeeds now(test_backend(), "relu", 0us, 20ms);  // equal candidates with other speeds
  Tuner cached(Tuning::cached);
  REQUIRE(cached.add(before.to_text()));
  CHECK(model.chosen(now, &cached) == "second");
  CHECK(cached.measured() == 0);
  CHECK(cached.to_text() == before.to_text());

  Tuner anew(Tuning::measure);
  REQUIRE(anew.add(before.to_text()));
  CHECK(model.chosen(now, &anew) == "first");
  CHECK(anew.measured() == 1);
  REQUIRE(anew.add(before.to_text()));  // its own measurement stays
  CHECK(model.chosen(now, &anew) == "first");
  CHECK(anew.measured() == 1);
}

TEST_CASE("a frozen tuner measures nothing: what is unknown is estimated") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  for (const Tuning tuning : {Tuning::cached, Tuning::measure}) {
    Tuner known(tuning);
    CHECK(model.chosen(backend, &known) == "second");
    Tuner frozen(tuning);
    frozen.freeze();
    CHECK(model.chosen(backend, &frozen) == "first");
    REQUIRE(frozen.add(known.to_text()));
    CHECK(model.chosen(backend, &frozen) == "second");
    CHECK(frozen.measured() == 0);
  }
}

TEST_CASE("another type is another thing to measure, an equal node is not") {
  TwoSpeeds backend = second_is_faster();
  Graph graph;
  const Node x = graph.input("x", type);
  const Node y = graph.input("y", {DType::float32, {5}});
  const std::vector<ProgramOutput> outputs{{.node = relu(relu(x) - 1)}, {.node = relu(y)}};
  Tuner tuner(Tuning::cached);
  compile(graph, outputs, backend, {.tuner = &tuner});
  CHECK(tuner.measured() == 2);
}

TEST_CASE("times of another library, processor, number of threads or build are not believed") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Tuner tuner(Tuning::cached);
  model.chosen(backend, &tuner);
  for (std::string BackendInfo::*part :
       {&BackendInfo::name, &BackendInfo::description, &BackendInfo::kind, &BackendInfo::build}) {
    BackendInfo info = backend.info();
    info.*part += " of another kind";
    Renamed other(backend, info);
    const std::size_t before = tuner.measured();
    CHECK(model.chosen(other, &tuner) == "second");
    CHECK(tuner.measured() == before + 1);
  }
}

TEST_CASE("a kernel that fails is not taken; where all fail the error is shown and no time is kept") {
  const Model model;
  Tuner tuner(Tuning::cached);
  Offering broken([](std::vector<Candidate>& candidates) {
    candidates.resize(1);
    candidates.push_back(candidates[0]);
    candidates[0].implementation = "broken";
    candidates[0].seconds = 0;
    candidates[0].make = fails;
  });
  const std::string chosen = model.chosen(broken, &tuner);
  CHECK(chosen != "broken");
  Tuner later(Tuning::cached);
  REQUIRE(later.add(tuner.to_text()));
  CHECK(model.chosen(broken, &later) == chosen);
  CHECK(later.measured() == 0);

  Tuner none(Tuning::cached);
  const std::string empty = none.to_text();
  Offering all_broken([](std::vector<Candidate>& candidates) {
    candidates.resize(1);
    candidates[0].make = fails;
    candidates.push_back(candidates[0]);
    candidates[1].implementation = "broken, too";
  });
  CHECK_THROWS_AS(model.chosen(all_broken, &none), DeviceError);
  CHECK(none.to_text() == empty);
  CHECK(none.measured() == 0);
}

TEST_CASE("what has no estimate is taken only where it was measured to be faster than another") {
  const Model model;
  Tuner tuner(Tuning::cached);
  const auto without_estimate = [](std::vector<Candidate>& candidates) {
    candidates.resize(1);
    candidates[0].seconds = std::numeric_limits<double>::infinity();
  };
  Offering alone(without_estimate);
  CHECK(user_error([&] { model.chosen(alone, &tuner); }).find("has no kernel for 'relu'") !=
        std::string::npos);
  CHECK(tuner.measured() == 0);
}

TEST_CASE("what was measured here, and what was asked for, can be had alone") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = relu(graph.input("y", {DType::float32, {5}})) + 1}};
  Tuner stored(Tuning::cached);
  model.chosen(backend, &stored);
  compile(graph, outputs, backend, {.tuner = &stored});
  CHECK(stored.used() == 2);

  Tuner reading(Tuning::cached);
  REQUIRE(reading.add(stored.to_text()));
  const std::string nothing = Tuner(Tuning::cached).to_text();
  CHECK(reading.used() == 0);
  CHECK(reading.to_text(Tuner::Part::own) == nothing);
  CHECK(reading.to_text(Tuner::Part::used) == nothing);
  model.chosen(backend, &reading);
  CHECK(reading.used() == 1);
  CHECK(reading.to_text(Tuner::Part::own) == nothing);
  const std::string used = reading.to_text(Tuner::Part::used);
  CHECK(used != nothing);
  CHECK(used.size() < stored.to_text().size());
  Tuner resumed(Tuning::cached);
  REQUIRE(resumed.add(used));
  CHECK(model.chosen(backend, &resumed) == "second");
  CHECK(resumed.measured() == 0);
  CHECK(stored.to_text(Tuner::Part::own) == stored.to_text());
  CHECK(stored.seconds_spent() > 0);
}

TEST_CASE("a damaged text is refused and changes nothing") {
  TwoSpeeds backend = second_is_faster();
  Tuner tuner(Tuning::cached);
  Model().chosen(backend, &tuner);
  const std::string text = tuner.to_text();
  Tuner other(Tuning::cached);
  const std::string empty = other.to_text();
  std::string changed = text;
  changed[changed.size() - 2] = changed[changed.size() - 2] == '1' ? '2' : '1';
  for (const std::string& wrong : {std::string(), std::string("times"), text.substr(0, text.size() / 2),
                                   text.substr(0, text.size() - 1), text + "\n", changed}) {
    CAPTURE(wrong);
    CHECK(!other.add(wrong));
  }
  CHECK(other.to_text() == empty);
  CHECK(other.add(text));
  CHECK(other.to_text() == text);
  CHECK(other.add(empty));
}

}  // namespace plexaura::testing::tuner_test
