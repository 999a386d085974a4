// Recurrent layers, as loops over the time axis.

#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/activations.h"
#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"

namespace plexaura::onnx {

namespace {

using Activation = Node (*)(Operand);

Activation activation_of(const std::string& name) {
  if (name == "Sigmoid") return sigmoid;
  if (name == "Tanh") return tanh;
  if (name == "Relu") return relu;
  if (name == "Softsign") return softsign;
  if (name == "Softplus") return softplus;
  throw UserError(fmt::format(
      "the activation '{}' is not supported; there are Sigmoid, Tanh, Relu, Softsign and Softplus", name));
}

// One direction of a layer: x [T, N, I], its weights without the axis of directions, and its activations.
struct Direction {
  Node x;
  Node weights;              // [G H, I]
  Node recurrent;            // [G H, H]
  Node input_bias = {};      // [G H]; empty if there is none
  Node recurrent_bias = {};  // [G H]
  Node peepholes = {};       // [3 H]; empty if there is none
  std::vector<Activation> activations = {};
  bool resets_after = false;  // the attribute linear_before_reset of a GRU
};

Node part_of(const Node& values, std::int64_t axis, std::int64_t index, std::int64_t size) {
  return slice(values, {.axis = axis, .start = index * size, .stop = (index + 1) * size});
}

Node linear_part(const Node& x, const Node& weights, const Node& bias) {
  const Node product = matmul(x, weights, {.transpose_b = true});
  return bias.is_empty() ? product : product + bias;
}

// A step of a layer: the next states of the projected input [N, G H] and the states [N, H].
using Cell = std::vector<Node> (*)(const Direction&, const Node& projected, const std::vector<Node>& states);

std::vector<Node> plain_cell(const Direction& of, const Node& projected, const std::vector<Node>& states) {
  return {of.activations[0](projected + linear_part(states[0], of.recurrent, of.recurrent_bias))};
}

// The gates of the file are z, r and h.
std::vector<Node> gru_cell(const Direction& of, const Node& projected, const std::vector<Node>& states) {
  const Node h = states[0];
  const std::int64_t size = h.shape()[1];
  const auto inner = [&](std::int64_t gate, const Node& state) {
    const Node bias = of.recurrent_bias.is_empty() ? Node() : part_of(of.recurrent_bias, 0, gate, size);
    return linear_part(state, part_of(of.recurrent, 0, gate, size), bias);
  };
  const auto gate_of = [&](std::int64_t gate) { return part_of(projected, 1, gate, size); };
  const Node update = of.activations[0](gate_of(0) + inner(0, h));
  const Node reset = of.activations[0](gate_of(1) + inner(1, h));
  const Node hidden = of.resets_after ? reset * inner(2, h) : inner(2, reset * h);
  return {(1 - update) * of.activations[1](gate_of(2) + hidden) + update * h};
}

// The gates of the file are i, o, f and c, and its peepholes i, o and f.
std::vector<Node> lstm_cell(const Direction& of, const Node& projected, const std::vector<Node>& states) {
  const Node c = states[1];
  const std::int64_t size = c.shape()[1];
  const Node gates = projected + linear_part(states[0], of.recurrent, of.recurrent_bias);
  const auto gate_of = [&](std::int64_t gate, std::int64_t peephole, const Node& cell) {
    const Node gate_sum = part_of(gates, 1, gate, size);
    return of.peepholes.is_empty() ? gate_sum : gate_sum + part_of(of.peepholes, 0, peephole, size) * cell;
  };
  const Node input = of.activations[0](gate_of(0, 0, c));
  const Node forget = of.activations[0](gate_of(2, 2, c));
  const Node next = forget * c + input * of.activations[1](part_of(gates, 1, 3, size));
  const Node output = of.activations[0](gate_of(1, 1, next));
  return {output * of.activations[2](next), next};
}

// Runs one direction. After the last element of a shorter sequence its states remain, and its outputs are 0.
ScanStep run_direction(const Direction& of, const std::vector<Node>& states, Cell cell, const Node& lengths,
                       bool reverse) {
  const Node projected = linear_part(of.x, of.weights, of.input_bias);
  std::vector<Node> xs{projected};
  if (!lengths.is_empty()) {
    const Node times = reshape(counted(of.x.graph(), of.x.shape()[0]), {-1, 1});
    xs.push_back(unsqueeze(lt(times, reshape(lengths, {1, -1})), 2));
  }
  return scan(xs, states,
              [&](const std::vector<Node>& carries, const std::vector<Node>& x) -> ScanStep {
                std::vector<Node> next = cell(of, x[0], carries);
                Node output = next[0];
                if (x.size() > 1) {
                  output = where(x[1], output, 0);
                  for (std::size_t i = 0; i < next.size(); ++i) next[i] = where(x[1], next[i], carries[i]);
                }
                return {next, {output}};
              },
              {.reverse = reverse});
}

constexpr std::int64_t most_of_layer = std::int64_t{1} << 30;  // so that products fit into 64 bits

struct Layer {
  Cell cell = nullptr;
  std::int64_t gates = 1;
  std::vector<std::string> activations = {};
  bool has_cell_state = false;
};

Node direction_of(const Node& values, std::int64_t direction) {
  return squeeze(slice(values, {.axis = 0, .start = direction, .stop = direction + 1}), 0);
}

struct LayerExtents {
  std::int64_t directions = 1;
  std::int64_t batch = 0;   // number of sequences
  std::int64_t hidden = 0;  // number of features of a state
};

void require_shape(const Call& call, std::size_t input, const Shape& shape) {
  if (call.has(input) && call[input].shape() != shape)
    throw UserError(fmt::format("input {} must have the shape {}, not {}", input, to_string(shape),
                                to_string(call[input].shape())));
}

// Checks the shapes of all inputs. `x` is [T, N, I].
LayerExtents checked_extents(Call& call, const Layer& layer, const Node& x, std::int64_t directions,
                             bool batch_first) {
  const std::size_t most_inputs = layer.has_cell_state ? 8 : 6;
  if (call.inputs() > most_inputs)
    throw UserError(fmt::format("it has {} inputs, but at most {} are possible", call.inputs(), most_inputs));
  if (call[2].shape().rank() != 3)
    throw UserError(fmt::format("input 2 must have three axes, not {}", to_string(call[2].shape())));
  const LayerExtents extents{directions, x.shape()[1], call[2].shape()[2]};
  const auto [d, n, h] = extents;
  if (h > most_of_layer) throw UserError(fmt::format("{} features of a state are too many", h));
  require_shape(call, 1, {d, layer.gates * h, x.shape()[2]});
  require_shape(call, 2, {d, layer.gates * h, h});
  require_shape(call, 3, {d, 2 * layer.gates * h});
  require_shape(call, 4, {n});
  const Shape states = batch_first ? Shape{n, d, h} : Shape{d, n, h};
  require_shape(call, 5, states);
  require_shape(call, 6, states);
  require_shape(call, 7, {d, 3 * h});
  if (call.integer("hidden_size", h) != h)
    throw UserError(fmt::format("hidden_size differs from the {} features of input 2", h));
  return extents;
}

Direction read_direction(Call& call, const Layer& layer, std::int64_t number, const Node& x) {
  Direction direction{
      .x = x, .weights = direction_of(call[1], number), .recurrent = direction_of(call[2], number)};
  const std::int64_t size = layer.gates * direction.recurrent.shape()[1];
  if (call.has(3)) {
    const Node biases = direction_of(call[3], number);
    direction.input_bias = part_of(biases, 0, 0, size);
    direction.recurrent_bias = part_of(biases, 0, 1, size);
  }
  if (call.has(7)) direction.peepholes = direction_of(call[7], number);
  direction.resets_after = call.flag("linear_before_reset", false);
  const std::vector<std::string> names = call.texts("activations");
  const std::size_t wanted = layer.activations.size();
  const auto first = static_cast<std::size_t>(number) * wanted;
  for (std::size_t i = 0; i < wanted; ++i)
    direction.activations.push_back(activation_of(names.empty() ? layer.activations[i] : names[first + i]));
  return direction;
}

Node initial_state(const Call& call, std::size_t input, std::int64_t direction, const LayerExtents& extents,
                   DType dtype, bool batch_first) {
  const Node zero = cast(call.graph().constant(Tensor::scalar(0.0F)), dtype);
  if (!call.has(input)) return broadcast_to(zero, Shape{extents.batch, extents.hidden});
  return direction_of(batch_first ? transpose(call[input], 0, 1) : call[input], direction);
}

std::int64_t directions_of(const std::string& way) {
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    throw UserError(fmt::format("direction must be forward, reverse or bidirectional, not '{}'", way));
  return way == "bidirectional" ? 2 : 1;
}

// x [T, N, I] -> y [T, D, N, H] and the last states [D, N, H]. With layout 1 the axis N comes first.
std::vector<Node> recurrent_layer(Call& call, const Layer& layer) {
  const bool batch_first = call.flag("layout", false);
  const std::string way = call.text("direction", "forward");
  const std::int64_t directions = directions_of(way);
  if (call[0].shape().rank() != 3)
    throw UserError(fmt::format("x must have three axes, not {}", to_string(call[0].shape())));
  const Node x = batch_first ? transpose(call[0], 0, 1) : call[0];
  const LayerExtents extents = checked_extents(call, layer, x, directions, batch_first);
  const std::size_t activations = static_cast<std::size_t>(directions) * layer.activations.size();
  if (const std::size_t found = call.texts("activations").size(); found != 0 && found != activations)
    throw UserError(fmt::format("it has {} activations, but needs {}", found, activations));
  call.require_default("input_forget", 0);
  const Node lengths = call.has(4) ? cast(call[4], DType::int64) : Node();
  std::vector<Operand> outputs;
  std::vector<std::vector<Operand>> last(layer.has_cell_state ? 2 : 1);
  for (std::int64_t number = 0; number < directions; ++number) {
    std::vector<Node> states;
    for (std::size_t i = 0; i < last.size(); ++i)
      states.push_back(initial_state(call, 5 + i, number, extents, x.dtype(), batch_first));
    const Direction direction = read_direction(call, layer, number, x);
    const ScanStep done =
        run_direction(direction, states, layer.cell, lengths, way == "reverse" || number == 1);
    outputs.emplace_back(done.outputs[0]);
    for (std::size_t i = 0; i < last.size(); ++i) last[i].emplace_back(done.carries[i]);
  }
  std::vector<Node> results{stack(outputs, 1)};
  for (const auto& states : last) results.push_back(stack(states, 0));
  if (!batch_first) return results;
  results[0] = permute(results[0], {2, 0, 1, 3});
  for (std::size_t i = 1; i < results.size(); ++i) results[i] = transpose(results[i], 0, 1);
  return results;
}

std::vector<Node> plain_layer(Call& call) { return recurrent_layer(call, {plain_cell, 1, {"Tanh"}}); }
std::vector<Node> gru_layer(Call& call) { return recurrent_layer(call, {gru_cell, 3, {"Sigmoid", "Tanh"}}); }
std::vector<Node> lstm_layer(Call& call) {
  return recurrent_layer(call, {lstm_cell, 4, {"Sigmoid", "Tanh", "Tanh"}, true});
}

constexpr Row rows_of_layers[] = {
    {"GRU", 7, gru_layer},
    {"LSTM", 7, lstm_layer},
    {"RNN", 7, plain_layer},
};

}  // namespace

std::span<const Row> recurrent_rows() { return rows_of_layers; }

}  // namespace plexaura::onnx
