#include "models/zoo/model_kind.h"

#include <doctest/doctest.h>

#include "models/zoo/mlp.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::model_kind_test {

namespace {

struct Widths {
  std::int64_t first = 4;
};

std::vector<Key> widths_keys(Widths& widths) {
  return {{.name = "first", .into = &widths.first, .range = {.minimum = 1}, .meaning = "the first width"}};
}

ModelKind one_hidden() {
  return model_kind(widths_keys, [](ModelInfo info, const Widths& widths, const Section& yaml) {
    if (widths.first == 13) throw yaml.error("first", "is 13, which this model does not like");
    return std::make_unique<Mlp>(std::move(info), MlpOptions{.hidden = {widths.first}});
  });
}

// Registers "one_hidden", which stays registered for all tests of this program.
void register_once() {
  static const bool is_done = (register_model("one_hidden", one_hidden()), true);
  (void)is_done;
}

std::string error_of(const std::string& yaml) {
  return user_error([&] {
    const Config config = Config::parse(yaml, "x.yaml");
    make_model(config, Shape{4}, 3);
    config.check_all_used();
  });
}

}  // namespace

TEST_CASE("a model that is registered is made from YAML as those of the library are") {
  register_once();
  const Config config = Config::parse("model: {name: one_hidden, first: 7}", "x.yaml");
  const auto model = make_model(config, Shape{4}, 3);
  config.check_all_used();
  CHECK(specs_of(*model, DType::float32)[0].type.shape == Shape{7, 4});
  CHECK(model->info().origin.file == "x.yaml");
}

TEST_CASE("its keys are checked with line and column, and described") {
  register_once();
  CHECK(error_of("model: {name: one_hidden, first: 13}").starts_with("x.yaml:1:34"));
  CHECK(error_of("model: {name: one_hidden, first: 0}").find("model.first") != std::string::npos);
  CHECK(error_of("model: {name: one_hidden, hidden: [3]}").find("unknown key 'hidden' in model") !=
        std::string::npos);
  const std::vector<KeyText> texts = model_key_texts();
  const auto found = std::ranges::find(texts, "model.first", &KeyText::path);
  REQUIRE(found != texts.end());
  CHECK(found->needs == "only with name one_hidden");
  CHECK(found->otherwise == "4");
}

TEST_CASE("a name is given once") {
  CHECK(user_error([] { register_model("mlp", one_hidden()); }) ==
        "register_model('mlp'): there is a model with this name; take another");
  CHECK(user_error([] { register_model("empty", {}); }).find("needs a name and both functions") !=
        std::string::npos);
}

}  // namespace plexaura::testing::model_kind_test
