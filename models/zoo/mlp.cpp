#include "models/zoo/mlp.h"

#include <fmt/format.h>

namespace plexaura {

namespace {

Initialiser start_of(const std::string& activation) {
  return activation == "relu" ? Initialiser::he_uniform() : Initialiser::glorot_uniform();
}

}  // namespace

Mlp::Mlp(ModelInfo info, const MlpOptions& options)
    : Model(std::move(info)),
      activation_(options.activation),
      sigmoid_outputs_(options.sigmoid_outputs),
      standardise_(options.standardise) {
  std::int64_t in = sample_shape().elements();
  const auto append = [&](std::int64_t out, Initialiser start) {
    linear_.push_back(std::make_unique<layers::Linear>(
        in, out, layers::LinearOptions{.weight = start, .bias_start = Initialiser::zeros()}));
    in = out;
  };
  for (const std::int64_t width : options.hidden) append(width, start_of(options.activation));
  append(classes(), Initialiser::glorot_uniform());
}

void Mlp::members(MemberVisitor& visit) {
  for (std::size_t i = 0; i < linear_.size(); ++i) visit(fmt::format("fc{}", i + 1), linear_[i]);
}

Node Mlp::forward(Operand x) const {
  Node y = x.node().shape().rank() == 2 ? x.node() : flatten_(x);
  for (std::size_t i = 0; i < linear_.size(); ++i) {
    if (standardise_) y = standardise_layer_(y);
    y = (*linear_[i])(y);
    if (i + 1 < linear_.size()) y = activation_(y);
  }
  return sigmoid_outputs_ ? sigmoid_(y) : y;
}

std::vector<Key> mlp_keys(MlpOptions& options) {
  return {
      {.name = "hidden",
       .into = &options.hidden,
       .range = {.minimum = 1, .maximum = 1 << 24},
       .required = true,
       .meaning = "widths of the hidden layers, for example `[30, 20]`; `[]` for none"},
      {.name = "activation",
       .into = &options.activation,
       .words = layers::Activation::names(),
       .meaning = "activation of the hidden layers"},
      {.name = "outputs",
       .into = one_of(options.sigmoid_outputs, {{"linear", false}, {"sigmoid", true}}),
       .meaning = "activation of the last layer; `linear`: none"},
      {.name = "standardise",
       .into = &options.standardise,
       .meaning = "scales the input of every layer to mean 0 and variance 1 per sample"},
  };
}

std::unique_ptr<Model> make_mlp(ModelInfo info, const MlpOptions& options, const Section& yaml) {
  const bool has_sigmoid = info.task != Task::classification && info.loss == Loss::binary_cross_entropy;
  if (options.sigmoid_outputs && has_sigmoid)
    throw yaml.error(
        "outputs",
        fmt::format("is sigmoid, and model.task is {}, whose loss and predictions apply a sigmoid to "
                    "the outputs themselves; leave it out",
                    name_of(info.task)));
  return std::make_unique<Mlp>(std::move(info), options);
}

}  // namespace plexaura
