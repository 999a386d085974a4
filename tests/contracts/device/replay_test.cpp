// Kernels read from memory what changes from step to step. So a recorded program uses the learning rate, the
// step and the random state of each run. Inputs use two slots, and a slot is written again only when its last
// reader is done.

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <iterator>
#include <thread>

#include "core/device/transfer.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/points.h"

namespace plexaura::testing::replay_test {

namespace {

// Returns true if the backend can record. A backend that cannot must not call the body.
bool records(Backend& backend) {
  bool called = false;
  const auto recording = backend.record([&] { called = true; });
  CHECK(called == (recording != nullptr));
  return called;
}

StepBlock block_of(int step) {
  StepBlock block;
  block.learning_rate = 0.5 * step;
  block.step = step;
  block.seed = 7;
  block.first_sample = std::int64_t{4} * step;
  return block;
}

Tensor input_of(int step) {
  return whole_numbers({DType::float32, {4, 6}}, static_cast<std::uint64_t>(step));
}

ParameterStore one_buffer(const char* name, TensorType type) {
  return ParameterStore({{name, std::move(type), ParameterRole::buffer, Initialiser::zeros()}});
}

}  // namespace

TEST_CASE("a replayed program takes each step's scalars and inputs") {
  CountingBackend backend(test_backend());
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 6}});
  const Node rate = graph.step_scalar(StepScalar::learning_rate, DType::float32);
  const Node step = graph.step_scalar(StepScalar::step, DType::float32);
  const std::vector<ProgramOutput> outputs{{.node = x * rate + step}, {.node = dropout(x, {.p = 0.5})}};
  VM vm(compile(graph, outputs, backend), backend);
  VM expected(compile(graph, outputs, oracle()), oracle());
  std::int64_t launches = 0;
  for (int i = 1; i <= 7; ++i) {
    CAPTURE(i);
    vm.run({{"x", input_of(i)}}, block_of(i));
    expected.run({{"x", input_of(i)}}, block_of(i));
    for (std::size_t output : {0, 1}) CHECK(vm.output(output) == expected.output(output));
    if (i == 2) launches = backend.counts().launches;
  }
  if (!records(test_backend())) return;
  CHECK(backend.counts().launches ==
        launches);  // each segment was captured once for each slot, and never launched again
  CHECK(backend.counts().recordings == 2);
  CHECK(backend.counts().replays == 7);
}

TEST_CASE("runs that nobody waits for keep their inputs and scalars apart") {
  Graph graph;
  const TensorType type{DType::float32, {4, 6}};
  const Node x = graph.input("x", type);
  const Node total = graph.buffer("total", type);
  graph.update(total, total * 2 + x * graph.step_scalar(StepScalar::learning_rate, DType::float32));
  ParameterStore store = one_buffer("total", type);
  CountingBackend backend(test_backend());
  const auto program = compile(graph, {}, backend);
  VM vm(program, backend, {.store = &store});
  std::vector<double> expected(24, 0);
  std::int64_t allocations = 0;
  for (int i = 1; i <= 9; ++i) {
    const Tensor fed = input_of(i);  // destroyed before the run is done
    vm.run({{"x", fed}}, block_of(i));
    const std::vector<double> values = fed.to_doubles();
    for (std::size_t k = 0; k < 24; ++k) expected[k] = expected[k] * 2 + values[k] * 0.5 * i;
    if (i == 2) allocations = backend.counts().allocations;
  }
  CHECK(backend.counts().allocations == allocations);
  vm.wait();
  CHECK(store.read("total").to_doubles() == expected);
}

TEST_CASE("learning rate, step and random state take effect in recorded training") {
  const TensorType weights{DType::float32, {6, 3}};
  const std::vector<ParameterSpec> specs{{"w", weights, ParameterRole::trainable, Initialiser::uniform(1)}};
  const SmallTraining::Model model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    const Node hidden = dropout(x, {.p = 0.5});
    return {squared_error(tanh(matmul(hidden, graph.parameter("w", weights))), t)};
  };
  const Batch batch{input_of(1), whole_numbers({DType::float32, {4, 3}}, 9, 1)};
  const SmallTraining::Options options{.optimizer = {.kind = OptimizerSpec::Kind::adam}, .seed = 3};
  SmallTraining run(test_backend(), specs, model, batch, options);
  SmallTraining expected(oracle(), specs, model, batch, options);
  std::vector<Tensor> seen{run.value("w")};
  for (int i = 1; i <= 6; ++i) {
    CAPTURE(i);
    const double rate = i == 4 ? 0 : 0.1 / i;
    const StepMetrics metrics = run.step(batch, rate);
    CHECK(metrics.loss == doctest::Approx(expected.step(batch, rate).loss).epsilon(1e-5));
    const auto values = run.value("w").to_doubles();
    const auto wanted = expected.value("w").to_doubles();
    for (std::size_t k = 0; k < values.size(); ++k) CHECK(std::abs(values[k] - wanted[k]) < 1e-5);
    CHECK((run.value("w") == seen.back()) == (rate == 0));
    seen.push_back(run.value("w"));
  }
}

TEST_CASE("a point of the host that only enqueues cuts no recording") {
  CountingBackend backend(test_backend());
  Graph graph;
  const TensorType type{DType::float32, {4, 6}};
  const Node x = graph.input("x", type);
  const Node total = graph.buffer("total", type);
  graph.update(total, exp(total + x) * 0.25);
  ParameterStore store = one_buffer("total", type);
  const auto program = compile(graph, {}, backend);
  store.place(program->placement, backend);
  const auto staging = backend.allocate(static_cast<std::size_t>(type.bytes()), MemoryUse::staging);
  const auto computed = backend.make_event();
  const auto copied = backend.make_event();
  const std::size_t end = program->instructions.size();
  std::vector<std::size_t> calls;
  Tensor seen(type);
  const auto enqueue_copy = [&] {
    computed->record(Stream::compute);
    computed->hold(Stream::copy);
    backend.copy(Stream::copy, staging->address(), store.values(), static_cast<std::size_t>(type.bytes()));
    copied->record(Stream::copy);
  };
  const auto work = [&](std::size_t point) {
    calls.push_back(point);
    if (point != 2) return;
    copied->wait();
    std::memcpy(seen.data(), staging->address(), seen.bytes());
  };
  VM vm(program, backend, {.store = &store, .host_points = {{end, 2, enqueue_copy}, {1, 1, [] {}}}});
  for (int i = 1; i <= 5; ++i) {
    CAPTURE(i);
    const CountingBackend::Counts before = backend.counts();
    calls.clear();
    run_with_points(vm, {{"x", input_of(i)}}, work);
    CHECK(calls == std::vector<std::size_t>{1, 2});
    vm.wait();
    CHECK(seen == store.read("total"));
    if (records(test_backend())) CHECK(backend.counts().replays == before.replays + 1);
  }
}

TEST_CASE("a replay releases a stream that an event has held since before it was recorded") {
  Backend& backend = test_backend();
  const auto recorded = backend.make_event();
  const auto behind = backend.make_event();
  const auto recording = backend.record([&] { recorded->record(Stream::compute); });
  if (recording == nullptr) return;
  recorded->hold(Stream::copy);
  behind->record(Stream::copy);
  recording->replay();
  behind->wait();
  CHECK(recorded->passed());
}

TEST_CASE("a recording runs when it is replayed, on what memory holds then") {
  Backend& backend = test_backend();
  if (!records(backend)) return;
  Graph graph;
  const Node weight = graph.input("weight", {DType::float32, {4}});
  const Node rate = graph.step_scalar(StepScalar::learning_rate, DType::float32);
  const Node next = weight * rate;
  RegionRun run(backend, graph, single(graph, next.id()),
                {counting(weight.type(), 1, 1), Tensor::scalar(0.5F)});
  run.output().write(counting(weight.type(), 9, 0));
  const auto recording = backend.record([&] { run.launch(); });
  wait_for(backend);
  CHECK(run.output().read() == counting(weight.type(), 9, 0));
  for (const float changed : {2.0F, 3.0F}) {
    run.input(1).write(Tensor::scalar(changed));
    recording->replay();
    CHECK(run.output().read() == counting(weight.type(), changed, changed));
  }
}

TEST_CASE("copies within the device can be recorded") {
  Backend& backend = test_backend();
  if (!records(backend)) return;
  const TensorType type{DType::float32, {4}};
  DeviceValue from(backend, counting(type), Layout::row_major(1));
  DeviceValue to(backend, type, Layout::row_major(1));
  const auto recording =
      backend.record([&] { backend.copy(Stream::compute, to.address(), from.address(), 16); });
  from.write(counting(type, 7));
  recording->replay();
  CHECK(to.read() == counting(type, 7));
}

TEST_CASE("a replay stands in the compute stream with all its copies") {
  Backend& backend = test_backend();
  if (!records(backend)) return;
  const TensorType type{DType::float32, {4}};
  DeviceValue from(backend, counting(type), Layout::row_major(1));
  DeviceValue to(backend, type, Layout::row_major(1));
  const auto begun = backend.make_event();
  const auto recording = backend.record([&] {
    begun->record(Stream::compute);
    begun->hold(Stream::copy);
    backend.copy(Stream::copy, to.address(), from.address(), 16);
  });
  const auto open = backend.make_event();
  open->hold(Stream::copy);  // the copy stream is held, but not the copies of the recording
  recording->replay();
  wait_for(backend);
  open->signal();  // released before staging memory is allocated and freed, which may wait for the device
  CHECK(to.read() == counting(type));
  wait_for(backend, Stream::copy);
}

TEST_CASE("while recording, what a recording cannot hold is refused") {
  Backend& backend = test_backend();
  if (!records(backend)) return;
  const auto device = backend.allocate(16, MemoryUse::device);
  const auto staging = backend.allocate(16, MemoryUse::staging);
  const auto event = backend.make_event();
  event->record(Stream::compute);
  const auto recording = backend.record([] {});
  const std::function<void()> forbidden[] = {
      [&] { backend.allocate(16, MemoryUse::device); },
      [&] { backend.allocate(16, MemoryUse::staging); },
      [&] { event->wait(); },
      [&] { event->passed(); },
      [&] { event->signal(); },
      [&] { event->reset(); },
      [&] { event->hold(Stream::compute); },
      [&] { event->hold(Stream::copy); },
      [&] { event->record(Stream::copy); },
      [&] { backend.copy(Stream::copy, device->address(), device->address(), 16); },
      [&] { backend.copy(Stream::copy, staging->address(), device->address(), 16); },
      [&] { backend.record([] {}); },
      [&] { recording->replay(); },
  };
  for (std::size_t i = 0; i < std::size(forbidden); ++i) {
    CAPTURE(i);
    CHECK_THROWS_WITH_AS(backend.record(forbidden[i]), doctest::Contains("while a segment is recorded"),
                         InternalError);
    CHECK_NOTHROW(wait_for(backend));
  }
}

TEST_CASE("another thread may wait while one records") {
  Backend& backend = test_backend();
  if (!records(backend)) return;
  const auto event = backend.make_event();
  event->record(Stream::compute);
  bool waited = false;
  backend.record([&] {
    std::thread communication([&] {
      event->wait();
      waited = true;
    });
    communication.join();
  });
  CHECK(waited);
}

}  // namespace plexaura::testing::replay_test
