#include <limits>

#include "dev/compare_ops_parts/op_builders.h"
#include "plexaura/core.h"

namespace plexaura {

namespace {

using PairLoss = Node (*)(Operand, Operand, Reduction);

CrossEntropyOptions cross_entropy_options(const OpCall& call) {
  return {.reduction = call.reduction(),
          .ignore = call.optional_integer("ignore"),
          .label_smoothing = call.number("label_smoothing", 0)};
}

void add_pair_losses(OpBuilders& builders) {
  const std::map<std::string, PairLoss> losses{{"squared_error", squared_error},
                                               {"mse", mse},
                                               {"l1", l1},
                                               {"binary_cross_entropy", binary_cross_entropy},
                                               {"kl_div", kl_div},
                                               {"poisson_nll", poisson_nll},
                                               {"hinge", hinge}};
  for (const auto& [name, loss] : losses)
    builders[name] = [loss = loss](const OpCall& call) {
      return std::vector{loss(call[0], call[1], call.reduction())};
    };
}

void add_class_losses(OpBuilders& builders) {
  builders["softmax_cross_entropy"] = [](const OpCall& call) {
    const CrossEntropyOptions options = cross_entropy_options(call);
    return std::vector{call.inputs.size() == 3 ? softmax_cross_entropy(call[0], call[1], call[2], options)
                                               : softmax_cross_entropy(call[0], call[1], options)};
  };
  builders["nll"] = [](const OpCall& call) {
    const CrossEntropyOptions options = cross_entropy_options(call);
    return std::vector{call.inputs.size() == 3 ? nll(call[0], call[1], call[2], options)
                                               : nll(call[0], call[1], options)};
  };
  builders["binary_cross_entropy_with_logits"] = [](const OpCall& call) {
    return std::vector{call.inputs.size() == 3
                           ? binary_cross_entropy_with_logits(call[0], call[1], call[2], call.reduction())
                           : binary_cross_entropy_with_logits(call[0], call[1], call.reduction())};
  };
  builders["one_hot"] = [](const OpCall& call) {
    return std::vector{one_hot(call[0], call.integer("classes"), call.dtype())};
  };
  builders["top_k_correct"] = [](const OpCall& call) {
    return std::vector{top_k_correct(call[0], call[1], call.integer("k"))};
  };
}

void add_losses_with_options(OpBuilders& builders) {
  builders["smooth_l1"] = [](const OpCall& call) {
    return std::vector{smooth_l1(call[0], call[1], call.number("beta", 1), call.reduction())};
  };
  builders["huber"] = [](const OpCall& call) {
    return std::vector{huber(call[0], call[1], call.number("delta", 1), call.reduction())};
  };
  builders["gaussian_nll"] = [](const OpCall& call) {
    return std::vector{
        gaussian_nll(call[0], call[1], call[2], call.number("epsilon", 1e-6), call.reduction())};
  };
  builders["margin_ranking"] = [](const OpCall& call) {
    return std::vector{margin_ranking(call[0], call[1], call[2], call.number("margin", 0), call.reduction())};
  };
  builders["triplet_margin"] = [](const OpCall& call) {
    return std::vector{triplet_margin(call[0], call[1], call[2],
                                      {.margin = call.number("margin", 1),
                                       .p = call.number("p", 2),
                                       .swap = call.flag("swap"),
                                       .reduction = call.reduction()})};
  };
  builders["cosine_embedding"] = [](const OpCall& call) {
    return std::vector{
        cosine_embedding(call[0], call[1], call[2], call.number("margin", 0), call.reduction())};
  };
  builders["cosine_similarity"] = [](const OpCall& call) {
    return std::vector{
        cosine_similarity(call[0], call[1], call.integer("axis", -1), call.number("epsilon", 1e-8))};
  };
}

}  // namespace

void add_loss_builders(OpBuilders& builders) {
  add_pair_losses(builders);
  add_class_losses(builders);
  add_losses_with_options(builders);
}

}  // namespace plexaura
