#include "models/layers/recurrent.h"

#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/dropout.h"
#include "core/ops/gather.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"

namespace plexaura::layers {

namespace {

void check_options(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options) {
  if (in < 1 || hidden < 1 || options.layers < 1)
    throw UserError(
        fmt::format("a recurrent layer of {} inputs, {} hidden values and {} layers; each must be at least 1",
                    in, hidden, options.layers));
  if (options.dropout != 0 && options.layers == 1)
    throw UserError(
        "a recurrent layer of one layer has no place for its dropout, which is between layers; append a "
        "Dropout "
        "layer instead");
}

// Converts [N, T, H] to [T, N, H], and back.
Node swap_steps_and_samples(const Node& sequence) { return permute(sequence, {1, 0, 2}); }

// Applies dropout to a sequence [T, N, H]. The op needs the samples along axis 0, since the random numbers of
// a sample depend on its place in the global batch.
Node drop_elements(const Node& sequence, double p) {
  return swap_steps_and_samples(dropout(swap_steps_and_samples(sequence), {.p = p}));
}

// A table [V, in] and the numbers [N, T] of those of its rows that are the elements of a sequence [N, T, in].
struct TableRows {
  Node table;
  Node numbers;
};

// Returns the table and the numbers of the rows that a sequence selects. Returns nothing unless the sequence is a gather
// of rows, such as an embedding, and selects at least twice as many rows as the table has. Also returns nothing in
// inference: a file that is exported for any number of samples computes with this graph, and would multiply the whole
// table for a single sample.
std::optional<TableRows> rows_of_table(const Node& sequence) {
  Graph& graph = sequence.graph();
  const NodeRecord& record = graph.record(sequence.id());
  if (graph.mode() != Mode::train || record.op->name() != "gather" ||
      op_cast<Gather>(*record.op).options().axis != 0)
    return std::nullopt;
  const TableRows rows{Node(graph, record.inputs[0]), Node(graph, record.inputs[1])};
  const Shape& table = rows.table.shape();
  if (table.rank() != 2 || 2 * table[0] > rows.numbers.shape().elements()) return std::nullopt;
  return rows;
}

}  // namespace

Recurrent::Recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates, std::size_t states,
                     RecurrentOptions options)
    : hidden_(hidden),
      states_(states),
      directions_(options.bidirectional ? 2 : 1),
      dropout_(options.dropout) {
  check_options(in, hidden, options);
  const Initialiser start = Initialiser::uniform(1 / std::sqrt(static_cast<double>(hidden)));
  const auto parameter = [&](Shape shape) { return std::make_unique<Parameter>(std::move(shape), start); };
  const auto directions = static_cast<std::int64_t>(directions_);
  for (std::int64_t i = 0; i < directions * options.layers; ++i) {
    Weights& weights = weights_.emplace_back();
    weights.input = parameter({gates * hidden, i < directions ? in : directions * hidden});
    weights.recurrent = parameter({gates * hidden, hidden});
    if (options.bias) weights.input_bias = parameter({gates * hidden});
    if (options.bias) weights.recurrent_bias = parameter({gates * hidden});
  }
}

void Recurrent::members(MemberVisitor& visit) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::string place = fmt::format("l{}{}", i / directions_, i % directions_ == 0 ? "" : "_reverse");
    visit("weight_ih_" + place, weights_[i].input);
    visit("weight_hh_" + place, weights_[i].recurrent);
    visit("bias_ih_" + place, weights_[i].input_bias);
    visit("bias_hh_" + place, weights_[i].recurrent_bias);
  }
}

Node Recurrent::operator()(Operand x) const { return run(x).sequence; }

class Recurrent::Incremental final : public IncrementalLayer {
 public:
  Incremental(const Recurrent& layer, std::int64_t samples) : layer_(layer) {
    for (std::size_t i = 0; i < layer.states_ * layer.weights_.size(); ++i)
      states_.emplace_back(Shape{samples, layer.hidden_}, Initialiser::zeros(), ParameterRole::buffer);
  }

  void members(MemberVisitor& visit) override { visit("states", states_); }
  Node next(Operand x, Operand position) const override {
    const auto call = layer_.enter_unseen(x);
    Graph& graph = x.node().graph();
    const Node is_first = eq(position, 0);
    std::vector<Node> before;
    for (const Parameter& state : states_) before.push_back(where(is_first, 0, state.in(graph)));
    const Recurrence after = layer_.run(x, before);
    for (std::size_t i = 0; i < states_.size(); ++i) graph.update(states_[i].in(graph), after.state[i]);
    return after.sequence;
  }

 private:
  const Recurrent& layer_;
  std::vector<Parameter> states_;
};

std::unique_ptr<IncrementalLayer> Recurrent::incremental(std::int64_t samples, std::int64_t) const {
  if (directions_ > 1) return nullptr;
  return std::make_unique<Incremental>(*this, samples);
}

Recurrence Recurrent::run(Operand x, const std::vector<Node>& state) const {
  const auto call = enter_unseen(x);
  Recurrence result{x.node(), {}};
  if (result.sequence.shape().rank() != 3)
    throw UserError(fmt::format("{}: a recurrent layer is given {}; it takes [N, T, in]",
                                to_string(result.sequence.graph().origin_of(x.where())),
                                to_string(result.sequence.type())));
  const std::vector<Node> begin = first_state(result.sequence, state);
  for (std::size_t layer = 0; layer * directions_ < weights_.size(); ++layer) {
    if (layer > 0 && dropout_ > 0) result.sequence = drop_elements(result.sequence, dropout_);
    std::vector<Node> sequences;
    for (std::size_t direction = 0; direction < directions_; ++direction) {
      const std::size_t i = layer * directions_ + direction;
      const Node products = layer == 0 ? first_products(weights_[i], result.sequence)
                                       : input_products(weights_[i], result.sequence);
      const auto first = begin.begin() + static_cast<std::ptrdiff_t>(i * states_);
      const Recurrence next = run_direction(weights_[i], products, direction == 1,
                                            {first, first + static_cast<std::ptrdiff_t>(states_)});
      sequences.push_back(next.sequence);
      result.state.insert(result.state.end(), next.state.begin(), next.state.end());
    }
    result.sequence = sequences.size() == 1 ? sequences[0] : concat(sequences, 2);
  }
  result.sequence = swap_steps_and_samples(result.sequence);
  return result;
}

std::vector<Node> Recurrent::first_state(const Node& x, const std::vector<Node>& given) const {
  const std::size_t count = states_ * weights_.size();
  if (!given.empty() && given.size() != count)
    throw UserError(fmt::format("a recurrent layer is given {} states; it has {}", given.size(), count));
  if (!given.empty()) return given;
  const Node zero = x.graph().constant(Tensor::scalar(0.0).cast(x.dtype()));
  return std::vector<Node>(count, broadcast_to(zero, {x.shape()[0], hidden_}));
}

Node Recurrent::input_products(const Weights& weights, const Node& x) const {
  Graph& graph = x.graph();
  const Node products = matmul(x, weights.input->in(graph), {.transpose_b = true});
  if (weights.input_bias == nullptr) return products;
  const Node bias = weights.input_bias->in(graph);
  return products + (adds_products() ? bias + weights.recurrent_bias->in(graph) : bias);
}

Node Recurrent::first_products(const Weights& weights, const Node& x) const {
  const std::optional<TableRows> rows = rows_of_table(x);
  if (!rows || rows->table.shape()[1] != weights.input->shape()[1])
    return input_products(weights, swap_steps_and_samples(x));
  const Node products = input_products(weights, rows->table);
  // An error about a number of a row names the layer that selected the row.
  const Graph::WithOrigin selected(x.graph(), x.graph().record(x.id()).origin);
  return gather(products, permute(rows->numbers, {1, 0}));
}

Recurrence Recurrent::run_direction(const Weights& weights, const Node& products, bool is_backward,
                                    const std::vector<Node>& state) const {
  Graph& graph = products.graph();
  const bool adds_in_loop = weights.recurrent_bias != nullptr && !adds_products();
  const auto step = [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
    Node recurrent = matmul(carries[0], weights.recurrent->in(graph), {.transpose_b = true});
    if (adds_in_loop) recurrent = recurrent + weights.recurrent_bias->in(graph);
    std::vector<Node> next = cell(xs[0], recurrent, carries);
    const Node h = next[0];
    return ScanStep{std::move(next), {h}};
  };
  const ScanStep loop = scan({products}, state, step, {.reverse = is_backward});
  return {loop.outputs[0], loop.carries};
}

Node Recurrent::gate(const Node& all, std::int64_t number) const {
  return slice(all, {.axis = 1, .start = number * hidden_, .stop = (number + 1) * hidden_});
}

std::vector<Node> Rnn::cell(const Node& input, const Node& recurrent, const std::vector<Node>&) const {
  return {tanh(input + recurrent)};
}

std::vector<Node> Lstm::cell(const Node& input, const Node& recurrent, const std::vector<Node>& state) const {
  const Node all = input + recurrent;
  const Node c = sigmoid(gate(all, 1)) * state[1] + sigmoid(gate(all, 0)) * tanh(gate(all, 2));
  return {sigmoid(gate(all, 3)) * tanh(c), c};
}

std::vector<Node> Gru::cell(const Node& input, const Node& recurrent, const std::vector<Node>& state) const {
  const Node reset = sigmoid(gate(input, 0) + gate(recurrent, 0));
  const Node update = sigmoid(gate(input, 1) + gate(recurrent, 1));
  const Node candidate = tanh(gate(input, 2) + reset * gate(recurrent, 2));
  return {(1 - update) * candidate + update * state[0]};
}

}  // namespace plexaura::layers
