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
  const auto call = enter(x);
  Graph& graph = x.node().graph();
  Node y = x.node();
  for (const Child& child : children_) {
    std::optional<Graph::WithOrigin> origin;
    if (!child.origin.file.empty()) origin.emplace(graph, child.origin);
    y = (*child.layer)({y, x.where()});
  }
  return y;
}

void Residual::members(MemberVisitor& visit) {
  visit("body", body_);
  visit("shortcut", shortcut_);
}

Node Residual::operator()(Operand x) const {
  const auto call = enter(x);
  const Node shortcut = shortcut_ ? (*shortcut_)(x) : x.node();
  const Node y = (*body_)(x);
  if (y.shape() != shortcut.shape())
    throw UserError(fmt::format(
        "{}: a residual block adds its body, {}, to its shortcut, {}; give both the same shape, by "
        "padding or by a shortcut with layers of its own",
        to_string(y.graph().record(y.value().node).origin), to_string(y.shape()),
        to_string(shortcut.shape())));
  const Node total = add({y, x.where()}, shortcut);
  return activation_ ? (*activation_)({total, x.where()}) : total;
}

}  // namespace plexaura::layers
