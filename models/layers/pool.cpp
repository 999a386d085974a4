#include "models/layers/pool.h"

namespace plexaura::layers {

Node MaxPool2d::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return max_pool2d(x, options_);
}

Node AvgPool2d::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return avg_pool2d(x, options_);
}

Node GlobalAvgPool::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return global_avg_pool(x);
}

}  // namespace plexaura::layers
