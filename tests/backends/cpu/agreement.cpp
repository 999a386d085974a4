#include "tests/backends/cpu/agreement.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing {

namespace {

Backend& fast_backend() {
  static const auto backend = make_cpu_backend();
  return *backend;
}

Backend& oracle_backend() {
  static const auto backend = make_portable_backend();
  return *backend;
}

struct Run {
  std::vector<Tensor> outputs;
  std::string program;
};

Run run(const BuildGraph& build, Backend& backend, DType dtype, const AgreementOptions& options, int runs) {
  Graph graph(options.mode);
  std::vector<ProgramOutput> outputs;
  for (const Node& node : build(graph, dtype)) outputs.push_back({node});
  const auto program = compile(graph, outputs, backend);
  std::vector<Tensor> values;
  for (const Program::Feed& feed : program->feeds) values.push_back(drawn(feed.type, feed.name, options));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < values.size(); ++i) feeds.emplace_back(program->feeds[i].name, values[i]);
  VM vm(program, backend);
  Run result;
  for (int i = 0; i < runs; ++i) {
    vm.run(feeds, StepBlock{});
    std::vector<Tensor> now;
    for (std::size_t output = 0; output < outputs.size(); ++output) now.push_back(vm.output(output));
    CHECK_MESSAGE((i == 0 || now == result.outputs), "two runs differ");
    result.outputs = std::move(now);
  }
  result.program = program->to_text();
  return result;
}

std::vector<Tensor> inputs_of(const Graph& graph, NodeId node, const AgreementOptions& options) {
  std::vector<Tensor> inputs;
  for (const Value value : graph.record(node).inputs) {
    const Leaf* leaf = as_leaf(*graph.record(value.node).op);
    REQUIRE(leaf != nullptr);
    inputs.push_back(leaf->kind() == LeafKind::constant ? *leaf->value()
                                                        : drawn(leaf->type(), leaf->label(), options));
  }
  return inputs;
}

void check_padding(const DeviceValue& value) {
  const Tensor logical = value.read();
  const std::vector<std::byte> physical = value.read_bytes();
  std::vector<std::byte> expected(physical.size());
  reorder(logical.data(), Layout::row_major(logical.shape().rank()), expected.data(), value.layout(),
          logical.type());
  CHECK_MESSAGE(physical == expected, "padding is not zero in ", to_string(value.layout()));
}

Tensor result_of_node(Backend& backend, const BuildNode& build, DType dtype,
                      const AgreementOptions& options) {
  Graph graph(options.mode);
  const NodeId node = build(graph, dtype).id();
  RegionRun run(backend, graph, single(graph, node), inputs_of(graph, node, options));
  CHECK((run.candidate().implementation == "fast") == (&backend == &fast_backend()));
  run.output().spoil();
  run.launch();
  return run.output().read();
}

}  // namespace

double error_of(const Tensor& value, const Tensor& expected) {
  const std::vector<double> a = value.to_doubles();
  const std::vector<double> b = expected.to_doubles();
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return HUGE_VAL;
    if (std::isnan(a[i]) || a[i] == b[i]) continue;
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference == 0 ? 0 : difference / std::max(largest, 1e-30);
}

const std::vector<DType> every_dtype{DType::float64, DType::float32, DType::bfloat16, DType::float16,
                                     DType::int64,   DType::int32,   DType::uint8,    DType::boolean};

void check_bits(const BuildNode& build, const std::vector<DType>& dtypes, const AgreementOptions& options) {
  for (const DType dtype : dtypes) {
    CAPTURE(name_of(dtype));
    const Tensor found = result_of_node(fast_backend(), build, dtype, options);
    const Tensor wanted = result_of_node(oracle_backend(), build, dtype, options);
    if (found == wanted) continue;
    const std::vector<double> own = found.to_doubles();
    const std::vector<double> expected = wanted.to_doubles();
    for (std::size_t i = 0; i < own.size(); ++i) {
      CAPTURE(i);
      CAPTURE(own[i]);
      CAPTURE(expected[i]);
      CHECK(std::isnan(own[i]) == std::isnan(expected[i]));
      if (!std::isnan(expected[i]))
        CHECK((own[i] == expected[i] && std::signbit(own[i]) == std::signbit(expected[i])));
    }
  }
}

double Agreement::worst() const { return errors.empty() ? HUGE_VAL : *std::ranges::max_element(errors); }

Tensor drawn(const TensorType& type, std::string_view name, const AgreementOptions& options) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string_view>{}(name)));
  Tensor wide(TensorType{DType::float64, type.shape});
  for (double& element : wide.as<double>()) {
    const double unit = static_cast<double>(random()) / 4294967296.0;
    element = is_floating(type.dtype)
                  ? static_cast<float>(options.low + (options.high - options.low) * unit)
                  : std::floor(unit * static_cast<double>(type.dtype == DType::boolean ? 2 : options.labels));
  }
  return wide.cast(type.dtype);
}

Agreement agreement(const BuildGraph& build, const AgreementOptions& options) {
  Backend& backend = options.backend == nullptr ? fast_backend() : *options.backend;
  const Run fast = run(build, backend, options.dtype, options, 2);
  const Run oracle = run(build, oracle_backend(), DType::float64, options, 1);
  Agreement result;
  result.program = fast.program;
  for (std::size_t i = 0; i < fast.outputs.size(); ++i)
    result.errors.push_back(error_of(fast.outputs[i], oracle.outputs[i]));
  return result;
}

Agreement agreement_of_node(const BuildGraph& build, const std::vector<Layout>& layouts,
                            const AgreementOptions& options) {
  Graph fast_graph(options.mode);
  Graph oracle_graph(options.mode);
  const NodeId fast_node = build(fast_graph, options.dtype)[0].id();
  const NodeId oracle_node = build(oracle_graph, DType::float64)[0].id();
  RegionRun::Options run_options{.implementation = options.implementation};
  for (const Layout& layout : layouts) run_options.given.emplace_back(layout);
  RegionRun fast(fast_backend(), fast_graph, single(fast_graph, fast_node),
                 inputs_of(fast_graph, fast_node, options), run_options);
  RegionRun oracle(oracle_backend(), oracle_graph, single(oracle_graph, oracle_node),
                   inputs_of(oracle_graph, oracle_node, options));
  const auto outputs = fast_graph.record(fast_node).types.size();
  for (std::size_t i = 0; i < outputs; ++i) fast.output(i).spoil();
  fast.launch();
  oracle.launch();
  Agreement result;
  result.program = fast.candidate().implementation;
  for (std::size_t i = 0; i < outputs; ++i) {
    check_padding(fast.output(i));
    result.errors.push_back(error_of(fast.output(i).read(), oracle.output(i).read()));
  }
  return result;
}

std::vector<Candidate> offers(const Node& node, std::vector<std::optional<Layout>> given) {
  const auto backend = make_cpu_backend();
  const Region region = single(node.graph(), node.id());
  given.resize(region.inputs.size());
  return backend->propose({node.graph(), region, std::move(given), {true}});
}

bool has_onednn() { return cpu_libraries() != "no oneDNN"; }

Layout blocked_channels(std::int64_t block) { return Layout({0, 1, 2, 3}, {{1, block}}); }
Layout channels_last() { return Layout({0, 2, 3, 1}); }

}  // namespace plexaura::testing
