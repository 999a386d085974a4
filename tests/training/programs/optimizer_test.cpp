#include "training/programs/optimizer.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "backends/registry.h"
#include "core/ops/all_reduce.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/gate.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura::testing::optimizer_test {

namespace {

const TensorType scalar{DType::float64, {}};
const TensorType points{DType::float64, {5}};

// The model y = a x + b, and its distance from the points.
struct Line {
  Graph graph;
  Node x = graph.input("x", points);
  Node y = graph.input("y", points);
  Node distance = graph.parameter("a", scalar) * x + graph.parameter("b", scalar) - y;
  LossOutputs outputs{.loss = mean(square(distance)),
                      .metrics = {{.name = "largest", .mean = max(abs(distance))},
                                  {.name = "above", .sum = sum(cast(gt(distance, 0), DType::float64))}}};
  ParameterStore store{{{"a", scalar, ParameterRole::trainable, Initialiser::ones()},
                        {"b", scalar, ParameterRole::trainable, Initialiser::zeros()}}};

  double value(const char* name) const { return store.read(name).to_doubles()[0]; }
};

const Tensor xs = Tensor::of<double>({5}, {-2, -1, 0, 1, 2});
const Tensor ys = Tensor::of<double>({5}, {-5, -3, -1, 1, 3});

}  // namespace

TEST_CASE("a step follows the gradient and gives the loss before it, with its metrics") {
  Line line;
  Optimizer optimizer(line.outputs, line.store, test_backend(), {.learning_rate = 0.1});
  // The distances are 1 - x, from 3 to -1. The loss is 3, and its gradient is -4 for a and 2 for b.
  CHECK(optimizer.step({{"x", xs}, {"y", ys}}) == doctest::Approx(3));
  CHECK(optimizer.metric("largest") == doctest::Approx(3));
  CHECK(optimizer.metric("above") == 3);
  CHECK(line.value("a") == doctest::Approx(1.4));
  CHECK(line.value("b") == doctest::Approx(-0.2));
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("a loss with a weight is divided by it, and one that is not finite changes nothing") {
  Line line;
  const Node weights = line.graph.input("weights", points);
  Optimizer optimizer({.loss = sum(square(line.distance) * weights), .weight = sum(weights)}, line.store,
                      test_backend(), {.learning_rate = 0.1});
  const double infinite = std::numeric_limits<double>::infinity();
  // The third point has the distance 1. Its loss is finite, and the weight is not.
  const auto step = [&](std::vector<double> of_points) {
    Tensor tensor(points);
    std::ranges::copy(of_points, tensor.as<double>().begin());
    return optimizer.step({{"x", xs}, {"y", ys}, {"weights", tensor}});
  };
  CHECK(user_error([&] { step({1, 1, infinite, 1, 1}); }).find("the loss of step 1 is") != std::string::npos);
  CHECK(line.value("a") == 1);
  // Without the first point the distances are 2, 1, 0 and -1: the loss is 6 / 4, and its gradient -2 for a and 1 for b.
  CHECK(step({0, 1, 1, 1, 1}) == doctest::Approx(1.5));
  CHECK(line.value("a") == doctest::Approx(1.2));
  CHECK(line.value("b") == doctest::Approx(-0.1));
}

TEST_CASE("a metric before the first step, and a store of which all is frozen, are refused") {
  Line line;
  const Optimizer optimizer(line.outputs, line.store, test_backend());
  CHECK(user_error([&] { optimizer.metric("above"); }) ==
        "Optimizer::metric: no step has been made yet; call step() first");
  Line frozen;
  for (const char* name : {"a", "b"}) frozen.store.set_trainable(name, false);
  CHECK(user_error([&] {
          Optimizer(frozen.outputs, frozen.store, test_backend());
        }).starts_with("all parameters are frozen, so that nothing would be trained"));
}

TEST_CASE("a frozen parameter that the loss does not use stays as it is") {
  Line line;
  ParameterStore store{{{"a", scalar, ParameterRole::trainable, Initialiser::ones()},
                        {"b", scalar, ParameterRole::trainable, Initialiser::zeros()},
                        {"idle", scalar, ParameterRole::trainable, Initialiser::ones()}}};
  store.set_trainable("idle", false);
  Optimizer optimizer(line.outputs, store, test_backend(), {.learning_rate = 0.1});
  optimizer.step({{"x", xs}, {"y", ys}});
  CHECK(store.read("a").to_doubles()[0] == doctest::Approx(1.4));
  CHECK(store.read("idle").to_doubles()[0] == 1);
}

TEST_CASE("a label to be ignored is no error, and any other that names no class is") {
  ParameterStore store{{{"w", {DType::float64, {2, 3}}, ParameterRole::trainable, Initialiser::zeros()}}};
  Graph graph;
  const Node logits = graph.parameter("w", {DType::float64, {2, 3}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  Optimizer optimizer({.loss = softmax_cross_entropy(logits, labels, {.ignore = -1})}, store, test_backend());
  CHECK(optimizer.step({{"labels", Tensor::of<std::int64_t>({2}, {-1, 1})}}) ==
        doctest::Approx(std::log(3.0)));
  CHECK(user_error([&] {
          optimizer.step({{"labels", Tensor::of<std::int64_t>({2}, {0, -2})}});
        }) ==
        "element 1 of 'labels' is the label -2 and there are 3 classes, so that labels go from 0 to 2, or "
        "are -1 to "
        "be ignored; correct the data");
}

TEST_CASE("a label that names no class is refused, and nothing is updated") {
  Graph graph;
  const Node logits = graph.parameter("logits", {DType::float64, {2, 3}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  ParameterStore store({{"logits", logits.type(), ParameterRole::trainable, Initialiser::zeros()}});
  Optimizer optimizer({.loss = softmax_cross_entropy(logits, labels)}, store, test_backend());
  const Tensor before = store.read("logits");
  CHECK(
      user_error([&] {
        optimizer.step({{"labels", Tensor::of<std::int64_t>({2}, {0, 3})}});
      }) ==
      "element 1 of 'labels' is the label 3 and there are 3 classes, so that labels go from 0 to 2; correct "
      "the data, or give softmax_cross_entropy() the option {.ignore = 3}, which leaves such samples out of "
      "the loss");
  CHECK(store.read("logits") == before);
  CHECK(optimizer.step({{"labels", Tensor::of<std::int64_t>({2}, {0, 2})}}) > 0);
}

TEST_CASE("without a loss the sentence says where it belongs") {
  Line line;
  CHECK(user_error([&] { Optimizer({}, line.store, test_backend()); }) ==
        "LossOutputs::loss is empty; set it to the node of the loss");
}

TEST_CASE("batch norm of a single element per channel trains nothing, and is refused") {
  Graph graph;
  ParameterStore store{{{"scale", {DType::float64, {3}}, ParameterRole::trainable, Initialiser::ones()}}};
  const Node scale = graph.parameter("scale", {DType::float64, {3}});
  const Node y = batch_norm(graph.input("x", {DType::float64, {1, 3}}), scale, scale).y;
  const std::string text =
      user_error([&] { Optimizer(LossOutputs{.loss = mean(y)}, store, test_backend()); });
  CHECK(text.find("optimizer_test.cpp") != std::string::npos);
  CHECK(text.ends_with("; build the graph for two samples or more"));
}

TEST_CASE("what a model sums over all ranks is what the only one has") {
  Line line;
  Optimizer optimizer({.loss = all_reduce_sum(line.outputs.loss)}, line.store, test_backend());
  CHECK(optimizer.step({{"x", xs}, {"y", ys}}) == doctest::Approx(3));
}

TEST_CASE("every optimizer finds the line") {
  const OptimizerSpec specs[] = {
      {}, {.momentum = 0.5, .nesterov = true}, {.kind = OptimizerSpec::adam}, {.kind = OptimizerSpec::adamw}};
  for (const OptimizerSpec& spec : specs) {
    CAPTURE(optimizer_name(spec));
    Line line;
    Optimizer optimizer(line.outputs, line.store, test_backend(), {.optimizer = spec, .learning_rate = 0.1});
    for (int step = 0; step < 500; ++step) optimizer.step({{"x", xs}, {"y", ys}});
    CHECK(line.value("a") == doctest::Approx(2).epsilon(1e-3));
    CHECK(line.value("b") == doctest::Approx(-1).epsilon(1e-3));
  }
}

TEST_CASE("groups have their own learning rate, and one without parameters is refused") {
  Line plain;
  Optimizer optimizer(plain.outputs, plain.store, test_backend(),
                      {.optimizer = {.groups = {{"a", {.rate = 0.5}}}}, .learning_rate = 0.1});
  optimizer.step({{"x", xs}, {"y", ys}});
  CHECK(plain.value("a") == doctest::Approx(1.2));  // 1.4 without the group
  CHECK(plain.value("b") == doctest::Approx(-0.2));
  Line line;
  CHECK(user_error([&] {
          Optimizer(line.outputs, line.store, test_backend(), {.optimizer = {.groups = {{"c"}}}});
        }).starts_with("the group of parameters 'c' has no effect: no parameter is named like its pattern"));
}

TEST_CASE("the schedule and the random numbers count the steps") {
  Line line;
  Optimizer optimizer(line.outputs, line.store, test_backend(),
                      {.learning_rate = Schedule({.peak = 0.1, .decay = StepDecay{1, 1e-9}})});
  optimizer.step({{"x", xs}, {"y", ys}});
  const double after_one = line.value("a");
  optimizer.step({{"x", xs}, {"y", ys}});
  CHECK(line.value("a") == doctest::Approx(after_one).epsilon(1e-7));

  Graph graph;
  const TensorType many{DType::float64, {64}};
  const Node dropped = dropout(graph.parameter("w", many));
  ParameterStore store({{"w", many, ParameterRole::trainable, Initialiser::uniform(1)}});
  Optimizer random({.loss = mean(dropped)}, store, test_backend(), {.learning_rate = 1e-12});
  CHECK(random.step({}) != random.step({}));
}

TEST_CASE("a step that fails leaves the parameters and the optimizer's state as they were") {
  const OptimizerSpec rules[] = {{.momentum = 0.9, .weight_decay = 0.5},
                                 {.kind = OptimizerSpec::Kind::adam, .weight_decay = 0.5},
                                 {.kind = OptimizerSpec::Kind::adamw, .weight_decay = 0.5},
                                 {.kind = OptimizerSpec::Kind::lars, .momentum = 0.9, .weight_decay = 0.5},
                                 {.kind = OptimizerSpec::Kind::lamb, .weight_decay = 0.5}};
  const TensorType table{DType::float64, {3, 2}};
  const Tensor sound = Tensor::of<std::int64_t>({2}, {0, 1});
  const Tensor outside = Tensor::of<std::int64_t>({2}, {0, 7});
  for (const OptimizerSpec& rule : rules) {
    CAPTURE(optimizer_name(rule));
    Graph graph;
    const Node rows = gather(graph.parameter("t", table), graph.input("rows", {DType::int64, {2}}));
    ParameterStore store({{"t", table, ParameterRole::trainable, Initialiser::ones()}});
    Optimizer optimizer({.loss = mean(square(rows))}, store, test_backend(), {.optimizer = rule});
    optimizer.step({{"rows", sound}});
    const Tensor before = store.read("t");
    std::vector<Tensor> states;
    for (std::int64_t i = 0; i < store.states(); ++i) states.push_back(store.read_state(i, "t"));
    CHECK(!user_error([&] { optimizer.step({}); }).empty());
    CHECK(!user_error([&] { optimizer.step({{"rows", outside}}); }).empty());
    CHECK(store.read("t") == before);
    for (std::int64_t i = 0; i < store.states(); ++i)
      CHECK(store.read_state(i, "t") == states[static_cast<std::size_t>(i)]);
    CHECK(optimizer.steps() == 1);
  }
}

TEST_CASE("a loss or a gradient that is not finite is refused before anything changes") {
  const TensorType two{DType::float64, {2}};
  // The square root has no finite derivative at 0, and 0 times that is NaN.
  for (const OptimizerSpec& rule :
       {OptimizerSpec{.momentum = 0.9}, OptimizerSpec{.kind = OptimizerSpec::adam}}) {
    ParameterStore store({{"w", two, ParameterRole::trainable, Initialiser::ones()},
                          {"seen", two, ParameterRole::buffer, Initialiser::zeros()}});
    Graph graph;
    const Node x = graph.input("x", two);
    const Node seen = graph.buffer("seen", two);
    graph.update(seen, seen + x);
    const Node root = sqrt(x * graph.parameter("w", two));
    Optimizer optimizer({.loss = mean(where(gt(x, 0), root, 0))}, store, test_backend(),
                        {.optimizer = rule, .learning_rate = 0.1});
    optimizer.step({{"x", Tensor::of<double>({2}, {1, 2})}});
    const Tensor weights = store.read("w");
    const Tensor state = store.read_state(0, "w");
    const std::string advice =
        ": training diverged, a sample holds such a number or an op has no finite derivative there; lower "
        "the "
        "learning rate or weight_decay, or set OptimizerOptions::watch to see which op made the first such "
        "number; weights and state are as before this step";
    CHECK(user_error([&] {
            optimizer.step({{"x", Tensor::of<double>({2}, {INFINITY, 1})}});
          }) == "the loss of step 2 is infinite" + advice);
    const std::string text = user_error([&] { optimizer.step({{"x", Tensor::of<double>({2}, {1, 0})}}); });
    CHECK(text.starts_with("the loss of step 2 is 0.4"));
    CHECK(text.ends_with(", with NaN at element 1 of the gradient of 'w'" + advice));
    CHECK(store.read("w") == weights);
    CHECK(store.read_state(0, "w") == state);
    CHECK(store.read("seen").to_doubles() == std::vector<double>{1, 2});
    CHECK(optimizer.steps() == 1);
    CHECK(std::isfinite(optimizer.step({{"x", Tensor::of<double>({2}, {1, 2})}})));
  }
}

TEST_CASE("a buffer holds its next value behind a step, whatever it held before") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool is_larger : {false, true}) {
      CAPTURE(name_of(dtype));
      Graph graph;
      const TensorType type{dtype, {}};
      const Node x = graph.input("x", type);
      const Node last = graph.buffer("last", type);
      graph.update(last, is_larger ? maximum(x, last * 0) : x * 1);
      ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()},
                            {"last", type, ParameterRole::buffer, Initialiser::zeros()}});
      Optimizer optimizer({.loss = graph.parameter("w", type) * 1}, store, test_backend());
      for (const double value : {1e8, 0.1, 3e38, 1.0, infinite, 2.0}) {
        const Tensor next = Tensor::scalar(value).cast(dtype);
        if (is_larger && store.read("last").to_doubles()[0] == infinite) break;  // 0 times infinity is NaN
        optimizer.step({{"x", next}});
        CHECK(store.read("last") == next);
      }
    }
}

TEST_CASE("a run that is saved and goes on has the bits of one that was never stopped") {
  const OptimizerSpec rules[] = {{.momentum = 0.9},
                                 {.kind = OptimizerSpec::adam},
                                 {.kind = OptimizerSpec::adamw, .weight_decay = 0.1},
                                 {.kind = OptimizerSpec::lars, .momentum = 0.9},
                                 {.kind = OptimizerSpec::lamb},
                                 {.kind = OptimizerSpec::rmsprop, .momentum = 0.9, .centered = true},
                                 {.kind = OptimizerSpec::adagrad, .lr_decay = 0.1}};
  for (const OptimizerSpec& rule : rules) {
    CAPTURE(optimizer_name(rule));
    const TemporaryFolder folder;
    struct Run {
      Run(const OptimizerSpec& rule, std::int64_t seed)
          : optimizer(
                {.loss = mean(square(dropout(graph.parameter("w", points) * graph.input("x", points))))},
                store, test_backend(),
                {.optimizer = rule,
                 .learning_rate = Schedule({.peak = 0.1, .decay = CosineDecay{.steps = 8}}),
                 .seed = seed}) {}
      double steps(int count) {
        double loss = 0;
        for (int i = 0; i < count; ++i) loss = optimizer.step({{"x", xs}});
        return loss;
      }
      Graph graph;
      ParameterStore store{{{"w", points, ParameterRole::trainable, Initialiser::ones()}}};
      Optimizer optimizer;
    };
    Run whole(rule, 3);
    const double loss = whole.steps(8);
    Run first(rule, 3);
    first.steps(5);
    CHECK(!first.optimizer.resume(folder / "run"));
    CHECK(first.optimizer.steps() == 5);
    first.optimizer.save(folder / "run");
    for (const bool by_store : {false, true}) {
      Run second(rule, 3);
      second.steps(2);
      if (by_store)
        REQUIRE(load_checkpoint(folder / "run", second.store, optimizer_name(rule)));
      else
        REQUIRE(second.optimizer.resume(folder / "run"));
      CHECK(second.optimizer.steps() == 5);
      CHECK(user_error([&] { second.optimizer.metric("any"); }).find("'any'") != std::string::npos);
      CHECK(second.steps(3) == loss);
      CHECK(second.store.read("w") == whole.store.read("w"));
    }
    Run other(rule, 4);
    CHECK(user_error([&] { other.optimizer.resume(folder / "run"); }) ==
          "the checkpoint in " + (folder / "run").string() +
              " was made with seed 3 and OptimizerOptions::seed is 4; resume with the same seed");
  }
}

TEST_CASE("a plateau observes what the loop reports, and a checkpoint keeps it for each optimizer") {
  const TemporaryFolder folder;
  const auto reduced = [](double factor) {
    return Schedule({.peak = 0.5, .decay = Plateau{.factor = factor, .patience = 0}});
  };
  struct TwoLines : Line {
    TwoLines(const Schedule& of_a, const Schedule& of_b)
        : a(outputs, store, test_backend(), {.parameters = {"a"}, .learning_rate = of_a}),
          b(outputs, store, test_backend(), {.parameters = {"b"}, .learning_rate = of_b}) {}
    Optimizer a;
    Optimizer b;
  };
  TwoLines lines(reduced(0.5), reduced(0.25));
  for (Optimizer* each : {&lines.a, &lines.b}) {
    each->step({{"x", xs}, {"y", ys}});
    each->observe(1);
    CHECK(each->learning_rate() == 0.5);
    each->observe(1);
  }
  lines.b.observe(2);
  CHECK(lines.a.learning_rate() == 0.25);
  CHECK(lines.b.learning_rate() == 0.03125);
  lines.a.save(folder.path());
  TwoLines next(reduced(0.5), reduced(0.25));
  REQUIRE(next.b.resume(folder.path()));
  CHECK(next.a.learning_rate() == 0.25);
  CHECK(next.b.learning_rate() == 0.03125);
  next.a.observe(0.5);
  lines.a.observe(0.5);
  CHECK(next.a.step({{"x", xs}, {"y", ys}}) == lines.a.step({{"x", xs}, {"y", ys}}));
  CHECK(next.store.read("a") == lines.store.read("a"));
  CHECK(user_error([&] { next.a.observe(std::nan("")); }).find("is nan") != std::string::npos);
  // Observations of a metric that should fall say nothing about one that should rise.
  const Schedule rising({.peak = 0.5, .decay = Plateau{.factor = 0.5, .patience = 0, .mode = Plateau::max}});
  TwoLines other(rising, reduced(0.25));
  REQUIRE(other.b.resume(folder.path()));
  CHECK(other.a.learning_rate() == 0.5);
  CHECK(other.b.learning_rate() == 0.03125);
  Line line;
  Optimizer constant(line.outputs, line.store, test_backend(), {.learning_rate = 0.1});
  CHECK(user_error([&] {
          constant.observe(1);
        }).starts_with("Optimizer::observe: the schedule of the learning rate"));
}

TEST_CASE("a new one on the store of another begins with its weights, and with no state") {
  const OptimizerSpec adam{.kind = OptimizerSpec::adam};
  Line fresh;
  fresh.store.write("a", Tensor::scalar(1.5));
  Optimizer alone(fresh.outputs, fresh.store, test_backend(), {.optimizer = adam});
  alone.step({{"x", xs}, {"y", ys}});
  Line used;
  Optimizer former(used.outputs, used.store, test_backend(), {.optimizer = adam});
  for (int i = 0; i < 3; ++i) former.step({{"x", xs}, {"y", ys}});
  Line again;
  used.store.write("a", Tensor::scalar(1.5));
  used.store.write("b", Tensor::scalar(0.0));
  Optimizer latter(again.outputs, used.store, test_backend(), {.optimizer = adam});
  CHECK(latter.steps() == 0);
  latter.step({{"x", xs}, {"y", ys}});
  CHECK(used.value("a") == fresh.value("a"));
}

TEST_CASE("of two on one store the older one says what to do") {
  Line line;
  Optimizer older(line.outputs, line.store, test_backend());
  Line other;
  Optimizer newer(other.outputs, line.store, test_backend());
  newer.step({{"x", xs}, {"y", ys}});
  CHECK(user_error([&] {
          older.step({{"x", xs}, {"y", ys}});
        }) ==
        "the store was placed anew since this program was compiled for it, because a Trainer or an "
        "Optimizer was made on it since; use the newest of them, or for a VM compile with store.placement() "
        "again");
}

TEST_CASE("what a step cannot do is told") {
  Line line;
  Optimizer optimizer(line.outputs, line.store, test_backend());
  CHECK(user_error([&] { optimizer.step({{"x", xs}}); }).find("'y' was not fed") != std::string::npos);
  CHECK(optimizer.steps() == 0);
  CHECK(user_error([&] { optimizer.metric("lagest"); }) ==
        "the model reports no metric 'lagest'; it reports largest, above; did you mean 'largest'?");
  ParameterStore idle({{"unused", scalar, ParameterRole::trainable, Initialiser::ones()}});
  Graph graph;
  const Node loss = mean(graph.input("x", points));
  CHECK(user_error([&] { Optimizer({.loss = loss}, idle, test_backend()); }).find("'unused' is trainable") !=
        std::string::npos);
}

TEST_CASE("a step while another thread makes one is refused, and counts nowhere") {
  Line line;
  Optimizer optimizer({.loss = mean(square(gated(line.distance)))}, line.store, oracle(),
                      {.learning_rate = 0.1});
  while_running(
      [&] {
        optimizer.step({{"x", xs}, {"y", ys}});
      },
      [&] {
        CHECK(user_error([&] {
                optimizer.step({{"x", xs}, {"y", ys}});
              }) ==
              "Optimizer::step: another thread is in a call of an Optimizer of this store; the Optimizers of "
              "a store serve one thread at a time");
      });
  CHECK(optimizer.steps() == 1);
  CHECK(line.value("a") == doctest::Approx(1.4));
}

TEST_CASE("an optimizer goes on when its store was moved, and notices that its backend is gone") {
  Line line;
  auto backend = open_backend("portable");
  Optimizer optimizer(line.outputs, line.store, *backend, {.learning_rate = 0.1});
  const ParameterStore moved = std::move(line.store);
  optimizer.step({{"x", xs}, {"y", ys}});
  CHECK(moved.read("a").to_doubles()[0] == doctest::Approx(1.4));
  backend.reset();
  CHECK(user_error([&] {
          optimizer.step({{"x", xs}, {"y", ys}});
        }).starts_with("the backend was destroyed before"));
}

}  // namespace plexaura::testing::optimizer_test
