#include "models/layers/layer.h"

namespace plexaura::layers {

namespace {

class IncrementalByPosition final : public IncrementalLayer {
 public:
  explicit IncrementalByPosition(const Layer& layer) : layer_(layer) {}

  Node next(Operand x, Operand /*position*/) const override { return layer_(x); }

 private:
  const Layer& layer_;
};

}  // namespace

std::unique_ptr<IncrementalLayer> incremental_by_position(const Layer& layer) {
  return std::make_unique<IncrementalByPosition>(layer);
}

}  // namespace plexaura::layers
