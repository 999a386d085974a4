// A backend whose library sums over ranks offers a kernel for all_reduce_sum. The program uses it like any
// other kernel, without a host point and in one recording.

#include <algorithm>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::offered_collective_test {

namespace {

struct RankSumOptions {
  Collective* ranks = nullptr;
  static void fields(auto& self, auto& visitor) { visitor("rank", std::int64_t{self.ranks->rank()}); }
};

// The sum by the backend's library, on the device's own thread and memory.
class RankSum final : public OpOf<RankSum, RankSumOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "test_rank_sum"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest&) const override { return {}; }
  void compute(const HostCall& call) const {
    const HostView& sum = call.outputs[0];
    copy_bytes(call.inputs[0], sum);
    options().ranks->sum(sum.dtype(), sum.data, sum.elements(), "a sum of the backend");
  }
};

// A backend that sums over ranks by two equivalent kernels.
class JoiningBackend final : public ForwardingBackend {
 public:
  JoiningBackend(Backend& inner, Collective& ranks) : ForwardingBackend(inner), ranks_(ranks) {}

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!query.op().traits().collective) return inner().propose(query);
    const auto asked = std::make_shared<Asked>();
    const Node x = asked->graph.input("x", query.type(query.region.inputs[0]));
    asked->region = single(asked->graph, apply(std::make_shared<RankSum>(RankSumOptions{&ranks_}), {x}).id());
    const Layout row_major = Layout::row_major(x.shape().rank());
    std::vector<Candidate> candidates = inner().propose({asked->graph, asked->region, {row_major}, {true}});
    REQUIRE(candidates.size() == 1);
    candidates.push_back(candidates[0]);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i].implementation = i == 0 ? "joined" : "joined too";
      candidates[i].make = [asked, make = candidates[i].make] { return make(); };
    }
    return candidates;
  }

 private:
  struct Asked {
    Graph graph;
    Region region;
  };
  Collective& ranks_;
};

const TensorType rows{DType::float64, {2, 48}};

Tensor of_rank(int rank) { return whole_numbers(rows, static_cast<std::uint64_t>(rank) + 1); }

}  // namespace

TEST_CASE("two ranks sum by the kernel that their backends offer, in one recording") {
  ThreadRanks ranks(2);
  ranks.run([](Collective& collective) {
    const auto inner = open_backend(test_backend().info().name);
    JoiningBackend joining(*inner, collective);
    CountingBackend backend(joining);
    Graph graph;
    const Node x = graph.input("x", rows);
    const Node w = graph.input("w", rows);
    const Node total = all_reduce_sum(x * w);
    const Node loss = sum(square(total));
    const std::vector<ProgramOutput> outputs{{.node = total}, {.node = gradients(loss, {{w}})[0]}};
    const auto program = compile(graph, outputs, backend);
    for (const Instruction& instruction : program->instructions)
      CHECK(std::holds_alternative<KernelWork>(instruction.work));
    VM vm(program, backend);
    constexpr int steps = 5;
    for (int step = 1; step <= steps; ++step) {
      Tensor factor(rows);
      for (double& element : factor.as<double>()) element = step;
      const Tensor mine = of_rank(collective.rank());
      vm.run({{"x", mine}, {"w", factor}});
      const std::vector<double> both[] = {of_rank(0).to_doubles(), of_rank(1).to_doubles()};
      const std::vector<double> sums = vm.output(0).to_doubles();
      const std::vector<double> slopes = vm.output(1).to_doubles();
      std::vector<double> expected_sums;
      std::vector<double> expected_slopes;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        expected_sums.push_back(step * (both[0][i] + both[1][i]));
        expected_slopes.push_back(4 * expected_sums.back() * mine.as<double>()[i]);
      }
      CHECK(sums == expected_sums);
      CHECK(slopes == expected_slopes);
    }
    if (backend.counts().recordings == 0) return;
    CHECK(backend.counts().recordings == 2);  // the whole program, once for each feed slot
    CHECK(backend.counts().replays == steps);
  });
}

TEST_CASE("a kernel that sums over ranks is never measured, nor part of a prologue") {
  const auto inner = open_backend(test_backend().info().name);
  SingleProcess alone;
  JoiningBackend backend(*inner, alone);
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = all_reduce_sum(graph.parameter("w", rows))}};
  Tuner tuner(Tuning::measure);
  const auto program = compile(graph, outputs, backend, {.tuner = &tuner});
  CHECK(tuner.measured() == 0);
  CHECK(program->prologue.empty());
  REQUIRE(program->instructions.size() == 1);
  CHECK(program->instructions[0].implementation == "joined");
}

TEST_CASE("ranks sum in row-major layout: a kernel for another one is not taken") {
  const auto inner = open_backend(test_backend().info().name);
  SingleProcess alone;
  JoiningBackend backend(*inner, alone);
  Graph graph;
  const Node images = graph.input("x", {DType::float32, {2, 3, 4, 4}});
  const std::vector<ProgramOutput> outputs{{.node = all_reduce_sum(images)}};
  const auto program = compile(graph, outputs, backend);
  for (const Instruction& instruction : program->instructions)
    if (!std::holds_alternative<KernelWork>(instruction.work) ||
        instruction.implementation.starts_with("joined"))
      CHECK(instruction.outputs[0]->layout.is_row_major());
}

}  // namespace plexaura::testing::offered_collective_test
