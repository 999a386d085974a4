#include "app/use/generate.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <map>

#include "backends/registry.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::generate_test {

namespace {

const Vocabulary letters(TokenKind::characters, {"<unk>", "a", "b", "c"});

std::map<std::int64_t, int> counts_of(const GenerateOptions& options, const std::vector<double>& logits) {
  Random random({1});
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 4000; ++i) ++counts[drawn_token(logits, letters, options, random)];
  return counts;
}

// Continues a text with a model after which each letter is followed by the next one, a by b and c by a.
std::string continued(const GenerateOptions& options, double certainty = 50) {
  const Config config = Config::parse(
      "model: {name: convnet, task: language_model, layers: [{type: embedding, units: 4}]}\n", "x.yaml");
  const auto model = make_model(config.section("model"), Shape{3}, 4, {});
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  const auto c = static_cast<float>(certainty);
  store.write("embedding1.weight",
              Tensor::of<float>({4, 4}, {9, 0, 0, 0, 9, 0, c, 0, 9, 0, 0, c, 9, c, 0, 0}));
  NextTokenLogits next_logits(*model, store, *backend, false, options.count);
  return generated_text(options, next_logits, letters);
}

}  // namespace

TEST_CASE("tokens are drawn with their probabilities, and the unknown one never") {
  const std::vector<double> logits{100, std::log(0.5), std::log(0.3), std::log(0.2)};
  std::map<std::int64_t, int> all = counts_of({}, logits);
  CHECK(all.size() == 3);
  CHECK(all[1] == doctest::Approx(2000).epsilon(0.05));
  CHECK(all[2] == doctest::Approx(1200).epsilon(0.08));
  std::map<std::int64_t, int> two = counts_of({.top_k = 2}, logits);
  CHECK(two.size() == 2);
  CHECK(two[1] == doctest::Approx(2500).epsilon(0.05));
  std::map<std::int64_t, int> cold = counts_of({.temperature = 0.5}, logits);
  CHECK(cold[1] == doctest::Approx(4000 * 0.25 / 0.38).epsilon(0.05));
  CHECK(counts_of({.temperature = 0}, logits).size() == 1);
  CHECK(counts_of({.temperature = 0}, {0, 1, 2, 2}).begin()->first == 2);
}

TEST_CASE("logits that are not finite are refused") {
  Random random({1});
  const std::vector<double> logits{0, 1, std::numeric_limits<double>::quiet_NaN(), 2};
  CHECK(user_error([&] { drawn_token(logits, letters, {}, random); }) ==
        "the model's output is nan; the weights are of a run that diverged");
}

TEST_CASE("a text is continued from its last window") {
  CHECK(continued({.count = 7, .prompt = "a"}) == "abcabcab");
  CHECK(continued({.count = 2, .prompt = "xyzaabbcc"}) == "xyzaabbccab");
}

TEST_CASE("the seed decides what is drawn") {
  const auto text = [](std::int64_t seed) {
    return continued({.count = 20, .prompt = "a", .seed = seed}, 0);
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("a prompt has at least one character") {
  CHECK(user_error([] { continued({.count = 2, .prompt = ""}); }) ==
        "--prompt is empty, and a text is continued from at least one token; leave the option out to begin "
        "with a new "
        "line");
  CHECK(user_error([] { continued({.count = 2, .prompt = "a\xff"}); }) ==
        "--prompt: byte 2 is not a character of UTF-8; write it in UTF-8");
}

}  // namespace plexaura::testing::generate_test
