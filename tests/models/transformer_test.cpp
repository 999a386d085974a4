#include "models/layers/transformer.h"

#include <cmath>
#include <doctest/doctest.h>
#include <iterator>

#include "core/vm/function.h"
#include "tests/models/plain_layers.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::transformer_test {

namespace {

constexpr std::int64_t samples = 2, length = 3, steps = 4, width = 4, heads = 2, hidden = 5;

bool always(std::size_t, std::size_t) { return true; }
bool before(std::size_t query, std::size_t key) { return key <= query; }

layers::TransformerOptions options_of(bool norm_first) {
  return {.feedforward = hidden, .activation = norm_first ? "gelu" : "relu", .norm_first = norm_first};
}

// The layers of a transformer in plain loops.
class Plain {
 public:
  Plain(const ParameterStore& store, bool norm_first) : layers_(store), norm_first_(norm_first) {}

  PlainRows encoded(const PlainRows& x, const std::string& name, const PlainLayers::Permits& permits) const {
    const PlainRows y = added(x, name + "norm1", [&](const PlainRows& input) {
      return layers_.attention(input, input, name + "self_attn.", heads, permits);
    });
    return fed_forward(y, name, name + "norm2");
  }

  PlainRows decoded(const PlainRows& target, const PlainRows& memory, const std::string& name) const {
    const PlainRows attended = added(target, name + "norm1", [&](const PlainRows& input) {
      return layers_.attention(input, input, name + "self_attn.", heads, before);
    });
    const PlainRows informed = added(attended, name + "norm2", [&](const PlainRows& input) {
      return layers_.attention(input, memory, name + "multihead_attn.", heads, always);
    });
    return fed_forward(informed, name, name + "norm3");
  }

  PlainRows normalised(const PlainRows& x, const std::string& name) const {
    return layers_.layer_norm(x, name);
  }

 private:
  template <class Part>
  PlainRows added(const PlainRows& x, const std::string& norm, const Part& part) const {
    if (norm_first_) return sum_of(x, part(layers_.layer_norm(x, norm)));
    return layers_.layer_norm(sum_of(x, part(x)), norm);
  }

  PlainRows fed_forward(const PlainRows& x, const std::string& name, const std::string& norm) const {
    return added(x, norm, [&](const PlainRows& input) {
      PlainRows inner = layers_.linear(input, name + "linear1", hidden);
      for (double& value : inner.values) value = activated(value);
      return layers_.linear(inner, name + "linear2", width);
    });
  }

  // gelu with the norm first, otherwise relu.
  double activated(double x) const {
    return norm_first_ ? x / 2 * (1 + std::erf(x / std::sqrt(2.0))) : std::max(x, 0.0);
  }

  PlainLayers layers_;
  bool norm_first_;
};

// Checks each sample of `found` against `expected`, which gets the number of a sample.
template <class Expected>
void check_samples(const Tensor& found, const Expected& expected) {
  std::vector<double> values;
  for (std::size_t n = 0; n < samples; ++n) {
    const PlainRows rows = expected(n);
    values.insert(values.end(), rows.values.begin(), rows.values.end());
  }
  check_close(found, values, 1e-11);
}

const Tensor& target_values() {
  static const Tensor values = pattern({samples, length, width}, 7);
  return values;
}
const Tensor& memory_values() {
  static const Tensor values = pattern({samples, steps, width}, 5, 1);
  return values;
}

}  // namespace

TEST_CASE("a transformer's encoder layer computes what its formula says") {
  for (const bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    layers::TransformerEncoderLayer layer(width, heads, options_of(norm_first));
    ParameterStore store = make_store(layer, DType::float64);
    fill_with_patterns(store);
    Graph graph(Mode::inference);
    const Node x = graph.input("x", target_values().type());
    const auto results =
        run_graph(graph, store, {layer(x), layer(x, {.is_causal = true})}, {{"x", target_values()}});
    const Plain plain(store, norm_first);
    check_samples(results[0],
                  [&](std::size_t n) { return plain.encoded(sample_of(target_values(), n), "", always); });
    check_samples(results[1],
                  [&](std::size_t n) { return plain.encoded(sample_of(target_values(), n), "", before); });
  }
}

TEST_CASE("a transformer's decoder layer computes what its formula says") {
  for (const bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    layers::TransformerDecoderLayer layer(width, heads, options_of(norm_first));
    ParameterStore store = make_store(layer, DType::float64);
    fill_with_patterns(store);
    Graph graph(Mode::inference);
    const Node y = layer(graph.input("target", target_values().type()),
                         graph.input("memory", memory_values().type()), {.self = {.is_causal = true}});
    const auto results =
        run_graph(graph, store, {y}, {{"target", target_values()}, {"memory", memory_values()}});
    check_samples(results[0], [&](std::size_t n) {
      return Plain(store, norm_first)
          .decoded(sample_of(target_values(), n), sample_of(memory_values(), n), "");
    });
  }
}

TEST_CASE("a transformer is an encoder and a decoder with a norm at the end of each, named as in PyTorch") {
  layers::Transformer model(width, heads, {.encoder_layers = 2, .decoder_layers = 1}, options_of(true));
  ParameterStore store = make_store(model, DType::float64);
  fill_with_patterns(store);
  Graph graph(Mode::inference);
  const Node source = graph.input("source", memory_values().type());
  const Node target = graph.input("target", target_values().type());
  const layers::DecoderMasks of_target{.self = {.is_causal = true}};
  const Node y = model(source, target, {.source = {.is_causal = true}, .target = of_target});
  const Node in_parts = model.decode(target, model.encode(source, {.is_causal = true}), of_target);
  const auto results =
      run_graph(graph, store, {y, in_parts}, {{"target", target_values()}, {"source", memory_values()}});
  CHECK(results[0] == results[1]);
  const Plain plain(store, true);
  check_samples(results[0], [&](std::size_t n) {
    PlainRows encoded = sample_of(memory_values(), n);
    for (const char* name : {"encoder.layers.0.", "encoder.layers.1."})
      encoded = plain.encoded(encoded, name, before);
    encoded = plain.normalised(encoded, "encoder.norm");
    PlainRows decoded = sample_of(target_values(), n);
    decoded = plain.decoded(decoded, encoded, "decoder.layers.0.");
    return plain.normalised(decoded, "decoder.norm");
  });
}

TEST_CASE("an encoder with a cache computes position by position what it computes for whole sequences") {
  layers::TransformerEncoder encoder{2, width, heads, options_of(true), layers::LayerNorm(width)};
  struct Caches : Module {
    std::vector<layers::AttentionCache> layers;
    void members(MemberVisitor& visit) override { visit("layers", layers); }
  } caches;
  for (int i = 0; i < 2; ++i) caches.layers.emplace_back(samples, length, width, heads);
  std::vector<ParameterSpec> specs = specs_of(encoder, DType::float64);
  std::ranges::copy(specs_of(caches, DType::float64, "cache"), std::back_inserter(specs));
  ParameterStore store(specs, 1);
  Graph whole(Mode::inference);
  const Node all = whole.input("x", target_values().type());
  Function of_whole(whole, {all}, {encoder(all, {.is_causal = true})}, test_backend(), &store);
  const std::vector<double> expected = of_whole(target_values())[0].to_doubles();

  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float64, {samples, 1, width}});
  const Node position = graph.input("position", {DType::int64, {}});
  Function of_next(graph, {x, position}, {encoder.next(x, caches.layers, position)}, test_backend(), &store);
  const auto row = [&](const std::vector<double>& values, std::int64_t t) {
    std::vector<double> found;
    for (std::int64_t n = 0; n < samples; ++n)
      found.insert(found.end(), &values[(n * length + t) * width], &values[(n * length + t) * width] + width);
    return found;
  };
  for (int sequence = 0; sequence < 2; ++sequence)
    for (std::int64_t t = 0; t < length; ++t) {
      const Tensor given = Tensor::of({samples, 1, width}, row(target_values().to_doubles(), t));
      check_close(of_next(given, Tensor::scalar(t))[0], row(expected, t), 1e-12);
    }
  const Tensor given = Tensor::of({samples, 1, width}, row(target_values().to_doubles(), 0));
  for (const std::int64_t outside : {std::int64_t{-1}, length})
    CHECK(std::isnan(of_next(given, Tensor::scalar(outside))[0].to_doubles()[0]));
  const Node two = graph.input("two", {DType::float64, {samples, 2, width}});
  CHECK(user_error([&] { encoder.next(two, caches.layers, position); })
            .ends_with(
                "attention with a cache [2,2,3,2] is given float64[2,2,4]; it takes one position of each "
                "sequence of the cache"));
  CHECK(user_error([&] { encoder.next(x, {}, position); }) ==
        "an encoder of 2 layers is given 0 caches; give one for each layer");
}

TEST_CASE("dropout of a transformer acts in training alone") {
  layers::TransformerEncoderLayer layer(width, heads, {.feedforward = hidden, .dropout = 0.5});
  specs_of(layer, DType::float32);
  const auto drops = [&](Mode mode) {
    Graph graph(mode);
    layer(graph.input("x", {DType::float32, {samples, length, width}}));
    int count = 0;
    for (NodeId id = 0; id < graph.size(); ++id) count += graph.record(id).op->name() == "dropout";
    return count;
  };
  CHECK(drops(Mode::train) == 4);
  CHECK(drops(Mode::inference) == 0);
}

TEST_CASE("a transformer without layers is refused") {
  CHECK(user_error([] { layers::TransformerEncoder(0, 4, 2); }) ==
        "a transformer cannot have 0 layers; give 1 or more");
  CHECK(user_error([] { layers::TransformerDecoderLayer(4, 2, {.activation = "rellu"}); }) ==
        "there is no activation 'rellu'; did you mean 'relu'?");
}

}  // namespace plexaura::testing::transformer_test
