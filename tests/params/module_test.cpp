#include "core/params/module.h"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <vector>

#include "core/autodiff/gradients.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/step/training_step.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::module_test {

namespace {

const int line_of_scale = __LINE__ + 12;

class Scale : public Module {
 public:
  explicit Scale(std::int64_t width)
      : gain({width}, Initialiser::normal(1)), seen({width}, Initialiser::zeros(), ParameterRole::buffer) {}
  void members(MemberVisitor& visit) override {
    visit("gain", gain);
    visit("seen", seen);
  }
  Node operator()(Operand x) const {
    const auto call = enter(x);
    return x.node() * gain.in(x.node().graph());
  }
  Parameter gain;
  Parameter seen;
};

class Net : public Module {
 public:
  explicit Net(bool reversed = false) : reversed_(reversed) {
    for (int i = 0; i < 2; ++i) blocks.push_back(std::make_unique<Scale>(3));
  }
  void members(MemberVisitor& visit) override {
    if (reversed_) visit("head", head);
    visit("layer1", blocks);
    visit("absent", absent);
    if (!reversed_) visit("head", head);
  }
  std::vector<std::unique_ptr<Scale>> blocks;
  std::unique_ptr<Scale> absent;
  Scale head{3};

 private:
  bool reversed_;
};

class Tied : public Module {
 public:
  void members(MemberVisitor& visit) override {
    visit("encoder", shared);
    visit("decoder", shared);
  }
  Scale shared{2};
};

// Has two members with the same name.
class Clashing : public Module {
 public:
  static constexpr int line = __LINE__ + 2;
  void members(MemberVisitor& visit) override {
    visit("scale", first);
    visit("scale", second);
  }
  Scale first{2};
  Scale second{2};
};

// Does not list one of its members.
class Forgetful : public Module {
 public:
  void members(MemberVisitor& visit) override { visit("first", first); }
  Node operator()(Operand x) { return second(first(x)); }
  Scale first{2};
  Scale second{2};
};

class Selfish : public Module {
 public:
  void members(MemberVisitor& visit) override { visit("me", static_cast<Module&>(*this)); }
};

std::vector<std::string> names_of(const std::vector<ParameterSpec>& specs) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  return names;
}

}  // namespace

TEST_CASE("names are paths, lists have numbers, absent members have none") {
  Net net;
  const auto specs = specs_of(net, DType::float64);
  CHECK(names_of(specs) == std::vector<std::string>{"layer1.0.gain", "layer1.0.seen", "layer1.1.gain",
                                                    "layer1.1.seen", "head.gain", "head.seen"});
  CHECK(specs[0].type == TensorType{DType::float64, {3}});
  CHECK(specs[0].role == ParameterRole::trainable);
  CHECK(specs[1].role == ParameterRole::buffer);
  CHECK(net.blocks[1]->path() == "layer1.1");
  CHECK(net.path().empty());
  CHECK(net.head.gain.name() == "head.gain");
}

TEST_CASE("a module may be named again with another dtype but not from another root") {
  Net net;
  specs_of(net, DType::float32);
  CHECK(specs_of(net, DType::float64)[0].type.dtype == DType::float64);
  CHECK(net.head.dtype() == DType::float64);
  CHECK(user_error([&] { specs_of(net.head, DType::float32); }) ==
        "the parameter 'head.gain' would be named 'gain' by a second root; name a model from one root only. "
        "A model of "
        "make_model() is a root: as a part of another module, pass it on by model.members(visit)");
  CHECK(names_of(specs_of(net.head, DType::float32, "head"))[0] == "head.gain");
}

TEST_CASE("a parameter reached by two paths is one entry with an alias, and one leaf of the graph") {
  Tied tied;
  const auto specs = specs_of(tied, DType::float32);
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].name == "encoder.gain");
  CHECK(specs[0].aliases == std::vector<std::string>{"decoder.gain"});

  ParameterStore store = make_store(tied, DType::float32, 7);
  CHECK(store.trainable_elements() == 2);
  CHECK(store.read("decoder.gain") == store.read("encoder.gain"));

  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2}});
  tied.shared(tied.shared(x));
  CHECK(std::ranges::count_if(std::vector<NodeId>{0, 1, 2, 3}, [&](NodeId id) {
          const Leaf* leaf = as_leaf(*graph.record(id).op);
          return leaf != nullptr && leaf->kind() == LeafKind::parameter;
        }) == 1);
}

TEST_CASE("starting values depend on the name alone, whatever the order of members") {
  Net forwards;
  Net backwards(true);
  const ParameterStore a = make_store(forwards, DType::float32, 3);
  const ParameterStore b = make_store(backwards, DType::float32, 3);
  CHECK(a.specs()[0].name != b.specs()[0].name);
  for (const ParameterSpec& spec : a.specs()) CHECK(a.read(spec.name) == b.read(spec.name));
  CHECK_FALSE(a.read("head.gain") == a.read("layer1.0.gain"));
  CHECK_FALSE(a.read("head.gain") == make_store(forwards, DType::float32, 4).read("head.gain"));
}

TEST_CASE("a layer without names cannot be called, and the error has the caller's line") {
  Scale scale(2);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2}});
  const int line = __LINE__ + 1;
  const std::string text = user_error([&] { scale(x); });
  CHECK(text.find("module_test.cpp:" + std::to_string(line) + ":") != std::string::npos);
  CHECK(text.find("make_store()") != std::string::npos);
}

TEST_CASE("a part that members() does not list is told, with what to do") {
  Forgetful model;
  specs_of(model, DType::float32);
  Graph graph;
  CHECK(user_error([&] {
          model(graph.input("x", {DType::float32, {2}}));
        })
            .find("a parameter of shape [2] has no name, so that no store holds it; list it, or the layer "
                  "that has it, in members()") != std::string::npos);
}

TEST_CASE("two members of one name are told with both lines") {
  Clashing model;
  const std::string at = "module_test.cpp:";
  const std::string text = user_error([&] { specs_of(model, DType::float32); });
  CHECK(text.starts_with("two members are named 'scale', at "));
  CHECK(text.find(at + std::to_string(Clashing::line) + " and") != std::string::npos);
  CHECK(text.find(at + std::to_string(Clashing::line + 1) + ";") != std::string::npos);
}

TEST_CASE("a model that was named for a store of another dtype since is told so") {
  Net net;
  ParameterStore store = make_store(net, DType::float32);
  make_store(net, DType::float64);
  Graph graph;
  const Node loss = mean(net.head(graph.input("x", {DType::float64, {3}})));
  CHECK(user_error([&] {
          training_outputs(graph, {.loss = loss}, store, 1);
        }).find("a model has the dtype of the last store that was made for it") != std::string::npos);
}

TEST_CASE("a parameter that the model does not use is told with the names that it asks for instead") {
  ParameterStore store({{"slope", {DType::float32, {}}, ParameterRole::trainable, Initialiser::ones()}});
  Graph graph;
  const Node loss = square(graph.parameter("slop", {DType::float32, {}}));
  CHECK(user_error([&] { training_outputs(graph, {.loss = loss}, store, 1); }) ==
        "the parameter 'slope' is trainable and the model does not use it, but asks for 'slop', which the "
        "store does not have; use it or freeze it");
  CHECK(user_error([&] { training_outputs(graph, {}, store, 1); }).starts_with("LossOutputs::loss is empty"));
}

TEST_CASE("an error within a module names its line, its path, and the line that called it") {
  Net net;
  specs_of(net, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const int line = __LINE__ + 1;
  const std::string text = user_error([&] { (*net.blocks[1])(x); });
  CHECK_MESSAGE(
      text.find(fmt::format("module_test.cpp:{} (layer1.1), called from tests/params/module_test.cpp:{}: "
                            "mul(float32[4], float32[3])",
                            line_of_scale, line)) != std::string::npos,
      text);
}

TEST_CASE("containers hold modules, which may be called when they are const") {
  struct Stack : Module {
    void members(MemberVisitor& visit) override {
      visit("moved", moved);
      visit("pair", pair);
      visit("shared", shared);
      visit("maybe", maybe);
      visit("never", never);
    }
    Node operator()(Operand x) const {
      Node y = x.node();
      for (const Scale& scale : moved) y = scale(y);
      return (*shared)(pair[1](y));
    }
    std::vector<Scale> moved;
    std::array<Scale, 2> pair{Scale(3), Scale(3)};
    std::shared_ptr<Scale> shared = std::make_shared<Scale>(3);
    std::optional<Scale> maybe = Scale(3);
    std::optional<Scale> never;
  };
  Stack made;
  for (int i = 0; i < 5; ++i) made.moved.emplace_back(3);
  Stack stack = std::move(made);
  std::vector<std::string> gains;
  for (const ParameterSpec& spec : specs_of(stack, DType::float32))
    if (spec.role == ParameterRole::trainable) gains.push_back(spec.name);
  CHECK(gains == std::vector<std::string>{"moved.0.gain", "moved.1.gain", "moved.2.gain", "moved.3.gain",
                                          "moved.4.gain", "pair.0.gain", "pair.1.gain", "shared.gain",
                                          "maybe.gain"});
  const Stack named = std::move(stack);
  Graph graph;
  const Node y = named(graph.input("x", {DType::float32, {3}}));
  CHECK(to_text(graph).find("pair.1.gain") != std::string::npos);
  CHECK(y.shape() == Shape{3});
}

TEST_CASE("an error in a module names the line that called the outermost one") {
  struct Pair : Module {
    void members(MemberVisitor& visit) override {
      visit("first", first);
      visit("second", second);
    }
    Node operator()(Operand x) {
      const auto call = enter(x);
      return second(first(x));
    }
    Scale first{3}, second{4};
  } pair;
  specs_of(pair, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3}});
  const int line = __LINE__ + 1;
  const std::string text = user_error([&] { pair(x); });
  CHECK_MESSAGE(
      text.find(fmt::format("module_test.cpp:{} (second), called from tests/params/module_test.cpp:{}: "
                            "mul(float32[3], float32[4])",
                            line_of_scale, line)) != std::string::npos,
      text);
  CHECK(to_string(graph.record((x * 2).id()).origin).find("called from") == std::string::npos);
}

TEST_CASE(
    "a layer whose source nobody reads has the line of its caller, and a gradient the place of its node") {
  struct Hidden : Module {
    Node operator()(Operand x) {
      const auto call = enter_unseen(x);
      return x.node() * 2;
    }
  };
  struct Outer : Module {
    Node operator()(Operand x) {
      const auto call = enter(x);
      const Node y = exp(x.node());
      return hidden(y);
    }
    Hidden hidden;
  } outer;
  const int line_of_call = __LINE__ - 4;
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3}});
  const int line = __LINE__ + 1;
  const Node y = outer(x);
  const std::string place = fmt::format(
      "tests/params/module_test.cpp:{}, called from tests/params/module_test.cpp:{}", line_of_call, line);
  CHECK(to_string(graph.record(y.id()).origin) == place);
  const Node grad = gradients(sum(y), {x})[0];
  bool found = false;
  for (NodeId id = 0; id <= grad.id(); ++id)
    found = found || to_string(graph.record(id).origin) == "gradient of " + place;
  CHECK(found);
  CHECK(to_string(graph.record(Hidden()(x).id()).origin) ==
        fmt::format("tests/params/module_test.cpp:{}", __LINE__ - 1));
}

TEST_CASE("a module's path holds wherever it is called from") {
  Net net;
  specs_of(net, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3}});
  const Graph::Scope outer(graph, "tower");
  CHECK(graph.record(net.head(x).id()).origin.scope == "head");
  CHECK(graph.record((x * 2).id()).origin.scope == "tower");
}

TEST_CASE("a module that contains itself is refused") {
  Selfish selfish;
  CHECK(user_error([&] { specs_of(selfish, DType::float32); }).find("contains itself as 'me'") !=
        std::string::npos);
}

TEST_CASE("freezing by pattern leaves buffers alone and refuses a pattern without effect") {
  Net net;
  auto specs = specs_of(net, DType::float32);
  freeze(specs, "layer1.*");
  CHECK(specs[0].role == ParameterRole::frozen);
  CHECK(specs[1].role == ParameterRole::buffer);
  CHECK(specs[4].role == ParameterRole::trainable);
  CHECK(user_error([&] { freeze(specs, "haed.gain"); }) ==
        "no parameter is named like 'haed.gain', so that nothing would be frozen; did you mean 'head.gain'?");

  Tied tied;
  auto tied_specs = specs_of(tied, DType::float32);
  freeze(tied_specs, "decoder.*");
  CHECK(tied_specs[0].role == ParameterRole::frozen);
}

TEST_CASE("a trainable parameter that gets no gradient is reported") {
  Net net;
  const ParameterStore store = make_store(net, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3}});
  const Node loss = mean(net.head((*net.blocks[0])(x)));
  CHECK(user_error([&] { training_outputs(graph, {.loss = loss}, store, 1); }).find("'layer1.1.gain'") !=
        std::string::npos);
}

}  // namespace plexaura::testing::module_test
