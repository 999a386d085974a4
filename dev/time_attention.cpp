// Times scaled_dot_product_attention on the CPU, with its regions and op by op, in turns. Prints the milliseconds of a run
// by the clock and of all processors, and the bytes of the arena: medians of the turns.

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "dev/processor_clock.h"
#include "tools/tool.h"

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/base/print.h"
#include "core/compile/compile.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/attention.h"
#include "core/vm/vm.h"

namespace plexaura {

namespace {

struct Options {
  std::vector<std::int64_t> heads{8};
  std::vector<std::int64_t> positions{256};
  std::vector<std::int64_t> features{64};
  bool is_causal = false;
  bool only_forward = false;
  double dropout = 0;
  int turns = 7;
};

void declare(CLI::App& app, Options& options) {
  const auto number = whole_number(1);
  app.add_option("--heads", options.heads, "numbers of pairs of matrices")
      ->check(number)
      ->capture_default_str();
  app.add_option("--positions", options.positions, "numbers of queries, and of keys")
      ->check(number)
      ->capture_default_str();
  app.add_option("--features", options.features, "numbers of features")->check(number)->capture_default_str();
  app.add_flag("--causal", options.is_causal, "query i attends to the keys 0 to i");
  app.add_flag("--forward", options.only_forward, "computes no gradients");
  app.add_option("--dropout", options.dropout, "the probability that a weight becomes 0");
  app.add_option("--turns", options.turns, "turns of both programs")->check(number)->capture_default_str();
}

// A backend without the regions of an attention.
class OpByOp final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Region> all = inner().regions(graph, last, uses);
    std::erase_if(all, [](const Region& region) { return region.kind.starts_with("attention"); });
    return all;
  }
  std::vector<Repeat> repeats(const Graph&, NodeId, const Uses&) const override { return {}; }
};

struct Times {
  std::vector<double> clock;
  std::vector<double> processors;
};

// An attention of one shape.
class TimedAttention {
 public:
  TimedAttention(Backend& backend, const Shape& shape, const Options& options) {
    Graph graph(Mode::train);
    const auto input = [&](const char* name) {
      names_.emplace_back(name);
      return graph.input(name, {DType::float32, shape});
    };
    const Node query = input("query"), key = input("key"), value = input("value");
    const Node result = scaled_dot_product_attention(
        query, key, value, {.is_causal = options.is_causal, .dropout = options.dropout});
    std::vector<Node> results{result};
    if (!options.only_forward)
      for (const Node& grad : vjp(results, std::vector{input("grad")}, std::vector{query, key, value}))
        results.push_back(grad);
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    program_ = compile(graph, outputs, backend);
    const auto workspace = std::make_shared<Workspace>(backend, program_->arena_bytes, program_->feed_bytes);
    const std::vector<TensorType> types(names_.size(), TensorType{DType::float32, shape});
    values_ = workspace->feeds().take(types);
    std::uint32_t random = 1;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (float& x : values_[i].as<float>()) {
        random = random * 1664525U + 1013904223U;
        x = static_cast<float>(random >> 8U) / 8388608.F - 1;
      }
      feeds_.emplace_back(names_[i], values_[i]);
    }
    vm_ = std::make_unique<VM>(program_, backend, VmOptions{.workspace = workspace});
    run(1);
  }

  double run(int runs) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) vm_->run(feeds_);
    vm_->wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / runs;
  }

  void take_turn(int runs) {
    const double before = processor_seconds();
    times_.clock.push_back(run(runs));
    times_.processors.push_back((processor_seconds() - before) / runs);
  }

  std::string text() {
    const auto median = [](std::vector<double>& times) {
      std::ranges::sort(times);
      return 1e3 * times[times.size() / 2];
    };
    return fmt::format("{:9.3f} {:9.3f} {:11}", median(times_.clock), median(times_.processors),
                       program_->arena_bytes);
  }

 private:
  std::shared_ptr<const Program> program_;
  std::vector<std::string> names_;
  std::vector<Tensor> values_;
  std::vector<Feed> feeds_;
  std::unique_ptr<VM> vm_;
  Times times_;
};

void time(const Options& options) {
  constexpr double seconds_of_turn = 0.05;
  const auto backend = make_cpu_backend();
  OpByOp op_by_op(*backend);
  print_output(fmt::format("{:>6} {:>9} {:>8} | regions: clock, processors, arena | op by op\n", "heads",
                           "positions", "features"));
  for (const std::int64_t features : options.features)
    for (const std::int64_t positions : options.positions)
      for (const std::int64_t heads : options.heads) {
        const Shape shape{heads, positions, features};
        TimedAttention fused(*backend, shape, options);
        TimedAttention apart(op_by_op, shape, options);
        const int runs = std::max(1, static_cast<int>(seconds_of_turn / apart.run(2)));
        for (int turn = 0; turn < options.turns; ++turn) {
          fused.take_turn(runs);
          apart.take_turn(runs);
        }
        print_output(fmt::format("{:6} {:9} {:8} | {} | {}\n", heads, positions, features, fused.text(),
                                 apart.text()));
      }
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Times scaled_dot_product_attention with its regions and op by op");
  Options options;
  declare(app, options);
  return run_tool(app, argc, argv, [&] { time(options); });
}
