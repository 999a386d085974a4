#include "models/layers/embedding.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/gather.h"

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

}  // namespace plexaura::layers
