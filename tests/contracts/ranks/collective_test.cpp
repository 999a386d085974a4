// Tests an op that communicates with other ranks in a step that is replayed. The two ranks are threads, each
// with its own backend.

#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::collective_test {

namespace {

std::unique_ptr<Backend> another_backend() { return open_backend(test_backend().info().name); }

const TensorType images{DType::float64, {2, 3, 4, 4}};

Tensor of_rank(int rank) { return whole_numbers(images, static_cast<std::uint64_t>(rank) + 1); }

constexpr std::int64_t all_samples = 6;
const TensorType filter{DType::float64, {5, 3, 3, 3}};
const TensorType out{DType::float64, {20, 2}};

// Centres channels by their mean over the samples of all ranks.
LossOutputs centred(Graph& graph, const Node& x, const Node& t) {
  const Node hidden = conv2d(x, graph.parameter("filter", filter));
  const Node mean =
      all_reduce_sum(sum(hidden, {.axes = {0, 2, 3}, .keepdims = true})) * (1.0 / (4 * all_samples));
  const Node seen = graph.buffer("seen", {DType::float64, {1, 5, 1, 1}});
  graph.update(seen, seen * 0.5 + mean);
  return {squared_error(matmul(flatten(tanh(hidden - mean)), graph.parameter("out", out)), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"filter", filter, ParameterRole::trainable, Initialiser::uniform(0.3)},
          {"out", out, ParameterRole::trainable, Initialiser::uniform(0.3)},
          {"seen", {DType::float64, {1, 5, 1, 1}}, ParameterRole::buffer, Initialiser::zeros()}};
}

Batch whole_batch() {
  return {whole_numbers({DType::float64, {all_samples, 3, 4, 4}}, 1),
          whole_numbers({DType::float64, {all_samples, 2}}, 2)};
}

// Trains ranks with the given numbers of samples, and returns the weights after some steps.
std::vector<Tensor> trained(const std::vector<std::int64_t>& shares) {
  std::vector<Tensor> result;
  ThreadRanks ranks(static_cast<int>(shares.size()));
  ranks.run([&](Collective& collective) {
    const auto backend = another_backend();
    SummingStrategy strategy(collective);
    const auto rank = static_cast<std::size_t>(collective.rank());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < rank; ++i) first += shares[i];
    const Batch mine = part(whole_batch(), first, shares[rank]);
    // In a run the placement comes from a rank with samples. Here all ranks compile the same program, so one
    // for a single sample gives the placement.
    Graph graph;
    SmallTraining placing(*backend, specs(), centred, part(whole_batch(), 0, 1),
                          {.collective = &collective, .sizes = {1}});
    SmallTraining run(*backend, specs(), centred, mine,
                      {.optimizer = {.momentum = 0.5},
                       .strategy = &strategy,
                       .collective = &collective,
                       .sizes = {shares[rank]},
                       .placement = &placing.store().placement()});
    strategy.begin(run.steps().border());
    for (int i = 0; i < 4; ++i) {
      run.launch(std::span(&mine, 1), 0.01, all_samples, first);
      CHECK(run.metrics().samples == all_samples);
    }
    if (rank == 0)
      for (const ParameterSpec& spec : specs()) result.push_back(run.value(spec.name));
  });
  return result;
}

}  // namespace

// The other ranks wait for the failed rank in the sum of the model, not in that of the gradients.
TEST_CASE("a rank that fails where a model sums over ranks ends with its error at once") {
  class Counting final : public SummingStrategy {
   public:
    using SummingStrategy::SummingStrategy;
    UpdateAnswer before_update(std::size_t bucket) override {
      ++asked;
      return SummingStrategy::before_update(bucket);
    }
    int asked = 0;
  };
  const std::string text = error_text<InternalError>([] {
    ThreadRanks(2).run([](Collective& collective) {
      const auto backend = another_backend();
      Counting strategy(collective);
      const Batch mine = part(whole_batch(), 0, 2);
      SmallTraining run(*backend, specs(), centred, mine,
                        {.strategy = &strategy, .collective = &collective, .sizes = {2}});
      strategy.begin(run.steps().border());
      if (collective.rank() == 0) {
        run.launch(std::span(&mine, 1), 0.01, 4, 0);
        return;
      }
      const Batch wrong = part(whole_batch(), 0, 3);
      try {
        run.launch(std::span(&wrong, 1), 0.01, 4, 2);
      } catch (const InternalError&) {
        CHECK(strategy.asked == 0);
        throw;
      }
    });
  });
  CHECK(text.starts_with("no program was compiled for 3 samples"));
}

TEST_CASE("two ranks sum a value inside a replayed program, and its gradient") {
  ThreadRanks ranks(2);
  ranks.run([](Collective& collective) {
    const auto inner = another_backend();
    CountingBackend backend(*inner);
    Graph graph;
    const Node x = graph.input("x", images);
    const Node w = graph.input("w", images);
    const Node total = all_reduce_sum(x * w);
    const Node loss = sum(square(total));
    const std::vector<ProgramOutput> outputs{{.node = total}, {.node = gradients(loss, {{w}})[0]}};
    VM vm(compile(graph, outputs, backend), backend, {.collective = &collective});
    for (int step = 1; step <= 5; ++step) {
      Tensor factor(images);
      for (double& element : factor.as<double>()) element = step;
      const Tensor mine = of_rank(collective.rank());
      vm.run({{"x", mine}, {"w", factor}});
      const Tensor both[] = {of_rank(0), of_rank(1)};
      const Tensor sums = vm.output(0);
      const Tensor slopes = vm.output(1);
      bool sums_right = true;
      bool slopes_right = true;
      for (std::size_t i = 0; i < static_cast<std::size_t>(mine.elements()); ++i) {
        const double expected = step * (both[0].as<double>()[i] + both[1].as<double>()[i]);
        sums_right = sums_right && sums.as<double>()[i] == expected;
        // The losses of both ranks depend on this rank's weight, so the gradient is 2 x 2 total x.
        slopes_right = slopes_right && slopes.as<double>()[i] == 4 * expected * mine.as<double>()[i];
      }
      CHECK(sums_right);
      CHECK(slopes_right);
    }
    if (backend.counts().recordings > 0) CHECK(backend.counts().replays > backend.counts().recordings);
  });
}

TEST_CASE(
    "statistics over all ranks train like one rank with the whole batch, one of them without samples or "
    "not") {
  const std::vector<Tensor> alone = trained({6});
  for (const std::vector<std::int64_t>& shares :
       {std::vector<std::int64_t>{3, 3}, {4, 2}, {6, 0}, {3, 2, 1}}) {
    const std::vector<Tensor> together = trained(shares);
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      const auto left = together[i].to_doubles();
      const auto right = alone[i].to_doubles();
      double most = 0;
      for (std::size_t k = 0; k < left.size(); ++k) most = std::max(most, std::abs(left[k] - right[k]));
      CAPTURE(i);
      CAPTURE(shares.size());
      CHECK(most < 1e-12);
    }
  }
}

TEST_CASE("summing over ranks allocates nothing in a run") {
  CountingBackend backend(test_backend());
  Graph graph;
  const Node x = graph.input("x", images);
  const std::vector<ProgramOutput> outputs{
      {.node = all_reduce_sum(square(all_reduce_sum(x))) + all_reduce_sum(sum(x))}};
  SingleProcess alone;
  VM vm(compile(graph, outputs, backend), backend, {.collective = &alone});
  const Tensor value = of_rank(0);
  vm.run({{"x", value}});
  vm.run({{"x", value}});
  vm.wait();
  const CountingBackend::Counts before = backend.counts();
  for (int i = 0; i < 5; ++i) vm.run({{"x", value}});
  CHECK(backend.counts().allocations == before.allocations);
  CHECK(backend.counts().events == before.events);
}

TEST_CASE("a program with such an op wants to know the ranks") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = all_reduce_sum(graph.input("x", images))}};
  const auto program = compile(graph, outputs, test_backend());
  CHECK_THROWS_WITH_AS(VM(program, test_backend()), doctest::Contains("give the VM a collective"), UserError);
}

TEST_CASE("ranks may sum a parameter that no kernel has read") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = all_reduce_sum(graph.parameter("filter", filter))}};
  ParameterStore store(specs());
  SingleProcess alone;
  VM vm(compile(graph, outputs, test_backend()), test_backend(), {.store = &store, .collective = &alone});
  vm.run({});
  CHECK(vm.output() == store.read("filter"));
}

}  // namespace plexaura::testing::collective_test
