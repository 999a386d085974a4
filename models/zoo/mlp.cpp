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

Node Mlp::forward(Operand x) {
  Node y = x.node().shape().rank() == 2 ? x.node() : flatten_(x);
  for (std::size_t i = 0; i < linear_.size(); ++i) {
    if (standardise_) y = standardise_layer_(y);
    y = (*linear_[i])(y);
    if (i + 1 < linear_.size()) y = activation_(y);
  }
  return sigmoid_outputs_ ? sigmoid_(y) : y;
}

std::unique_ptr<Model> make_mlp(const Section& yaml, ModelInfo info) {
  MlpOptions options;
  options.hidden = yaml.integers("hidden", {.minimum = 1, .maximum = 1 << 24});
  options.activation = yaml.choice_or("activation", "relu", layers::Activation::names());
  options.sigmoid_outputs = yaml.choice_or("outputs", "linear", {"linear", "sigmoid"}) == "sigmoid";
  options.standardise = yaml.flag_or("standardise", false);
  return std::make_unique<Mlp>(std::move(info), options);
}

}  // namespace plexaura
