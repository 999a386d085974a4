#pragma once

#include <concepts>
#include <source_location>
#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Joins the parts one after another along an axis (negative axes count from the end): concat({a, b}, 1). All
// parts have the same dtype, rank and extents of all other axes. A part may be empty.
PLEXAURA_API Node concat(std::vector<Operand> parts, std::int64_t axis);

// Returns the nodes as operands of the call at `where`. Builders that take a std::vector of operands use it in an
// overload for std::vector<Node>. Each such overload is a template, so that a call with a list, as in
// `concat({a, b}, 1)`, stays unambiguous.
PLEXAURA_API std::vector<Operand> operands_of(const std::vector<Node>& nodes, std::source_location where);

Node concat(const std::same_as<std::vector<Node>> auto& parts, std::int64_t axis,
            std::source_location where = std::source_location::current()) {
  return concat(operands_of(parts, where), axis);
}

struct ConcatOptions {
  std::int64_t axis = 0;
  static void fields(auto& self, auto& visitor) { visitor("axis", self.axis); }
};

// Inputs: one or more.
class PLEXAURA_API Concat final : public OpOf<Concat, ConcatOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "concat"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

}  // namespace plexaura
