#include "app/use/next_token_logits.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "app/use/generate.h"
#include "backends/registry.h"

namespace plexaura::testing::next_token_logits_test {

namespace {

constexpr std::int64_t window = 8;
constexpr std::int64_t tokens = 5;

struct LanguageModel {
  Config config;
  std::unique_ptr<Model> model;
  std::shared_ptr<Backend> backend = open_backend("cpu");
  ParameterStore store;
  Predictor whole;

  explicit LanguageModel(const std::string& layers, DType dtype = DType::float32)
      : config(Config::parse(
            "model: {name: convnet, task: language_model, layers: [{type: embedding, units: 8}, " + layers +
                ", {type: linear}]}\n",
            "x.yaml")),
        model(make_model(config.section("model"), Shape{window}, tokens, {})),
        store(make_store(*model, dtype, 1)),
        whole([this](const Node& x) { return (*model)(x); }, store, *backend) {}

  // Returns the logits of the token after a text that fits into the window, from the whole window.
  std::vector<double> of_window(std::span<const std::int32_t> text) {
    Tensor samples(TensorType{DType::int64, {1, window}});
    std::ranges::fill(samples.as<std::int64_t>(), 3);
    std::ranges::copy(text, samples.as<std::int64_t>().begin());
    const std::vector<double> all = whole(samples).to_doubles();
    const auto last = all.begin() + (std::ssize(text) - 1) * tokens;
    return {last, last + tokens};
  }
};

const std::vector<std::string>& incremental_nets() {
  static const std::vector<std::string> nets{
      "{type: positions}, {type: transformer_encoder, heads: 2, feedforward: 16, depth: 2, norm_first: true, "
      "causal: true}",
      "{type: residual, layers: [{type: transformer_encoder, heads: 4, causal: true}], activation: none}, "
      "{type: "
      "layer_norm}",
      "{type: lstm, units: 7, depth: 2}", "{type: gru, units: 7}, {type: rnn, units: 4}, {type: gelu}"};
  return nets;
}

// Checks the logits after each beginning of a text that is longer than the window, with `prompt` tokens in the first call.
void check_growing(LanguageModel& net, std::size_t prompt, double tolerance) {
  const std::vector<std::int32_t> text{1, 4, 0, 2, 2, 1, 3, 4, 1, 3, 0};
  NextTokenLogits next(*net.model, net.store, *net.backend, false, window);
  for (std::size_t length = prompt; length <= text.size(); ++length) {
    CAPTURE(length);
    const std::span beginning = std::span(text).first(length);
    const std::vector<double> found = next(beginning);
    const std::vector<double> expected =
        net.of_window(beginning.last(std::min(length, static_cast<std::size_t>(window))));
    REQUIRE(found.size() == tokens);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("the logits after a text that grows are those of its last window") {
  for (const std::string& layers : incremental_nets()) {
    CAPTURE(layers);
    for (const std::size_t prompt : {1, 3, 8, 10}) {
      CAPTURE(prompt);
      LanguageModel net(layers);
      check_growing(net, prompt, 1e-5);
      LanguageModel exact(layers, DType::float64);
      check_growing(exact, prompt, 1e-12);
    }
  }
}

TEST_CASE("mixed precision has the same logits as in a whole window, but for the rounding of bfloat16") {
  for (const std::string& layers : incremental_nets()) {
    CAPTURE(layers);
    LanguageModel net(layers);
    net.store.set_types(ArenaTypes::mixed(DType::bfloat16));
    check_growing(net, 2, 0.03);
  }
}

TEST_CASE("each position of a text is computed once, until the text is longer than the window") {
  for (const std::string& layers : incremental_nets()) {
    CAPTURE(layers);
    LanguageModel net(layers);
    NextTokenLogits next(*net.model, net.store, *net.backend, false, window);
    std::vector<std::int32_t> text{1, 2, 3};
    for (; std::ssize(text) <= window; text.push_back(1)) {
      next(text);
      CHECK(next.computed_positions() == std::ssize(text));
    }
    next(text);
    CHECK(next.computed_positions() == window + window);
  }
}

TEST_CASE("a first text that is long for the number of calls is read in whole windows") {
  LanguageModel net(incremental_nets()[0]);
  const std::vector<std::int32_t> text{1, 4, 0, 2, 2, 1, 3};
  NextTokenLogits by_token(*net.model, net.store, *net.backend, false, 7);
  by_token(text);
  CHECK(by_token.computed_positions() == 7);
  NextTokenLogits in_windows(*net.model, net.store, *net.backend, false, 6);
  CHECK(in_windows(text) == net.of_window(text));
  CHECK(in_windows.computed_positions() == window);
}

TEST_CASE("a text that has not grown is an error of the caller") {
  LanguageModel net(incremental_nets()[0]);
  NextTokenLogits next(*net.model, net.store, *net.backend, false, 2);
  const std::vector<std::int32_t> text{1, 4};
  CHECK_THROWS_AS(next({}), InternalError);
  next(text);
  CHECK_THROWS_AS(next(text), InternalError);
}

TEST_CASE("the values with which weights started are not read again") {
  LanguageModel net(incremental_nets()[0]);
  int reads = 0;
  std::vector<ParameterSpec> specs = specs_of(*net.model, DType::float32);
  const TensorType type = specs[0].type;
  specs[0].initialiser = Initialiser::given([&reads, type] {
    ++reads;
    return Tensor(type);
  });
  const ParameterStore weights(std::move(specs), 1);
  const NextTokenLogits next(*net.model, weights, *net.backend, false, 2);
  CHECK(reads == 1);
}

TEST_CASE("the weights stay as they are") {
  LanguageModel net(incremental_nets()[0]);
  const std::vector<double> before = net.store.read("encoder1.layers.0.linear1.weight").to_doubles();
  check_growing(net, 2, 1e-5);
  CHECK(net.store.read("encoder1.layers.0.linear1.weight").to_doubles() == before);
  CHECK(net.store.specs().size() == specs_of(*net.model, DType::float32).size());
}

TEST_CASE("a text is continued with the tokens that follow from whole windows") {
  const Vocabulary letters(TokenKind::characters, {"<unk>", "a", "b", "c", "d"});
  for (const std::string& layers : incremental_nets()) {
    CAPTURE(layers);
    for (const double temperature : {0.0, 1.0}) {
      const GenerateOptions options{.count = 8, .prompt = "ab", .temperature = temperature, .seed = 3};
      LanguageModel net(layers);
      std::string expected = options.prompt;
      Random random({static_cast<std::uint64_t>(options.seed)});
      for (std::int64_t i = 0; i < options.count; ++i) {
        const std::vector<std::int32_t> text = letters.encode(expected);
        const std::size_t seen = std::min(text.size(), static_cast<std::size_t>(window));
        expected +=
            letters.text_of(drawn_token(net.of_window(std::span(text).last(seen)), letters, options, random));
      }
      NextTokenLogits next_logits(*net.model, net.store, *net.backend, false, options.count);
      CHECK(generated_text(options, next_logits, letters) == expected);
    }
  }
}

}  // namespace plexaura::testing::next_token_logits_test
