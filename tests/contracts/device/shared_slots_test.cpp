// Programs that never run at the same time share the slots for their inputs. Batches that were written into
// tensors from these slots are read in place: no run takes another slot, and no slot is written while a run
// still reads it. Values elsewhere are copied into a slot.

#include <cstring>
#include <doctest/doctest.h>
#include <set>

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/support/backend.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"
#include "training/programs/evaluation.h"

namespace plexaura::testing::shared_slots_test {

namespace {

const TensorType total_type{DType::float32, {3}};

TensorType rows(std::int64_t count) { return {DType::float32, {count, 3}}; }
TensorType weights(std::int64_t count) { return {DType::uint8, {count, 1}}; }

std::vector<TensorType> types_of(std::int64_t count) { return {rows(count), weights(count)}; }

// Returns a program that adds to `total` the sum over the rows of x w.
std::shared_ptr<const Program> program_of(std::int64_t count, Backend& backend, const Placement* placement) {
  Graph graph;
  const Node x = graph.input("x", rows(count));
  const Node w = graph.input("w", weights(count));
  const Node total = graph.buffer("total", total_type);
  graph.update(total, total + sum(x * cast(w, DType::float32), {.axes = {0}}));
  return compile(graph, {}, backend, {.placement = placement});
}

struct Programs {
  explicit Programs(Backend& backend)
      : store({{"total", total_type, ParameterRole::buffer, Initialiser::zeros()}}) {
    const auto large = program_of(4, backend, nullptr);
    store.place(large->placement, backend);
    workspace = std::make_shared<Workspace>(backend, 1 << 12, large->feed_bytes);
    for (const std::int64_t count : {4, 2})
      vms.push_back(std::make_unique<VM>(program_of(count, backend, &store.placement()), backend,
                                         VmOptions{.store = &store, .workspace = workspace}));
  }

  VM& of(std::int64_t count) { return *vms[count == 4 ? 0 : 1]; }
  FeedMemory& feeds() { return workspace->feeds(); }
  void run(const std::vector<Tensor>& batch) {
    of(batch[0].shape()[0]).run({{"x", batch[0]}, {"w", batch[1]}});
  }

  ParameterStore store;
  std::shared_ptr<Workspace> workspace;
  std::vector<std::unique_ptr<VM>> vms;
};

// Writes a batch, and adds to `expected` what a run on this batch adds to the total.
void write(std::vector<Tensor>& batch, int step, double& expected) {
  std::ranges::fill(batch[0].as<float>(), static_cast<float>(step));
  std::ranges::fill(batch[1].as<std::uint8_t>(), static_cast<std::uint8_t>(step % 5));
  expected += static_cast<double>(batch[0].shape()[0]) * step * (step % 5);
}

// Records the addresses at which its samples were written.
class Noting final : public SampleSource {
 public:
  std::int64_t size() const override { return 22; }
  std::vector<Field> fields() const override {
    return {{"x", {DType::float32, {3}}}, {"w", {DType::uint8, {1}}}};
  }
  void read_fields(std::int64_t index, const SampleContext&,
                   std::span<const std::span<std::byte>> values) const override {
    const float value = static_cast<float>(index % 5) / 4;
    for (std::size_t i = 0; i < 3; ++i)
      std::memcpy(values[0].data() + i * sizeof value, &value, sizeof value);
    values[1][0] = std::byte{1};
    written.push_back(values[1].data());
  }
  mutable std::vector<const std::byte*> written;
};

LossOutputs times_factor(const ModelInputs& inputs) {
  const Node factor = inputs.graph().parameter("f", total_type);
  return {mean(square(inputs["x"] * cast(inputs["w"], DType::float32) * factor - 1))};
}

ParameterStore factor_store() {
  return ParameterStore({{"f", total_type, ParameterRole::trainable, Initialiser::ones()}});
}

}  // namespace

TEST_CASE("a batch is written where runs read it, and not before its last reader is done") {
  CountingBackend backend(test_backend());
  Programs programs(backend);
  double expected = 0;
  std::int64_t allocations = 0;
  for (int step = 1; step <= 20; ++step) {
    std::vector<Tensor> batch = programs.feeds().take(types_of(step % 3 == 0 ? 2 : 4));
    write(batch, step, expected);
    programs.run(batch);  // without a wait
    if (step == 3) allocations = backend.counts().allocations;
  }
  CHECK(backend.counts().allocations == allocations);
  CHECK(programs.store.read("total").to_doubles() == std::vector<double>(3, expected));
}

TEST_CASE(
    "a slot is nobody else's as long as a tensor lies in it, and a run that is fed from it takes no other") {
  Programs programs(test_backend());
  double expected = 0;
  std::vector<std::vector<Tensor>> batches;
  for (int step = 1; step <= 3; ++step) {
    batches.push_back(programs.feeds().take(types_of(4)));
    write(batches.back(), step, expected);
  }
  for (const std::vector<Tensor>& batch : batches) programs.run(batch);
  CHECK(programs.feeds().take_slot(1)->index() == 3);  // the slot after those of the batches
  CHECK(programs.store.read("total").to_doubles() == std::vector<double>(3, expected));
  programs.run(batches[1]);  // the same batch again
  expected += 4 * 2 * 2;
  CHECK(programs.store.read("total").to_doubles() == std::vector<double>(3, expected));
  const std::byte* second = batches[1][0].data();  // the slot that was taken last before take_slot()
  batches.erase(batches.begin(), batches.begin() + 2);
  CHECK(programs.feeds().take(types_of(4))[0].data() == second);
}

TEST_CASE("of many idle slots two are used in turn, so that a program is bound to no more") {
  Programs programs(test_backend());
  std::vector<std::vector<Tensor>> batches;
  for (int i = 0; i < 5; ++i) batches.push_back(programs.feeds().take(types_of(4)));
  batches.clear();
  std::set<const std::byte*> used;
  for (int i = 0; i < 10; ++i) used.insert(programs.feeds().take(types_of(4))[0].data());
  CHECK(used.size() == 2);
}

TEST_CASE("what lies elsewhere, or at another place in its slot, is copied") {
  Programs programs(test_backend());
  double expected = 0;
  std::vector<Tensor> plain{Tensor(rows(4)), Tensor(weights(4))};
  write(plain, 7, expected);
  programs.run(plain);
  std::vector<Tensor> mixed = programs.feeds().take(types_of(4));
  write(mixed, 3, expected);
  mixed[1] = Tensor(mixed[1]);
  programs.run(mixed);
  const std::vector<TensorType> exchanged{weights(2), rows(2)};
  std::vector<Tensor> batch = programs.feeds().take(exchanged);
  std::swap(batch[0], batch[1]);
  write(batch, 9, expected);
  programs.run(batch);
  CHECK(programs.store.read("total").to_doubles() == std::vector<double>(3, expected));
}

TEST_CASE("the trainer's loader writes where the programs read, in training and in validation") {
  ParameterStore store = factor_store();
  const auto train = std::make_shared<Noting>();
  const auto validation = std::make_shared<Noting>();
  Trainer trainer({times_factor, store, test_backend(), train, validation},
                  {.batch_size = 5, .micro_batches = 2, .epochs = 2, .workers = 0});
  const auto memory = trainer.programs().feed_memory();
  trainer.run();
  CHECK(train->written.size() == 44);
  CHECK(validation->written.size() == 44);
  for (const auto& source : {train, validation})
    for (const std::byte* place : source->written) CHECK(memory->find(place) != nullptr);
}

TEST_CASE("an evaluation without a trainer writes where its programs read") {
  ParameterStore store = factor_store();
  const auto source = std::make_shared<Noting>();
  SingleProcess alone;
  Evaluator evaluator(times_factor, source->fields(), store, test_backend(), alone);
  validate(evaluator, source, alone, {.batch_size = 5, .micro_batches = 2, .workers = 0});
  const auto memory = evaluator.feed_memory();
  REQUIRE(memory != nullptr);
  CHECK(source->written.size() == 22);
  for (const std::byte* place : source->written) CHECK(memory->find(place) != nullptr);
}

}  // namespace plexaura::testing::shared_slots_test
