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

void check_not_empty(std::string_view function, const Node& output, std::span<const Node> wrt) {
  if (wrt.empty())
    throw UserError(fmt::format("{}: wrt is empty; pass one node at least", call_of(function, output)));
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

// Returns a node of the same type that takes no memory. It is the cotangent by which a vjp is differentiated:
// since a vjp is linear in its cotangents, no result depends on their values.
Node any_like(const Node& node) {
  Origin origin = node.graph().record(node.id()).origin;
  origin.is_gradient = true;
  const Graph::WithOrigin guard(node.graph(), origin);
  const Node one = node.graph().constant(Tensor::scalar(1.0).cast(node.dtype()));
  return broadcast_to(one, node.shape());
}

// Returns the gradients of the inner product of `grads` and `directions` with respect to `wrt`. In both lists an empty node
// stands for zero, and so it does in the result.
std::vector<Node> differentiate(std::span<const Node> grads, std::span<const Node> directions,
                                std::span<const Node> wrt) {
  std::vector<Node> outputs;
  std::vector<Node> cotangents;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].is_empty() || directions[i].is_empty()) continue;
    outputs.push_back(grads[i]);
    cotangents.push_back(directions[i]);
  }
  if (outputs.empty()) return std::vector<Node>(wrt.size());
  return vjp(outputs, cotangents, wrt);
}

}  // namespace

std::vector<Node> jvp(std::span<const Node> outputs, std::span<const Node> wrt,
                      std::span<const Node> tangents) {
  if (outputs.empty()) throw UserError("jvp(): there is no output; pass one at least");
  check_not_empty("jvp", outputs[0], wrt);
  check_directions("jvp", "tangent", outputs[0], wrt, tangents);
  std::vector<Node> cotangents;
  for (const Node& output : outputs) cotangents.push_back(any_like(output));
  // The vjp is linear in the cotangents, so its derivative with respect to them is the product.
  return differentiate(vjp(outputs, cotangents, wrt), tangents, cotangents);
}

std::vector<Node> hvp(const Node& loss, std::span<const Node> wrt, std::span<const Node> vectors) {
  check_not_empty("hvp", loss, wrt);
  check_directions("hvp", "vector", loss, wrt, vectors);
  return differentiate(gradients_or_empty(loss, wrt), vectors, wrt);
}

std::vector<Node> jvp(std::initializer_list<Node> outputs, std::initializer_list<Node> wrt,
                      std::initializer_list<Node> tangents) {
  return jvp(std::span(outputs.begin(), outputs.size()), std::span(wrt.begin(), wrt.size()),
             std::span(tangents.begin(), tangents.size()));
}

std::vector<Node> hvp(const Node& loss, std::initializer_list<Node> wrt,
                      std::initializer_list<Node> vectors) {
  return hvp(loss, std::span(wrt.begin(), wrt.size()), std::span(vectors.begin(), vectors.size()));
}

}  // namespace plexaura
