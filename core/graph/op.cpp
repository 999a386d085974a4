#include "core/graph/op.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

Op::~Op() = default;

std::vector<Node> Op::vjp(const VjpRequest&) const {
  throw UserError(fmt::format(
      "{} has no gradient; cut the path to it with stop_gradient, or leave it out of the loss", name()));
}

bool operator==(const Op& a, const Op& b) {
  return a.name() == b.name() && a.description() == b.description();
}

void throw_wrong_class(const Op& op) {
  throw UserError(
      fmt::format("the op named '{}' is of another class than the one that its kernel reads; give every op a "
                  "name of its own, and cast it to the class of that name",
                  op.name()));
}

}  // namespace plexaura
