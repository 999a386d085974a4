#include "models/layers/embedding.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/gather.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura::layers {

Embedding::Embedding(std::int64_t words, std::int64_t width, EmbeddingOptions options)
    : padding_(options.padding) {
  if (padding_ && (*padding_ < -words || *padding_ >= words))
    throw UserError(fmt::format("an embedding of {} words has the padding {}; it must be from {} to {}",
                                words, *padding_, -words, words - 1));
  if (padding_) options.weight.zero_row = *padding_ < 0 ? *padding_ + words : *padding_;
  weight_ = std::make_unique<Parameter>(Shape{words, width}, options.weight);
}

void Embedding::members(MemberVisitor& visit) { visit("weight", weight_); }

Node Embedding::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return embedding(weight_->in(x.node().graph()), x, padding_);
}

void Positions::members(MemberVisitor& visit) { visit("weight", weight_); }

Node Positions::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  const Shape& shape = x.node().shape();
  const Shape& of = weight_.shape();
  if (shape.rank() != 3 || shape[1] > of[0] || shape[2] != of[1])
    throw UserError(fmt::format("{}: positions of {} are given {}; they take [N, at most {} steps, {}]",
                                to_string(x.node().graph().origin_of(x.where())), to_string(of),
                                to_string(x.node().type()), of[0], of[1]));
  const std::int64_t steps = shape[1];
  const Node all = weight_.in(x.node().graph());
  return add(x, steps == of[0] ? all : slice(all, {.stop = steps}));
}

Node Positions::next(Operand x, Operand position) const {
  const auto call = enter_unseen(x);
  const Shape& shape = x.node().shape();
  const std::int64_t width = weight_.shape()[1];
  if (shape.rank() != 3 || shape[1] != 1 || shape[2] != width)
    throw UserError(fmt::format("{}: one position of {} is given {}; it takes [N, 1, {}]",
                                to_string(x.node().graph().origin_of(x.where())), to_string(weight_.shape()),
                                to_string(x.node().type()), width));
  return add(x, embedding(weight_.in(x.node().graph()), reshape(position, {1, 1})));
}

namespace {

class IncrementalPositions final : public IncrementalLayer {
 public:
  explicit IncrementalPositions(const Positions& layer) : layer_(layer) {}

  Node next(Operand x, Operand position) const override { return layer_.next(x, position); }

 private:
  const Positions& layer_;
};

}  // namespace

std::unique_ptr<IncrementalLayer> Positions::incremental(std::int64_t, std::int64_t) const {
  return std::make_unique<IncrementalPositions>(*this);
}

}  // namespace plexaura::layers
