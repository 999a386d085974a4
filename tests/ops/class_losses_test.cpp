#include "core/ops/class_losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <utility>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::class_losses_test {

namespace {

using reference::at;

constexpr std::int64_t samples = 4;
constexpr std::int64_t classes = 3;

// The targets that labels stand for: 1 at the label, and no class for the one to ignore.
Tensor targets_of(const Tensor& labels, const CrossEntropyOptions& options) {
  Tensor targets = reference::zeros({samples, classes});
  for (std::int64_t n = 0; n < samples; ++n)
    if (static_cast<std::int64_t>(at(labels, n)) != options.ignore)
      at(targets, n, static_cast<std::int64_t>(at(labels, n))) = 1;
  return targets;
}

// `ignored` has 1 for samples that do not count.
Tensor entropies(const Tensor& log_probabilities, const Tensor& targets, const Tensor* weights,
                 const std::vector<bool>& ignored, const CrossEntropyOptions& options) {
  Tensor losses = reference::zeros({samples});
  double count = 0;
  double total = 0;
  for (std::int64_t n = 0; n < samples; ++n) {
    if (ignored[static_cast<std::size_t>(n)]) continue;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double target =
          at(targets, n, c) * (1 - options.label_smoothing) + options.label_smoothing / classes;
      at(losses, n) -= (weights == nullptr ? 1 : at(*weights, c)) * target * at(log_probabilities, n, c);
    }
    total += at(losses, n);
    ++count;
  }
  if (options.reduction == Reduction::none) return losses;
  Tensor result = reference::zeros({});
  at(result) = options.reduction == Reduction::sum ? total : total / count;
  return result;
}

std::vector<bool> ignored_of(const Tensor& labels, const CrossEntropyOptions& options) {
  std::vector<bool> ignored;
  for (std::int64_t n = 0; n < samples; ++n)
    ignored.push_back(static_cast<std::int64_t>(at(labels, n)) == options.ignore);
  return ignored;
}

const Values some_labels = these({2, 0, 1, 0});

OpCase label_case(const std::string& name, bool has_weights, const CrossEntropyOptions& options) {
  std::vector<CaseInput> inputs{{{samples, classes}}, {{samples}, some_labels, DType::int64}};
  if (has_weights) inputs.push_back({{classes}, between(0.5, 2)});
  return {"softmax_cross_entropy, " + name + ", " + std::string(name_of(options.reduction)),
          "softmax_cross_entropy",
          [=](Graph&, auto x) {
            return std::vector{has_weights ? softmax_cross_entropy(x[0], x[1], x[2], options)
                                           : softmax_cross_entropy(x[0], x[1], options)};
          },
          inputs,
          [=](auto x) {
            return std::vector{entropies(reference::log_softmax(x[0], 1), targets_of(x[1], options),
                                         has_weights ? &x[2] : nullptr, ignored_of(x[1], options), options)};
          }};
}

OpCase target_case(const std::string& name, bool has_weights, const CrossEntropyOptions& options) {
  std::vector<CaseInput> inputs{{{samples, classes}}, {{samples, classes}, between(0.1, 1)}};
  if (has_weights) inputs.push_back({{classes}, between(0.5, 2)});
  return {"softmax_cross_entropy, " + name + ", " + std::string(name_of(options.reduction)), "log_softmax",
          [=](Graph&, auto x) {
            return std::vector{has_weights ? softmax_cross_entropy(x[0], x[1], x[2], options)
                                           : softmax_cross_entropy(x[0], x[1], options)};
          },
          inputs,
          [=](auto x) {
            return std::vector{entropies(reference::log_softmax(x[0], 1), x[1], has_weights ? &x[2] : nullptr,
                                         std::vector<bool>(samples), options)};
          }};
}

OpCase nll_case(const std::string& name, bool has_weights, const CrossEntropyOptions& options) {
  std::vector<CaseInput> inputs{{{samples, classes}, between(-3, -0.1)},
                                {{samples}, some_labels, DType::int64}};
  if (has_weights) inputs.push_back({{classes}, between(0.5, 2)});
  return {"nll, " + name + ", " + std::string(name_of(options.reduction)), "take_along_axis",
          [=](Graph&, auto x) {
            return std::vector{has_weights ? nll(x[0], x[1], x[2], options) : nll(x[0], x[1], options)};
          },
          inputs,
          [=](auto x) {
            return std::vector{entropies(x[0], targets_of(x[1], options), has_weights ? &x[2] : nullptr,
                                         ignored_of(x[1], options), options)};
          }};
}

const Cases cases({
    label_case("smooth labels", false, {.label_smoothing = 0.2}),
    label_case("smooth labels", false, {.reduction = Reduction::none, .label_smoothing = 1}),
    label_case("smooth labels without one", false, {.ignore = 0, .label_smoothing = 0.2}),
    label_case("weights", true, {}),
    label_case("weights", true, {.reduction = Reduction::sum}),
    label_case("weights without one label", true, {.ignore = 0}),
    label_case("weights and smooth labels without one", true,
               {.reduction = Reduction::none, .ignore = 2, .label_smoothing = 0.3}),
    target_case("targets", false, {}),
    target_case("targets", false, {.reduction = Reduction::none}),
    target_case("smooth targets", false, {.reduction = Reduction::sum, .label_smoothing = 0.1}),
    target_case("smooth targets with weights", true, {.label_smoothing = 0.1}),
    nll_case("labels", false, {}),
    nll_case("labels", false, {.reduction = Reduction::none}),
    nll_case("without one label", false, {.ignore = 0}),
    nll_case("weights", true, {}),
    nll_case("weights without one label", true, {.reduction = Reduction::sum, .ignore = 2}),
});

Node logits_of(Graph& graph) { return graph.input("logits", {DType::float32, {samples, classes}}); }
Node labels_of(Graph& graph) { return graph.input("labels", {DType::int64, {samples}}); }

template <class Build>
WrongCase wrong_use(const std::string& name, const std::string& op, const Build& build,
                    std::vector<std::string> words) {
  return {op + ", " + name, op, [=](Graph& graph) { build(logits_of(graph), labels_of(graph)); },
          std::move(words)};
}

const WrongCases wrong({
    wrong_use("too smooth", "softmax_cross_entropy",
              [](const Node& x, const Node& y) { softmax_cross_entropy(x, y, {.label_smoothing = 1.5}); },
              {"label_smoothing must be from 0 to 1, not 1.5"}),
    wrong_use("smoothing of nan", "softmax_cross_entropy",
              [](const Node& x, const Node& y) {
                softmax_cross_entropy(x, y, {.label_smoothing = std::nan("")});
              },
              {"label_smoothing must be from 0 to 1, not nan"}),
    wrong_use("targets without a label", "softmax_cross_entropy",
              [](const Node& x, const Node&) { softmax_cross_entropy(x, x, {.ignore = -1}); },
              {"targets have no label to ignore"}),
    wrong_use("weights of samples", "softmax_cross_entropy",
              [](const Node& x, const Node& y) { softmax_cross_entropy(x, y, sum(x, {.axes = {1}})); },
              {"the weights must be float32[3], one for each class"}),
    wrong_use(
        "the op with smooth labels", "softmax_cross_entropy",
        [](const Node& x, const Node& y) {
          apply(std::make_shared<SoftmaxCrossEntropy>(CrossEntropyOptions{.label_smoothing = 0.1}), {x, y});
        },
        {"label smoothing has no op of its own"}),
    wrong_use("float labels with weights", "softmax_cross_entropy",
              [](const Node& x, const Node&) {
                const Node of_classes = sum(x, {.axes = {0}});
                softmax_cross_entropy(x, of_classes, of_classes);
              },
              {"needs int64 labels [4], one for each sample"}),
    wrong_use("targets", "weighted_cross_entropy",
              [](const Node& x, const Node&) { weighted_cross_entropy(x, x); },
              {"needs int64 labels; pass targets to softmax_cross_entropy()"}),
    wrong_use("a reduction", "weighted_cross_entropy",
              [](const Node& x, const Node& y) {
                weighted_cross_entropy(x, y, {.reduction = Reduction::sum});
              },
              {"a reduction has no effect; leave it out"}),
    wrong_use("weights of samples", "weighted_cross_entropy",
              [](const Node& x, const Node& y) { weighted_cross_entropy(x, y, sum(x, {.axes = {1}})); },
              {"the weights must be float32[3], one for each class"}),
    wrong_use("targets", "nll", [](const Node& x, const Node&) { nll(x, x); },
              {"nll(float32[4,3], float32[4,3]): needs int64 labels"}),
    wrong_use("smooth labels", "nll",
              [](const Node& x, const Node& y) { nll(x, y, {.label_smoothing = 0.1}); },
              {"cannot smooth labels"}),
    wrong_use("vectors", "nll", [](const Node& x, const Node& y) { nll(sum(x, {.axes = {1}}), y); },
              {"two axes, samples and classes"}),
});

std::vector<Tensor> run_with(const std::vector<std::int64_t>& labels,
                             const std::function<std::vector<Node>(const Node&, const Node&)>& build) {
  Graph graph;
  const Node x = logits_of(graph);
  const Node y = labels_of(graph);
  return Runner(graph, build(x, y),
                test_backend())({Tensor(x.type()), Tensor::of<std::int64_t>({samples}, labels)});
}

}  // namespace

TEST_CASE("losses of classes: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("losses of classes: what they refuse") { check_all(wrong); }

// Expected losses are those of torch.nn.CrossEntropyLoss in float64, and expected gradients those of the first sample.
TEST_CASE("a weighted cross-entropy divided by its weight is the mean of PyTorch") {
  struct Expected {
    bool has_weights;
    CrossEntropyOptions options;
    double weight;
    double loss;
    std::array<double, 3> gradient;
  };
  const std::vector<Expected> all{
      {false, {}, 4, 0.835692230148599, {0.043822598035, 0.00977814331767, -0.0536007413527}},
      {false, {.ignore = 0}, 2, 0.80642516425492, {0.08764519607, 0.0195562866353, -0.107201482705}},
      {false,
       {.ignore = 0, .label_smoothing = 0.1},
       2,
       0.889758497588253,
       {0.0709785294034, 0.00288961996868, -0.073868149372}},
      {true, {}, 6.5, 1.12872774889598, {0.0134838763185, 0.00300865948236, -0.0164925358008}},
      {true, {.ignore = 0}, 4.5, 1.24595817238651, {0.0194767102378, 0.00434584147452, -0.0238225517123}},
      {true,
       {.label_smoothing = 0.1},
       6.5,
       1.20116384099751,
       {0.0119513715418, -0.0167018518352, 0.00475048029331}},
      {true,
       {.ignore = 0, .label_smoothing = 0.1},
       4.5,
       1.29447847964271,
       {0.0172630922271, -0.0241248970952, 0.00686180486812}},
  };
  const Tensor values = Tensor::of<double>({4, 3}, {0.5, -1, 2, 1, 0.25, -0.5, -1.5, 0, 1, 0.1, 0.2, 0.3});
  for (const Expected& expected : all) {
    CAPTURE(expected.loss);
    Graph graph;
    const Node x = graph.input("logits", {DType::float64, {samples, classes}});
    const Node y = labels_of(graph);
    const Node weights = graph.constant(Tensor::of<double>({classes}, {1, 4, 0.5}));
    const WeightedLoss loss = expected.has_weights ? weighted_cross_entropy(x, y, weights, expected.options)
                                                   : weighted_cross_entropy(x, y, expected.options);
    const Node mean = loss.sum / loss.weight;
    const auto found = Runner(graph, {mean, loss.weight, gradients(mean, {x})[0]},
                              test_backend())({values, Tensor::of<std::int64_t>({samples}, {2, 0, 1, 0})});
    CHECK(found[0].to_doubles()[0] == doctest::Approx(expected.loss).epsilon(1e-12));
    CHECK(found[1].to_doubles()[0] == expected.weight);
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(found[2].to_doubles()[c] == doctest::Approx(expected.gradient[c]).epsilon(1e-10));
  }
}

TEST_CASE("an unknown label makes composed cross-entropies NaN, and is an error of nll") {
  for (const std::int64_t label : {-1, 3}) {
    const auto losses = run_with({0, label, -100, 1}, [](const Node& x, const Node& y) {
      const CrossEntropyOptions options{.reduction = Reduction::none, .ignore = -100, .label_smoothing = 0.1};
      const Node weights = x.graph().constant(Tensor::of<float>({classes}, {1, 2, 3}));
      return std::vector{
          softmax_cross_entropy(x, y, options),
          softmax_cross_entropy(x, y, weights, {.reduction = Reduction::none, .ignore = -100})};
    });
    for (const Tensor& result : losses) {
      const std::vector<double> values = result.to_doubles();
      CHECK(std::isnan(values[1]));
      CHECK(values[2] == 0);
      CHECK(std::isfinite(values[0] + values[3]));
    }
    const std::string text = error_text<Error>([&] {
      run_with({0, label, -100, 1},
               [](const Node& x, const Node& y) { return std::vector{nll(x, y, {.ignore = -100})}; });
    });
    CHECK_MESSAGE(text.find("element 1 of the indices is " + std::to_string(label)) != std::string::npos,
                  text);
    CHECK_MESSAGE(text.find("class_losses_test.cpp") != std::string::npos, text);
  }
}

TEST_CASE("losses of samples that are all ignored are 0, and so are their gradients") {
  const auto results = run_with({-1, -1, -1, -1}, [](const Node& x, const Node& y) {
    std::vector<Node> wanted{nll(x, y, {.ignore = -1}),
                             softmax_cross_entropy(x, y, {.ignore = -1, .label_smoothing = 0.1})};
    for (const std::size_t i : {0, 1}) wanted.push_back(gradients(wanted[i], {x})[0]);
    return wanted;
  });
  for (const Tensor& result : results)
    CHECK(result.to_doubles() == std::vector<double>(static_cast<std::size_t>(result.elements()), 0));
}

TEST_CASE("the mean of the samples that are not ignored is their sum divided by their number") {
  using Loss = std::function<Node(const Node& x, const Node& y, const CrossEntropyOptions& options)>;
  const std::vector<std::pair<double, Loss>> losses{
      {0.0, [](auto& x, auto& y, auto& options) { return nll(x, y, options); }},
      {0.0, [](auto& x, auto& y, auto& options) { return softmax_cross_entropy(x, y, options); }},
      {0.1, [](auto& x, auto& y, auto& options) { return softmax_cross_entropy(x, y, options); }}};
  for (const std::int64_t count : {1, 2, 4})
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CAPTURE(count);
      CAPTURE(i);
      std::vector<std::int64_t> labels(4, -1);
      std::fill_n(labels.begin(), count, 1);
      const auto mean_and_sum = run_with(labels, [&](const Node& x, const Node& y) {
        const auto& [smoothing, loss] = losses[i];
        CrossEntropyOptions options{.reduction = Reduction::mean, .ignore = -1, .label_smoothing = smoothing};
        const Node mean = loss(x, y, options);
        options.reduction = Reduction::sum;
        return std::vector{mean, loss(x, y, options)};
      });
      CHECK(mean_and_sum[0].to_doubles()[0] ==
            doctest::Approx(mean_and_sum[1].to_doubles()[0] / static_cast<double>(count)));
    }
}

TEST_CASE("the mean of losses is right where their sum is beyond the largest number of 16 bits") {
  constexpr std::int64_t count = 71;
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {count, 1}});
  const Node y = graph.input("y", {DType::int64, {count}});
  Tensor labels({DType::int64, {count}});
  labels.as<std::int64_t>()[3] = -1;
  const Node zeros = graph.constant(Tensor({DType::int64, {count}}));
  const Tensor logarithms =
      Tensor::of<double>({count, 1}, std::vector<double>(count, -1000)).cast(DType::float16);
  const auto results =
      Runner(graph, {nll(x, zeros), nll(x, y, {.ignore = -1})}, test_backend())({logarithms, labels});
  for (const Tensor& result : results) CHECK(result.to_doubles()[0] == 1000);
}

TEST_CASE("a target 0 of a class with the probability 0 gives the loss 0") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 2}});
  const Node targets = graph.input("targets", {DType::float32, {1, 2}});
  const auto results = Runner(graph, {softmax_cross_entropy(x, targets)}, test_backend())(
      {Tensor::of<float>({1, 2}, {0, -std::numeric_limits<float>::infinity()}),
       Tensor::of<float>({1, 2}, {1, 0})});
  CHECK(results[0].to_doubles()[0] == 0);
}

}  // namespace plexaura::testing::class_losses_test
