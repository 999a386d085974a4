#include "core/autodiff/products.h"

#include <fmt/format.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

std::string call_of(std::string_view function, const Node& node) {
  return fmt::format("{}({})", function, name_of(node.graph(), node.id()));
}

void check_directions(std::string_view function, const char* what, const Node& output,
                      std::span<const Node> wrt, std::span<const Node> directions) {
  if (wrt.size() != directions.size())
    throw UserError(fmt::format("{}: {} {}s for {} entries of wrt; pass one for each, an empty Node for zero",
                                call_of(function, output), directions.size(), what, wrt.size()));
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (directions[i].is_empty()) continue;
    if (&directions[i].graph() != &output.graph())
      throw UserError(fmt::format("{}: the {} of {} belongs to another graph; make it in this one",
                                  call_of(function, output), what, name_of(wrt[i].graph(), wrt[i].id())));
    if (directions[i].type() != wrt[i].type())
      throw UserError(fmt::format("{}: the {} of {} is {}; it must be {} as the node is",
                                  call_of(function, output), what, name_of(wrt[i].graph(), wrt[i].id()),
                                  to_string(directions[i].type()), to_string(wrt[i].type())));
  }
}

// A value that takes no memory, for cotangents by which a vjp is differentiated. Since a vjp is linear in them, no result
// depends on it.
Node any_like(const Node& node) {
  Origin origin = node.graph().record(node.id()).origin;
  origin.is_gradient = true;
  const Graph::WithOrigin guard(node.graph(), origin);
  const Node one = node.graph().constant(Tensor::scalar(1.0).cast(node.dtype()));
  return broadcast_to(one, node.shape());
}

// Differentiates the nodes that are not empty along the directions. Returns one node for each, empty where it is zero.
std::vector<Node> differentiate(std::span<const Node> nodes, std::span<const Node> wrt,
                                std::span<const Node> directions) {
  std::vector<Node> cotangents;
  for (const Node& node : nodes) cotangents.push_back(any_like(node));
  std::vector<Node> pulled;  // linear in the cotangents
  std::vector<Node> along;
  const std::vector<Node> grads = vjp(nodes, cotangents, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (grads[i].is_empty() || directions[i].is_empty()) continue;
    pulled.push_back(grads[i]);
    along.push_back(directions[i]);
  }
  if (pulled.empty()) return std::vector<Node>(nodes.size());
  return vjp(pulled, along, cotangents);
}

}  // namespace

std::vector<Node> jvp(std::span<const Node> outputs, std::span<const Node> wrt,
                      std::span<const Node> tangents) {
  if (outputs.empty()) throw UserError("jvp(): there is no output; pass one at least");
  if (wrt.empty())
    throw UserError(fmt::format("{}: wrt is empty; pass one node at least", call_of("jvp", outputs[0])));
  check_directions("jvp", "tangent", outputs[0], wrt, tangents);
  return differentiate(outputs, wrt, tangents);
}

std::vector<Node> hvp(const Node& loss, std::span<const Node> wrt, std::span<const Node> vectors) {
  check_directions("hvp", "vector", loss, wrt, vectors);
  std::vector<Node> grads;
  std::vector<Node> along;
  const std::vector<Node> all = gradients_or_empty(loss, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (all[i].is_empty() || vectors[i].is_empty()) continue;
    grads.push_back(all[i]);
    along.push_back(vectors[i]);
  }
  if (grads.empty()) return std::vector<Node>(wrt.size());
  return vjp(grads, along, wrt);
}

}  // namespace plexaura
