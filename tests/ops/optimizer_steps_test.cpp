#include "core/ops/optimizer_steps.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::optimizer_steps_test {

namespace {

const std::vector<StepSegment> two_segments{{0, 20, 0.01}, {20, 17, 0}};
const std::vector<StepSegment> three_rates{{0, 20, 0.01, 0.5}, {20, 10, 0, 1}, {30, 7, 0, 3}};
const RmsOptions all_of_rms{.kept = 0.8,
                            .added = 0.2,
                            .initial = 0.1,
                            .epsilon = 1e-3,
                            .momentum = 0.9,
                            .centered = true,
                            .segments = three_rates};
const CaseInput slice{{37}};
const CaseInput rate{{}, these({0.1}), DType::float32};

std::vector<Node> outputs(const SgdResult& result) {
  return result.momentum.is_empty() ? std::vector{result.value} : std::vector{result.value, result.momentum};
}

double learning_rate_of(const Tensor& scalar) { return scalar.as<double>()[0]; }

OpCase sgd(const std::string& name, SgdOptions options) {
  const bool moves = options.momentum != 0;
  OpCase op_case{"sgd_step, " + name,
                 "sgd_step",
                 {},
                 {slice, slice, rate},
                 [=](auto x) {
                   return reference::sgd_step(x[0], x[1], moves ? &x[3] : nullptr, learning_rate_of(x[2]),
                                              options);
                 },
                 false};
  if (!moves) {
    op_case.build = [=](Graph&, auto x) { return outputs(sgd_step(x[0], x[1], Node(), x[2], options)); };
  } else {
    op_case.inputs.push_back(slice);
    op_case.build = [=](Graph&, auto x) { return outputs(sgd_step(x[0], x[1], x[3], x[2], options)); };
  }
  return op_case;
}

OpCase adam(const std::string& name, const AdamOptions& options) {
  return {"adam_step, " + name,
          "adam_step",
          [=](Graph&, auto x) {
            const AdamResult result = adam_step(x[0], x[1], x[2], x[3], x[4], x[5], options);
            return std::vector{result.value, result.mean, result.square};
          },
          {slice, slice, slice, {{37}, between(0.1, 1)}, rate, {{}, these({3}), DType::float32}},
          [=](auto x) { return reference::adam_step(x.first(4), learning_rate_of(x[4]), 3, options); },
          false};
}

// Builds a step whose inputs are those of RmsStep. Returns the new value and the new state.
std::vector<Node> rms_nodes(std::span<const Node> x, const RmsOptions& options) {
  const RmsStep op(options);
  const std::size_t slices = op.slices();
  const RmsState state{.square = x[2],
                       .mean = options.centered ? x[3] : Node(),
                       .momentum = options.momentum != 0 ? x[slices - 1] : Node()};
  const RmsResult next =
      rms_step(x[0], x[1], state, x[slices], options, x.size() > slices + 1 ? x[slices + 1] : Node());
  std::vector<Node> results{next.value};
  for (const Node& node : {next.state.square, next.state.mean, next.state.momentum})
    if (!node.is_empty()) results.push_back(node);
  return results;
}

OpCase rms(const std::string& name, const RmsOptions& options) {
  OpCase op_case{"rms_step, " + name,
                 "rms_step",
                 [=](Graph&, auto x) { return rms_nodes(x, options); },
                 {slice, slice, {{37}, between(0.1, 1)}},
                 {},
                 false};
  const std::size_t slices = RmsStep(options).slices();
  while (op_case.inputs.size() < slices) op_case.inputs.push_back({{37}, between(-0.3, 0.3)});
  op_case.inputs.push_back(rate);
  op_case.expected = [=](auto x) {
    return reference::rms_step(x.first(slices), learning_rate_of(x[slices]), options);
  };
  return op_case;
}

const double loss_scale = 8;

// Returns the case with a loss scale, which has multiplied the gradient.
OpCase scaled(OpCase op_case, const BuildFunction& build) {
  op_case.name += " and a loss scale";
  op_case.build = build;
  op_case.inputs.push_back({{}, these({loss_scale}), DType::float64});
  op_case.expected = [expected = op_case.expected](std::span<const Tensor> x) {
    std::vector<Tensor> divided(x.begin(), x.end() - 1);
    for (double& element : divided[1].as<double>()) element /= loss_scale;
    return expected(divided);
  };
  return op_case;
}

OpCase scaled_sgd(const SgdOptions& options) {
  if (options.momentum == 0)
    return scaled(sgd("plain", options),
                  [=](Graph&, auto x) { return outputs(sgd_step(x[0], x[1], {}, x[2], options, x[3])); });
  return scaled(sgd("momentum", options),
                [=](Graph&, auto x) { return outputs(sgd_step(x[0], x[1], x[3], x[2], options, x[4])); });
}

OpCase scaled_adam(const AdamOptions& options) {
  return scaled(adam("decay", options), [=](Graph&, auto x) {
    const AdamResult result = adam_step(x[0], x[1], x[2], x[3], x[4], x[5], options, x[6]);
    return std::vector{result.value, result.mean, result.square};
  });
}

OpCase scaled_rms(const RmsOptions& options) {
  return scaled(rms("all options", options), [=](Graph&, auto x) { return rms_nodes(x, options); });
}

// Returns the case with a learning rate of float64, and with a loss scale of float32.
OpCase with_other_scalars(OpCase op_case) {
  op_case.name += ", scalars of other types";
  for (CaseInput& input : op_case.inputs)
    if (input.dtype) input.dtype = input.dtype == DType::float32 ? DType::float64 : DType::float32;
  return op_case;
}

// Returns the case with gradients that are not finite: the outputs equal the inputs in `kept`.
OpCase skipped(OpCase op_case, const std::vector<std::size_t>& kept) {
  op_case.name += " of 0";
  op_case.inputs.back().values = these({0});
  op_case.expected = [=](std::span<const Tensor> x) {
    std::vector<Tensor> same;
    for (const std::size_t input : kept) same.push_back(x[input]);
    return same;
  };
  return op_case;
}

const Cases cases({
    sgd("plain", {}),
    sgd("decay", {.segments = two_segments}),
    sgd("momentum", {.momentum = 0.9}),
    sgd("nesterov and decay", {.momentum = 0.9, .nesterov = true, .segments = two_segments}),
    sgd("three rates", {.segments = three_rates}),
    sgd("three rates and momentum", {.momentum = 0.9, .nesterov = true, .segments = three_rates}),
    adam("plain", {}),
    adam("decay", {.segments = two_segments}),
    adam("decoupled decay",
         {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .decoupled = true, .segments = two_segments}),
    adam("three rates", {.segments = three_rates}),
    adam("decoupled decay and three rates", {.decoupled = true, .segments = three_rates}),
    with_other_scalars(sgd("plain", {})),
    with_other_scalars(scaled_sgd({.momentum = 0.9})),
    with_other_scalars(scaled_adam({})),
    with_other_scalars(rms("plain", {})),
    with_other_scalars(scaled_rms(all_of_rms)),
    rms("plain", {}),
    rms("decay", {.segments = two_segments}),
    rms("three rates and a sum", {.kept = 1, .added = 1, .initial = 0.5, .segments = three_rates}),
    rms("centered", {.kept = 0.8, .added = 0.2, .epsilon = 1e-3, .centered = true}),
    rms("momentum and decay", {.momentum = 0.9, .segments = two_segments}),
    rms("centered with momentum", all_of_rms),
    scaled_rms({}),
    scaled_rms(all_of_rms),
    skipped(scaled_rms({}), {0, 2}),
    skipped(scaled_rms(all_of_rms), {0, 2, 3, 4}),
    scaled_sgd({}),
    scaled_sgd({.momentum = 0.9, .segments = two_segments}),
    scaled_adam({.segments = two_segments}),
    skipped(scaled_sgd({.segments = two_segments}), {0}),
    skipped(scaled_sgd({.momentum = 0.9}), {0, 3}),
    skipped(scaled_adam({}), {0, 2, 3}),
});

struct Leaves {
  explicit Leaves(Graph& graph)
      : value(graph.input("value", {DType::float32, {4}})),
        other(graph.input("other", {DType::float32, {5}})),
        rate(graph.input("rate", {DType::float32, {}})) {}
  Node value;
  Node other;
  Node rate;
};

WrongCase refused(const std::string& name, const SgdOptions& options, std::vector<std::string> words) {
  return {"sgd_step, " + name, "sgd_step",
          [=](Graph& graph) {
            const Leaves of(graph);
            sgd_step(of.value, of.value, options.momentum == 0 ? Node() : of.value, of.rate, options);
          },
          std::move(words)};
}

WrongCase refused_rms(const std::string& name, const RmsOptions& options, std::vector<std::string> words) {
  return {"rms_step, " + name, "rms_step",
          [=](Graph& graph) {
            const Leaves of(graph);
            rms_step(of.value, of.value, {of.value}, of.rate, options);
          },
          std::move(words)};
}

const WrongCases wrong({
    refused_rms("kept above 1", {.kept = 1.5}, {"kept must be from 0 to 1"}),
    refused_rms("added of 0", {.added = 0}, {"added must be above 0"}),
    refused_rms("initial below 0", {.initial = -1}, {"initial must be at least 0"}),
    refused_rms("epsilon", {.epsilon = 0}, {"epsilon must be above 0"}),
    refused_rms("a negative epsilon", {.epsilon = -1}, {"epsilon must be above 0, not -1"}),
    refused_rms("added below 0", {.added = -1}, {"added must be above 0, not -1"}),
    refused_rms("a rate of 0", {.segments = {{0, 4, 0, 0}}}, {"multiple of the learning rate", "not 0"}),
    refused_rms("centered without a mean", {.centered = true}, {"5 inputs", "4"}),
    refused("nesterov alone", {.nesterov = true}, {"nesterov needs momentum"}),
    refused("momentum of 1", {.momentum = 1}, {"momentum must be at least 0 and less than 1"}),
    refused("segments with a gap", {.segments = {{0, 2, 0}, {3, 1, 0}}},
            {"without gaps", "starts at 3 where 2"}),
    refused("segments that end early", {.segments = {{0, 3, 0}}}, {"cover the slice", "3 of 4"}),
    refused("a rate of 0", {.segments = {{0, 4, 0, 0}}}, {"multiple of the learning rate", "not 0"}),
    {"sgd_step, another length",
     "sgd_step",
     [](Graph& graph) {
       const Leaves of(graph);
       sgd_step(of.value, of.other, Node(), of.rate);
     },
     {"one type and length"}},
    {"sgd_step, a rate for each element",
     "sgd_step",
     [](Graph& graph) {
       const Leaves of(graph);
       sgd_step(of.value, of.value, Node(), of.value);
     },
     {"learning rate must be a scalar"}},
    {"sgd_step, a loss scale for each element",
     "sgd_step",
     [](Graph& graph) {
       const Leaves of(graph);
       sgd_step(of.value, of.value, Node(), of.rate, {}, of.value);
     },
     {"loss scale must be a scalar"}},
    {"adam_step, epsilon",
     "adam_step",
     [](Graph& graph) {
       const Leaves of(graph);
       adam_step(of.value, of.value, of.value, of.value, of.rate, of.rate, {.epsilon = 0});
     },
     {"epsilon must be above 0"}},
});

const std::vector<double> start{1.0, -2.0, 0.5};

Tensor gradient(int step) { return Tensor::of<double>({3}, {0.5 * step, -1.0 * step, 0.25 * step}); }

// Returns the value after three steps with the gradients above and a learning rate of 0.1.
Tensor three_sgd_steps(const SgdOptions& options) {
  Graph graph;
  const Node value = graph.input("value", {DType::float64, {3}});
  const Node grad = graph.input("grad", value.type());
  const Node momentum = graph.input("momentum", value.type());
  const SgdResult next = sgd_step(value, grad, momentum, graph.constant(Tensor::scalar(0.1)), options);
  Runner runner(graph, {next.value, next.momentum}, test_backend());
  std::vector<Tensor> state{Tensor::of<double>({3}, start), Tensor(value.type())};
  for (int step = 1; step <= 3; ++step) state = runner({state[0], gradient(step), state[1]});
  return state[0];
}

Tensor three_adam_steps(const AdamOptions& options) {
  Graph graph;
  const Node value = graph.input("value", {DType::float64, {3}});
  const Node grad = graph.input("grad", value.type());
  const Node mean = graph.input("mean", value.type());
  const Node square = graph.input("square", value.type());
  const Node step_number = graph.input("step", {DType::float64, {}});
  const AdamResult next =
      adam_step(value, grad, mean, square, graph.constant(Tensor::scalar(0.1)), step_number, options);
  Runner runner(graph, {next.value, next.mean, next.square}, test_backend());
  std::vector<Tensor> state{Tensor::of<double>({3}, start), Tensor(value.type()), Tensor(value.type())};
  for (int step = 1; step <= 3; ++step)
    state = runner({state[0], gradient(step), state[1], state[2], Tensor::scalar(static_cast<double>(step))});
  return state[0];
}

}  // namespace

TEST_CASE("optimizer steps: values") { check_all(cases); }
TEST_CASE("optimizer steps: what they refuse") { check_all(wrong); }

TEST_CASE("the steps of SGD agree with torch.optim.SGD") {
  check_close(three_sgd_steps({.momentum = 0.9}), {0.5245, -1.049, 0.26225});
  check_close(three_sgd_steps({.momentum = 0.9, .nesterov = true, .segments = {{0, 3, 0.01}}}),
              {0.26489045819099993, -0.5297809163819999, 0.13244522909549997});
}

TEST_CASE("the steps of Adam agree with torch.optim.Adam and AdamW") {
  AdamOptions options{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .segments = {{0, 3, 0.1}}};
  check_close(three_adam_steps(options), {0.7031252720067115, -1.7030178863530685, 0.20334239893232942});
  options.decoupled = true;
  check_close(three_adam_steps(options), {0.678053846548361, -1.6481499322661608, 0.19330924169025782});
}

// The engine may give an output the memory of any input that no later kernel reads.
TEST_CASE("a step that is skipped keeps values and state wherever its outputs lie") {
  const TensorType type{DType::float32, {3}};
  const TensorType scalar{DType::float32, {}};
  std::vector<float> value{1, 2, 3};
  std::vector<float> grad{4, 5, 6};
  std::vector<float> mean{7, 8, 9};
  std::vector<float> square{10, 11, 12};
  std::vector<float> scalars{0.1F, 3, 0};  // learning rate, step, loss scale
  const auto view = [](float& first, const TensorType& of) {
    return HostView{reinterpret_cast<std::byte*>(&first), &of};
  };
  const std::vector<HostView> inputs{
      view(value[0], type),     view(grad[0], type),      view(mean[0], type),     view(square[0], type),
      view(scalars[0], scalar), view(scalars[1], scalar), view(scalars[2], scalar)};
  const std::vector<HostView> outputs{inputs[2], inputs[0], inputs[1]};
  AdamStep(AdamOptions{}).compute({inputs, outputs});
  CHECK(mean == std::vector<float>{1, 2, 3});
  CHECK(value == std::vector<float>{7, 8, 9});
  CHECK(grad == std::vector<float>{10, 11, 12});
}

TEST_CASE("no option of an optimizer is left out of its description") {
  CHECK(!(SgdStep({.momentum = 0.9}) == SgdStep({.momentum = 0.8})));
  CHECK(!(SgdStep({.momentum = 0.9}) == SgdStep({.momentum = 0.9, .nesterov = true})));
  CHECK(!(SgdStep({.segments = {{0, 3, 0.1}}}) == SgdStep({.segments = {{0, 3, 0.2}}})));
  CHECK(!(SgdStep({.segments = {{0, 3, 0.1}}}) == SgdStep({.segments = {{0, 3, 0.1, 2}}})));
  CHECK(!(AdamStep({.decoupled = true}) == AdamStep(AdamOptions{})));
  for (const RmsOptions& other : {RmsOptions{.kept = 0.9},
                                  {.added = 0.1},
                                  {.initial = 1},
                                  {.epsilon = 1e-7},
                                  {.momentum = 0.9},
                                  {.centered = true}})
    CHECK(!(RmsStep(other) == RmsStep(RmsOptions{})));
  CHECK(!(AdamStep({.epsilon = 1e-7}) == AdamStep(AdamOptions{})));
}

}  // namespace plexaura::testing::optimizer_steps_test
