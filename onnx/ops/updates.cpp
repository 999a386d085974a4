// The standard's ops of optimizers. Inputs: the learning rate, the number of updates so far, and then for each kind of
// tensor one of each parameter: the parameters, their gradients, and their states.

#include <cmath>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

struct UpdateInputs {
  Node rate;
  std::int64_t step = 0;
  std::size_t parameters = 0;
};

UpdateInputs read_update(const Call& call, std::size_t kinds) {
  if (call.inputs() < 2 + kinds || (call.inputs() - 2) % kinds != 0)
    throw UserError(fmt::format("{} inputs do not fit {} tensors for each parameter", call.inputs(), kinds));
  return {call[0], call.whole_number(1), (call.inputs() - 2) / kinds};
}

// Calls `update` with the tensors of each parameter, and returns its results in the order of the standard.
template <class Update>
std::vector<Node> update_each(const Call& call, const UpdateInputs& inputs, std::size_t kinds,
                              Update&& update) {
  std::vector<Node> results((kinds - 1) * inputs.parameters);
  for (std::size_t i = 0; i < inputs.parameters; ++i) {
    std::vector<Node> of_one;
    for (std::size_t kind = 0; kind < kinds; ++kind) of_one.push_back(call[2 + kind * inputs.parameters + i]);
    const std::vector<Node> made = update(of_one);
    for (std::size_t k = 0; k < made.size(); ++k) results[k * inputs.parameters + i] = made[k];
  }
  return results;
}

std::vector<Node> adagrad(Call& call) {
  const UpdateInputs inputs = read_update(call, 3);
  const double decay = call.real("decay_factor", 0);
  const double epsilon = call.real("epsilon", 1e-6F);
  const double norm = call.real("norm_coefficient", 0);
  const double slowed = 1 / (1 + static_cast<double>(inputs.step) * decay);
  return update_each(call, inputs, 3, [&](const std::vector<Node>& of) -> std::vector<Node> {
    const Node gradient = of[1] + of[0] * norm;
    const Node squares = of[2] + square(gradient);
    return {of[0] - inputs.rate * slowed * gradient / (sqrt(squares) + epsilon), squares};
  });
}

std::vector<Node> adam(Call& call) {
  const UpdateInputs inputs = read_update(call, 4);
  const double alpha = call.real("alpha", 0.9F);
  const double beta = call.real("beta", 0.999F);
  const double epsilon = call.real("epsilon", 1e-6F);
  const double norm = call.real("norm_coefficient", 0);
  const double norm_after = call.real("norm_coefficient_post", 0);
  const auto step = static_cast<double>(inputs.step);
  const double corrected =
      inputs.step > 0 ? std::sqrt(1 - std::pow(beta, step)) / (1 - std::pow(alpha, step)) : 1;
  return update_each(call, inputs, 4, [&](const std::vector<Node>& of) -> std::vector<Node> {
    const Node gradient = of[1] + of[0] * norm;
    const Node mean = of[2] * alpha + gradient * (1 - alpha);
    const Node squares = of[3] * beta + square(gradient) * (1 - beta);
    const Node next = of[0] - inputs.rate * corrected * mean / (sqrt(squares) + epsilon);
    return {next * (1 - norm_after), mean, squares};
  });
}

std::vector<Node> momentum(Call& call) {
  const UpdateInputs inputs = read_update(call, 3);
  const double alpha = call.real("alpha", 0);
  const double given = call.real("beta", 0);
  const double beta = inputs.step > 0 ? given : 1;
  const double norm = call.real("norm_coefficient", 0);
  const std::string mode = call.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    throw UserError(fmt::format("mode must be standard or nesterov, not '{}'", mode));
  return update_each(call, inputs, 3, [&](const std::vector<Node>& of) -> std::vector<Node> {
    const Node gradient = of[1] + of[0] * norm;
    const Node velocity = of[2] * alpha + gradient * beta;
    const Node change = mode == "nesterov" ? gradient + velocity * alpha : velocity;
    return {of[0] - inputs.rate * change, velocity};
  });
}

constexpr Row rows_of_updates[] = {
    {"Adagrad", 1, adagrad},
    {"Adam", 1, adam},
    {"Momentum", 1, momentum},
};

}  // namespace

std::span<const Row> update_rows() { return rows_of_updates; }

}  // namespace plexaura::onnx
