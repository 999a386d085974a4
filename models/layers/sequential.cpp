#include "models/layers/sequential.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/binary.h"

namespace plexaura::layers {

bool Sequential::contains(std::string_view name) const {
  return std::ranges::any_of(children_, [&](const Child& child) { return child.name == name; });
}

void Sequential::add(std::string name, std::unique_ptr<Layer> layer, Origin origin) {
  if (contains(name)) throw UserError(fmt::format("two layers are named '{}'; give each its own name", name));
  children_.push_back({std::move(name), std::move(layer), std::move(origin)});
}

void Sequential::members(MemberVisitor& visit) {
  for (const Child& child : children_) visit(child.name, child.layer);
}

Node Sequential::operator()(Operand x) const {
  return passed(x, [&](std::size_t child, Operand y) { return (*children_[child].layer)(y); });
}

Node Sequential::passed(Operand x, const std::function<Node(std::size_t child, Operand x)>& call) const {
  const auto scope = enter(x);
  Graph& graph = x.node().graph();
  Node y = x.node();
  for (std::size_t i = 0; i < children_.size(); ++i) {
    std::optional<Graph::WithOrigin> origin;
    if (!children_[i].origin.file.empty()) origin.emplace(graph, children_[i].origin);
    y = call(i, {y, x.where()});
  }
  return y;
}

class Sequential::Incremental final : public IncrementalLayer {
 public:
  Incremental(const Sequential& net, std::vector<std::unique_ptr<IncrementalLayer>> children)
      : net_(net), children_(std::move(children)) {}

  void members(MemberVisitor& visit) override {
    for (std::size_t i = 0; i < children_.size(); ++i) visit(net_.children_[i].name, children_[i]);
  }
  Node next(Operand x, Operand position) const override {
    return net_.passed(x, [&](std::size_t child, Operand y) { return children_[child]->next(y, position); });
  }

 private:
  const Sequential& net_;
  std::vector<std::unique_ptr<IncrementalLayer>> children_;
};

std::unique_ptr<IncrementalLayer> Sequential::incremental(std::int64_t samples,
                                                          std::int64_t positions) const {
  std::vector<std::unique_ptr<IncrementalLayer>> children;
  for (const Child& child : children_) {
    children.push_back(child.layer->incremental(samples, positions));
    if (!children.back()) return nullptr;
  }
  return std::make_unique<Incremental>(*this, std::move(children));
}

void Residual::members(MemberVisitor& visit) {
  visit("body", body_);
  visit("shortcut", shortcut_);
}

Node Residual::operator()(Operand x) const {
  const auto call = enter(x);
  const Node shortcut = shortcut_ ? (*shortcut_)(x) : x.node();
  return joined(x, (*body_)(x), shortcut);
}

Node Residual::joined(Operand x, const Node& body, const Node& shortcut) const {
  if (body.shape() != shortcut.shape())
    throw UserError(fmt::format(
        "{}: a residual block adds its body, {}, to its shortcut, {}; give both the same shape, by "
        "padding or by a shortcut with layers of its own",
        to_string(body.graph().record(body.value().node).origin), to_string(body.shape()),
        to_string(shortcut.shape())));
  const Node total = add({body, x.where()}, shortcut);
  return activation_ ? (*activation_)({total, x.where()}) : total;
}

class Residual::Incremental final : public IncrementalLayer {
 public:
  // `shortcut` is null if the block has none.
  Incremental(const Residual& block, std::unique_ptr<IncrementalLayer> body,
              std::unique_ptr<IncrementalLayer> shortcut)
      : block_(block), body_(std::move(body)), shortcut_(std::move(shortcut)) {}

  void members(MemberVisitor& visit) override {
    visit("body", body_);
    visit("shortcut", shortcut_);
  }
  Node next(Operand x, Operand position) const override {
    const auto call = block_.enter(x);
    const Node shortcut = shortcut_ ? shortcut_->next(x, position) : x.node();
    return block_.joined(x, body_->next(x, position), shortcut);
  }

 private:
  const Residual& block_;
  std::unique_ptr<IncrementalLayer> body_;
  std::unique_ptr<IncrementalLayer> shortcut_;
};

std::unique_ptr<IncrementalLayer> Residual::incremental(std::int64_t samples, std::int64_t positions) const {
  auto body = body_->incremental(samples, positions);
  auto shortcut = shortcut_ ? shortcut_->incremental(samples, positions) : nullptr;
  if (!body || (shortcut_ && !shortcut)) return nullptr;
  return std::make_unique<Incremental>(*this, std::move(body), std::move(shortcut));
}

}  // namespace plexaura::layers
