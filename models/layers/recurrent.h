#pragma once

#include <vector>

#include "models/layers/layer.h"

namespace plexaura::layers {

struct RecurrentOptions {
  bool bias = true;
  std::int64_t layers = 1;  // number of layers; each reads the sequence of the one before it
  double dropout = 0;       // probability of dropout of the sequences between two layers
  // True: each layer also visits the sequence from its last element to its first, with weights of its own. Its result is the
  // hidden values of both directions side by side: 2 hidden values for each step.
  bool bidirectional = false;
};

// The result of a recurrent layer: the hidden state after each step, and all states after the last step.
struct Recurrence {
  Node sequence;  // hidden state after each step, [N, T, hidden], or [N, T, 2 hidden] with two directions
  // [N, hidden] each, from layer 0 on, for each layer the forward direction first; for an LSTM h and then c of each direction
  std::vector<Node> state;
};

// The base of Rnn, Lstm and Gru, which visit the axis T of x [N, T, in] from the first element to the last.
// Parameters of layer l, named and ordered as in PyTorch, for g gates and d directions: weight_ih_l<l> [g hidden, in], in
// later layers [g hidden, d hidden], weight_hh_l<l> [g hidden, hidden], and with `bias` bias_ih_l<l> and bias_hh_l<l>
// [g hidden]. The names of the backward direction end with _reverse. All start uniformly within 1 / sqrt(hidden). The products of x and weight_ih are computed for all steps
// at once, before the loop. If x selects rows of a table, such as an embedding of few words, a graph for training
// multiplies each row of the table once, and selects products. It does so if x selects at least twice as many rows as
// the table has. Then rows that x does not select enter the gradient of weight_ih as 0 times the row, so that an
// infinite row makes it NaN.
class Recurrent : public Layer {
 public:
  void members(MemberVisitor& visit) override;
  // Returns the sequence of run(). The states begin as zeros.
  Node operator()(Operand x) const override;
  // The buffers are the states. Null with two directions, as the backward one begins at the end of the sequence.
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t samples, std::int64_t positions) const override;
  // Runs all layers. The states begin as `state`, in the order of Recurrence::state, or as zeros if it is
  // empty. Throws UserError for another number of states.
  Recurrence run(Operand x, const std::vector<Node>& state = {}) const;

 protected:
  // Throws UserError for invalid options, and for dropout with only one layer.
  Recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates, std::size_t states,
            RecurrentOptions options);

  // Computes one step. `input` and `recurrent`, both [N, g hidden], are the products of x and of the first
  // state with their weights, with the biases added; if adds_products() is true, `input` has both biases.
  // Returns the next states.
  virtual std::vector<Node> cell(const Node& input, const Node& recurrent,
                                 const std::vector<Node>& state) const = 0;
  // True if cell() reads only the sum of `input` and `recurrent`, so that both biases can be added before the
  // loop.
  virtual bool adds_products() const { return false; }
  // Returns the part of `all` [N, g hidden] that belongs to this gate.
  Node gate(const Node& all, std::int64_t number) const;

 private:
  class Incremental;
  struct Weights {
    std::unique_ptr<Parameter> input;
    std::unique_ptr<Parameter> recurrent;
    std::unique_ptr<Parameter> input_bias;
    std::unique_ptr<Parameter> recurrent_bias;
  };

  std::vector<Node> first_state(const Node& x, const std::vector<Node>& given) const;
  // Returns the products of x [..., in] and weight_ih with the biases that are added before the loop: [..., g hidden].
  Node input_products(const Weights& weights, const Node& x) const;
  // Returns the input_products() of the first layer for x [N, T, in]: [T, N, g hidden].
  Node first_products(const Weights& weights, const Node& x) const;
  // The products are [T, N, g hidden], and the sequence of the result is [T, N, hidden].
  Recurrence run_direction(const Weights& weights, const Node& products, bool is_backward,
                           const std::vector<Node>& state) const;

  std::int64_t hidden_;
  std::size_t states_;
  std::size_t directions_;
  double dropout_;
  std::vector<Weights> weights_;  // of each layer, and within a layer of each direction
};

// h' = tanh(W x + b + R h + c), where W, b, R and c are weight_ih, bias_ih, weight_hh and bias_hh.
class Rnn final : public Recurrent {
 public:
  Rnn(std::int64_t in, std::int64_t hidden, RecurrentOptions options = {})
      : Recurrent(in, hidden, 1, 1, options) {}

 private:
  bool adds_products() const override { return true; }
  std::vector<Node> cell(const Node& input, const Node& recurrent,
                         const std::vector<Node>& state) const override;
};

// Gates i, f, g, o. c' = sigmoid(f) c + sigmoid(i) tanh(g), and h' = sigmoid(o) tanh(c').
class Lstm final : public Recurrent {
 public:
  Lstm(std::int64_t in, std::int64_t hidden, RecurrentOptions options = {})
      : Recurrent(in, hidden, 4, 2, options) {}

 private:
  bool adds_products() const override { return true; }
  std::vector<Node> cell(const Node& input, const Node& recurrent,
                         const std::vector<Node>& state) const override;
};

// Gates r, z, n, of which W_n x + b_n and R_n h + c_n are the two parts of n. n = tanh(W_n x + b_n +
// sigmoid(r) (R_n h + c_n)), and h' = (1 - sigmoid(z)) n + sigmoid(z) h.
class Gru final : public Recurrent {
 public:
  Gru(std::int64_t in, std::int64_t hidden, RecurrentOptions options = {})
      : Recurrent(in, hidden, 3, 1, options) {}

 private:
  std::vector<Node> cell(const Node& input, const Node& recurrent,
                         const std::vector<Node>& state) const override;
};

}  // namespace plexaura::layers
