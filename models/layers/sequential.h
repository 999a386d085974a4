#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/functional.h"

namespace plexaura::layers {

// Layers in sequence. A layer's default name is its number, from 0.
class Sequential final : public Layer {
 public:
  Sequential() = default;

  // Constructs a layer at the end: `features.append<Linear>(4, 30)`. Returns a reference, which is valid as
  // long as this object lives.
  template <class L, class... Arguments>
  L& append(Arguments&&... arguments) {
    return append_named<L>(std::to_string(children_.size()), std::forward<Arguments>(arguments)...);
  }
  template <class L, class... Arguments>
  L& append_named(const std::string& name, Arguments&&... arguments) {
    auto layer = std::make_unique<L>(std::forward<Arguments>(arguments)...);
    L& made = *layer;
    add(name, std::move(layer));
    return made;
  }
  // Adds a layer at the end. If `origin` is given, the nodes that a call makes for this layer have that
  // origin.
  void add(std::string name, std::unique_ptr<Layer> layer, Origin origin = {});

  std::size_t size() const { return children_.size(); }
  bool contains(std::string_view name) const;

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t samples, std::int64_t positions) const override;

 private:
  class Incremental;
  struct Child {
    std::string name;
    std::unique_ptr<Layer> layer;
    Origin origin;
  };
  // Passes x through all children. `call` calls the child that has the number `child`.
  Node passed(Operand x, const std::function<Node(std::size_t child, Operand x)>& call) const;

  std::vector<Child> children_;
};

// Computes activation(body(x) + shortcut(x)). Without a shortcut, x itself is added; without an activation,
// the sum is the result.
class Residual final : public Layer {
 public:
  explicit Residual(std::unique_ptr<Layer> body, std::unique_ptr<Layer> shortcut = nullptr,
                    std::optional<Activation> activation = Activation("relu"))
      : body_(std::move(body)), shortcut_(std::move(shortcut)), activation_(std::move(activation)) {}

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t samples, std::int64_t positions) const override;

 private:
  class Incremental;
  Node joined(Operand x, const Node& body, const Node& shortcut) const;

  std::unique_ptr<Layer> body_;
  std::unique_ptr<Layer> shortcut_;
  std::optional<Activation> activation_;
};

}  // namespace plexaura::layers
