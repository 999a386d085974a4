#include "models/layers/recurrent.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/graph/print.h"
#include "core/ops/arrange.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::recurrent_test {

namespace {

constexpr std::int64_t samples = 2, steps = 4, in = 3, hidden = 5;

struct Numbers {
  std::vector<double> values;
  std::int64_t width;
  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * width + column)];
  }
};

// Computes a recurrent layer in plain loops. The names are those of PyTorch.
struct Expected {
  Numbers w_ih, w_hh, b_ih, b_hh;
  std::vector<double> sequence = {};
  std::vector<double> h = std::vector<double>(samples * hidden, 0);
  std::vector<double> c = h;

  // Return the parts of a gate's sum that come from x and from h, each with its bias.
  double from_x(const Numbers& x, std::int64_t row, std::int64_t gate) const {
    double sum = b_ih.at(0, gate);
    for (std::int64_t i = 0; i < in; ++i) sum += w_ih.at(gate, i) * x.at(row, i);
    return sum;
  }
  double from_h(const std::vector<double>& before, std::int64_t sample, std::int64_t gate) const {
    double sum = b_hh.at(0, gate);
    for (std::int64_t i = 0; i < hidden; ++i)
      sum += w_hh.at(gate, i) * before[static_cast<std::size_t>(sample * hidden + i)];
    return sum;
  }

  // For each element and step, `next` gets functions that return the parts from x and from h of a gate, and h
  // and c, which it changes.
  template <class Next>
  void run(const Numbers& x, const Next& next) {
    sequence.resize(samples * steps * hidden);
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::vector<double> before = h;
      for (std::int64_t n = 0; n < samples; ++n)
        for (std::int64_t j = 0; j < hidden; ++j) {
          const auto of_x = [&](std::int64_t gate) { return from_x(x, n * steps + t, gate * hidden + j); };
          const auto of_h = [&](std::int64_t gate) { return from_h(before, n, gate * hidden + j); };
          const auto place = static_cast<std::size_t>(n * hidden + j);
          next(of_x, of_h, h[place], c[place]);
          sequence[static_cast<std::size_t>((n * steps + t) * hidden + j)] = h[place];
        }
    }
  }
};

// Reads the two products apart, and leaves adds_products() as it is.
class Product final : public layers::Recurrent {
 public:
  Product(std::int64_t features, std::int64_t width) : Recurrent(features, width, 1, 1, {}) {}

 private:
  std::vector<Node> cell(const Node& input, const Node& recurrent,
                         const std::vector<Node>& /*state*/) const override {
    return {input * recurrent};
  }
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// Runs a layer whose parameters are patterns; compares the sequence and the last states with `next` in loops.
template <class Layer, class Next>
void check(std::int64_t gates, const Next& next) {
  Layer layer(in, hidden);
  ParameterStore store = make_store(layer, DType::float64);
  const auto set = [&](const char* name, Shape shape, std::int64_t a) {
    const Tensor values = pattern(shape, a, 3, 11, 5, 12);
    store.write(name, values);
    return Numbers{values.to_doubles(), shape[shape.rank() - 1]};
  };
  Expected expected{set("weight_ih_l0", {gates * hidden, in}, 7),
                    set("weight_hh_l0", {gates * hidden, hidden}, 5), set("bias_ih_l0", {gates * hidden}, 3),
                    set("bias_hh_l0", {gates * hidden}, 4)};
  const Tensor x = pattern({samples, steps, in}, 9);
  expected.run({x.to_doubles(), in}, next);
  Graph graph;
  const layers::Recurrence found = layer.run(graph.input("x", x.type()));
  const auto results =
      run_graph(graph, store, {found.sequence, found.state[0], found.state.back()}, {{"x", x}});
  check_close(results[0], expected.sequence);
  check_close(results[1], expected.h);
  check_close(results[2], found.state.size() == 1 ? expected.h : expected.c);
}

}  // namespace

TEST_CASE("an RNN computes what its formula says") {
  check<layers::Rnn>(1, [](auto x, auto h, double& state, double&) { state = std::tanh(x(0) + h(0)); });
}

TEST_CASE("an LSTM computes what its formula says, with the gates in PyTorch's order") {
  check<layers::Lstm>(4, [](auto x, auto h, double& state, double& cell) {
    const double input = sigmoid_of(x(0) + h(0));
    const double forget = sigmoid_of(x(1) + h(1));
    cell = forget * cell + input * std::tanh(x(2) + h(2));
    state = sigmoid_of(x(3) + h(3)) * std::tanh(cell);
  });
}

TEST_CASE("a GRU computes what its formula says, with the gates in PyTorch's order") {
  check<layers::Gru>(3, [](auto x, auto h, double& state, double&) {
    const double reset = sigmoid_of(x(0) + h(0));
    const double update = sigmoid_of(x(1) + h(1));
    state = (1 - update) * std::tanh(x(2) + reset * h(2)) + update * state;
  });
}

TEST_CASE("the products that a cell of one's own reads have one bias each") {
  check<Product>(1, [](auto x, auto h, double& state, double&) { state = x(0) * h(0); });
}

TEST_CASE("each layer of a recurrent net has weights of its own, and every weight has a gradient") {
  layers::Lstm lstm(in, hidden, {.layers = 2, .dropout = 0.5});
  const std::vector<ParameterSpec> specs = specs_of(lstm, DType::float64);
  REQUIRE(specs.size() == 8);
  CHECK(specs[4].name == "weight_ih_l1");
  CHECK(specs[4].type.shape == Shape{4 * hidden, hidden});
  Graph graph;
  const layers::Recurrence found = lstm.run(graph.input("x", {DType::float64, {samples, steps, in}}));
  CHECK(found.state.size() == 4);
  std::vector<Node> weights;
  for (const ParameterSpec& spec : specs) weights.push_back(graph.parameter(spec.name, spec.type));
  CHECK(gradients(sum(found.sequence), weights).size() == 8);
}

namespace {

// Runs an LSTM of one layer with the weights of one layer and direction of another store.
Tensor run_lstm(const ParameterStore& weights, const std::string& place, const Tensor& x, bool is_backward) {
  layers::Lstm layer(x.shape()[2], hidden);
  ParameterStore store = make_store(layer, DType::float64);
  for (const char* name : {"weight_ih_", "weight_hh_", "bias_ih_", "bias_hh_"})
    store.write(std::string(name) + "l0", weights.read(name + place));
  Graph graph;
  const Node in_order = graph.input("x", x.type());
  const Node sequence = layer(is_backward ? flip(in_order, {1}) : in_order);
  return run_graph(graph, store, {is_backward ? flip(sequence, {1}) : sequence}, {{"x", x}})[0];
}

Tensor side_by_side(const Tensor& a, const Tensor& b) {
  Graph graph;
  ParameterStore none(std::vector<ParameterSpec>{});
  return run_graph(graph, none, {concat({graph.input("a", a.type()), graph.input("b", b.type())}, 2)},
                   {{"a", a}, {"b", b}})[0];
}

}  // namespace

TEST_CASE("a bidirectional LSTM reads the sequence from both ends in each layer") {
  layers::Lstm lstm(in, hidden, {.layers = 2, .bidirectional = true});
  const std::vector<ParameterSpec> specs = specs_of(lstm, DType::float64);
  REQUIRE(specs.size() == 16);
  CHECK(specs[4].name == "weight_ih_l0_reverse");
  CHECK(specs[15].name == "bias_hh_l1_reverse");
  CHECK(specs[8].type.shape == Shape{4 * hidden, 2 * hidden});
  ParameterStore store = make_store(lstm, DType::float64, 1);
  const Tensor x = pattern({samples, steps, in}, 7);
  Graph graph;
  const layers::Recurrence found = lstm.run(graph.input("x", x.type()));
  CHECK(found.state.size() == 8);
  const Tensor first = side_by_side(run_lstm(store, "l0", x, false), run_lstm(store, "l0_reverse", x, true));
  const Tensor second =
      side_by_side(run_lstm(store, "l1", first, false), run_lstm(store, "l1_reverse", first, true));
  const auto results = run_graph(graph, store, {found.sequence, found.state[6]}, {{"x", x}});
  check_close(results[0], second.to_doubles());
  // The backward direction ends at the first element.
  std::vector<double> at_begin;
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t j = 0; j < hidden; ++j)
      at_begin.push_back(second.as<double>()[static_cast<std::size_t>((n * steps * 2 + 1) * hidden + j)]);
  check_close(results[1], at_begin);
  CHECK(lstm.incremental(1, steps) == nullptr);
}

TEST_CASE("a bidirectional layer visits its sequence backwards without copying it") {
  layers::Gru gru(in, hidden, {.bidirectional = true});
  const ParameterStore store = make_store(gru, DType::float32, 1);
  Graph graph;
  gru(graph.input("x", {DType::float32, {samples, steps, in}}));
  const std::string text = to_text(graph);
  CHECK(text.find("scan") != std::string::npos);
  CHECK(text.find("flip") == std::string::npos);
}

TEST_CASE("dropout between recurrent layers draws the same for a sample in any batch") {
  layers::Lstm lstm(in, hidden, {.layers = 2, .dropout = 0.5});
  ParameterStore store = make_store(lstm, DType::float64, 1);
  const Tensor x = pattern({4, steps, in}, 7);
  const auto run = [&](std::int64_t first, std::int64_t count) {
    Graph graph(Mode::train);
    const Node rows = slice(graph.input("x", x.type()), {.axis = 0, .start = first, .stop = first + count});
    return run_graph(graph, store, {lstm(rows)}, {{"x", x}},
                     {.step = 1, .seed = 7, .first_sample = first})[0];
  };
  const std::vector<double> whole = run(0, 4).to_doubles();
  const auto half = static_cast<std::ptrdiff_t>(whole.size() / 2);
  check_close(run(0, 2), {whole.begin(), whole.begin() + half});
  check_close(run(2, 2), {whole.begin() + half, whole.end()});
}

TEST_CASE(
    "both biases of an RNN and an LSTM are added before the loop and have one gradient, those of a GRU two") {
  const auto have_one_gradient = [](layers::Recurrent&& layer) {
    const std::vector<ParameterSpec> specs = specs_of(layer, DType::float64);
    Graph graph;
    const Node x = graph.input("x", {DType::float64, {samples, steps, in}});
    const Node loss = sum(layer(x));
    std::vector<Node> biases;
    for (const ParameterSpec& spec : specs)
      if (spec.name.starts_with("bias")) biases.push_back(graph.parameter(spec.name, spec.type));
    const std::vector<Node> found = gradients(loss, biases);
    return same_value(found.at(0), found.at(1));
  };
  CHECK(have_one_gradient(layers::Rnn(in, hidden)));
  CHECK(have_one_gradient(layers::Lstm(in, hidden)));
  CHECK_FALSE(have_one_gradient(layers::Gru(in, hidden)));
}

TEST_CASE("products of a table's rows give what products of the selected rows give, and all gradients") {
  constexpr std::int64_t words = 3;
  layers::Lstm lstm(in, hidden, {.layers = 2});
  const std::vector<ParameterSpec> specs = specs_of(lstm, DType::float64);
  ParameterStore store = make_store(lstm, DType::float64, 1);
  const auto run = [&](bool selects_products) {
    Graph graph;
    const Node table = graph.input("table", {DType::float64, {words, in}});
    const Node numbers = graph.input("numbers", {DType::int64, {samples, steps}});
    // The layer does not recognise the rows of the table in a sum.
    const Node rows = embedding(table, numbers);
    const Node sequence = lstm(selects_products ? rows : rows + 0);
    std::vector<Node> wrt{table};
    for (const ParameterSpec& spec : specs) wrt.push_back(graph.parameter(spec.name, spec.type));
    std::vector<ProgramOutput> wanted{{.node = sequence}};
    for (const Node& gradient : gradients(sum(sequence * sequence), wrt))
      wanted.push_back({.node = gradient});
    const auto program = compile(graph, wanted, test_backend(), {.placement = &store.placement()});
    VM vm(program, test_backend(), {.store = &store});
    vm.run({{"table", pattern({words, in}, 7)},
            {"numbers", Tensor::of<std::int64_t>({samples, steps}, {0, 2, 1, 2, 2, 0, 0, 2})}});
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < wanted.size(); ++i) values.push_back(vm.output(i).to_doubles());
    vm.wait();
    return values;
  };
  const auto found = run(true);
  const auto expected = run(false);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].size() == expected[i].size());
    for (std::size_t k = 0; k < found[i].size(); ++k)
      CHECK(found[i][k] == doctest::Approx(expected[i][k]).epsilon(1e-12));
  }
}

TEST_CASE("a recurrent layer trains with products of a table's rows if x has twice as many elements") {
  const auto multiplied_rows = [](std::int64_t words, Mode mode = Mode::train) {
    layers::Lstm lstm(in, hidden);
    specs_of(lstm, DType::float32);
    Graph graph(mode);
    const Node table = graph.input("table", {DType::float32, {words, in}});
    lstm(embedding(table, graph.input("numbers", {DType::int64, {samples, steps}})));
    NodeId first = 0;
    while (graph.record(first).op->name() != "matmul") ++first;
    const Shape& product = graph.record(first).types[0].shape;
    return product.elements() / product[product.rank() - 1];
  };
  constexpr std::int64_t elements = samples * steps;
  CHECK(multiplied_rows(elements / 2) == elements / 2);
  CHECK(multiplied_rows(elements / 2 + 1) == elements);
  CHECK(multiplied_rows(1000) == elements);
  CHECK(multiplied_rows(elements / 2 - 1, Mode::inference) == elements);
}

TEST_CASE("a word outside of the table is an error of the embedding, not of the recurrent layer after it") {
  layers::Lstm lstm(in, hidden);
  ParameterStore store = make_store(lstm, DType::float32, 1);
  Graph graph;
  const Node table = graph.input("table", {DType::float32, {2, in}});
  const Node numbers = graph.input("numbers", {DType::int64, {1, steps}});
  const int line = __LINE__ + 1;
  const Node rows = embedding(table, numbers);
  const Node sequence = lstm(rows);
  const std::string error = user_error([&] {
    run_graph(graph, store, {sequence},
              {{"table", Tensor({DType::float32, {2, in}})},
               {"numbers", Tensor::of<std::int64_t>({1, steps}, {0, 1, 2, 0})}});
  });
  CHECK(error.find("recurrent_test.cpp:" + std::to_string(line)) != std::string::npos);
}

TEST_CASE("a recurrent layer refuses rows of a table that have another width") {
  layers::Lstm lstm(in, hidden);
  specs_of(lstm, DType::float32);
  Graph graph;
  const Node table = graph.input("table", {DType::float32, {2, in + 1}});
  const Node rows = embedding(table, graph.input("numbers", {DType::int64, {samples, steps}}));
  CHECK(user_error([&] { lstm(rows); }).find("float32[4,2,4]") != std::string::npos);
}

TEST_CASE("a state that is passed on continues the sequence") {
  layers::Gru gru(in, hidden);
  ParameterStore store = make_store(gru, DType::float64, 1);
  Graph graph;
  const TensorType half{DType::float64, {samples, steps, in}};
  const Node x = graph.input("x", {DType::float64, {samples, 2 * steps, in}});
  const Node first = graph.input("first", half);
  const Node second = graph.input("second", half);
  const Node whole = gru.run(x).state[0];
  const Node in_halves = gru.run(second, gru.run(first).state).state[0];
  const Tensor a = pattern(half.shape, 7);
  const Tensor b = pattern(half.shape, 5);
  std::vector<double> both;
  constexpr std::ptrdiff_t of_sample = steps * in;
  for (std::ptrdiff_t n = 0; n < samples; ++n)
    for (const Tensor* part : {&a, &b}) {
      const std::vector<double> values = part->to_doubles();
      both.insert(both.end(), values.begin() + n * of_sample, values.begin() + (n + 1) * of_sample);
    }
  const auto results = run_graph(graph, store, {whole, in_halves},
                                 {{"x", Tensor::of<double>(x.shape(), both)}, {"first", a}, {"second", b}});
  check_close(results[0], results[1].to_doubles());
}

TEST_CASE("recurrent layers refuse what has no meaning") {
  CHECK(user_error([] { layers::Lstm(3, 4, {.dropout = 0.5}); }).find("no place for its dropout") !=
        std::string::npos);
  CHECK(user_error([] { layers::Rnn(3, 0); }).find("each must be at least 1") != std::string::npos);
  layers::Gru gru(3, 4);
  specs_of(gru, DType::float32);
  Graph graph;
  const Node flat = graph.input("flat", {DType::float32, {2, 3}});
  CHECK(user_error([&] { gru(flat); }).find("it takes [N, T, in]") != std::string::npos);
  const Node x = graph.input("x", {DType::float32, {2, 5, 3}});
  CHECK(user_error([&] {
          gru.run(x, {flat, flat});
        }).find("is given 2 states; it has 1") != std::string::npos);
}

}  // namespace plexaura::testing::recurrent_test
