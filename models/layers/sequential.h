#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/layers/layer.h"

namespace plexaura::layers {

// Layers one after the other. Their names are numbers from 0 unless given.
class Sequential final : public Layer {
 public:
  Sequential() = default;

  // Makes a layer at the end: `features.append<Linear>(4, 30)`. Returns it; the reference holds as long as
  // this lives.
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
  // While it lives in here the layer's nodes have this origin, where one is given.
  void add(std::string name, std::unique_ptr<Layer> layer, Origin origin = {});

  std::size_t size() const { return children_.size(); }
  bool contains(std::string_view name) const;

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) override;

 private:
  struct Child {
    std::string name;
    std::unique_ptr<Layer> layer;
    Origin origin;
  };
  std::vector<Child> children_;
};

// relu(body(x) + shortcut(x)), where an absent shortcut is x itself.
class Residual final : public Layer {
 public:
  explicit Residual(std::unique_ptr<Layer> body, std::unique_ptr<Layer> shortcut = nullptr)
      : body_(std::move(body)), shortcut_(std::move(shortcut)) {}

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) override;

 private:
  std::unique_ptr<Layer> body_;
  std::unique_ptr<Layer> shortcut_;
};

}  // namespace plexaura::layers
