#include "models/layers/pool.h"

namespace plexaura::layers {

Node MaxPool2d::operator()(Operand x) {
  const auto scope = scope_in(x.node().graph());
  return max_pool2d(x, options_);
}

Node AvgPool2d::operator()(Operand x) {
  const auto scope = scope_in(x.node().graph());
  return avg_pool2d(x, options_);
}

Node GlobalAvgPool::operator()(Operand x) {
  const auto scope = scope_in(x.node().graph());
  return global_avg_pool(x);
}

}  // namespace plexaura::layers
