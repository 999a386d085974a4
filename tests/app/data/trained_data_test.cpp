#include "app/data/trained_data.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::trained_data_test {

namespace {

const TrainedData table{
    {"x", "17", "two words"}, {"width", "", "a b"}, {{0.1F, -3e38F, 1e-40F}, {1.0F / 3, 1, 16777216}}};

}  // namespace

TEST_CASE("what weights say of their data is read again exactly") {
  const Metadata metadata = to_metadata(table);
  CHECK(metadata.at("data.column 0") == "0.1 0.33333334 width");
  CHECK(metadata.at("data.class 2") == "two words");
  const auto again = trained_data_in(metadata, "weights");
  REQUIRE(again);
  CHECK(*again == table);
  const TrainedData images{{"rose", "tulip"}};
  CHECK(trained_data_in(to_metadata(images), "weights") == images);
  CHECK(!trained_data_in({{"setting.model.name", "mlp"}}, "weights"));
  const TrainedData regression{
      {}, {"x"}, {{0.5F}, {2}}, {"height", "body mass"}, {{170, -0.1F}, {1.0F / 3, 1}}};
  CHECK(to_metadata(regression).at("data.target 1") == "-0.1 1 body mass");
  CHECK(trained_data_in(to_metadata(regression), "weights") == regression);
  TrainedData weighted = images;
  weighted.class_weights = {1.0 / 3, 2.5};
  CHECK(to_metadata(weighted).at("data.class_weight 1") == "2.5");
  CHECK(trained_data_in(to_metadata(weighted), "weights") == weighted);
  TrainedData text;
  text.vocabulary = Vocabulary(TokenKind::words, {"<unk>", "\n", " a"});
  CHECK(to_metadata(text).at("data.tokens") == "words");
  CHECK(to_metadata(text).at("data.token 2") == " a");
  CHECK(trained_data_in(to_metadata(text), "weights") == text);
  text.vocabulary = Vocabulary();
  CHECK(trained_data_in(to_metadata(text), "weights") == text);
}

TEST_CASE("data that differ in one thing are not equal") {
  TrainedData other = table;
  other.columns[1] = "b";
  CHECK(!(other == table));
  other = table;
  other.scale.mean[0] = 0.2F;
  CHECK(!(other == table));
  other = table;
  other.scale.stddev[2] = 2;
  CHECK(!(other == table));
  other = table;
  other.targets = {"y"};
  CHECK(!(other == table));
  other = table;
  other.target_scale.mean = {1};
  CHECK(!(other == table));
  other = table;
  other.class_weights = {1, 1, 1};
  CHECK(!(other == table));
  other = table;
  other.classes.pop_back();
  CHECK(!(other == table));
  other = table;
  other.vocabulary = Vocabulary();
  CHECK(!(other == table));
}

TEST_CASE("a vocabulary that cannot be one is refused") {
  CHECK(user_error([] {
          trained_data_in({{"data.tokens", "letters"}}, "w");
        }) ==
        "w: its metadata has data.tokens 'letters', which is no kind of token; name another file of weights");
  CHECK(user_error([] {
          trained_data_in({{"data.tokens", "words"}}, "w");
        }).starts_with("w: its metadata has a vocabulary of no tokens; "));
}

TEST_CASE("a weight of a class that is no number above 0 is refused") {
  for (const char* text : {"", "0", "-1", "1 2", "x", "nan", "inf"})
    CHECK(user_error([&] {
            trained_data_in({{"data.class 0", "a"}, {"data.class_weight 0", text}}, "old.safetensors");
          }) == std::string("old.safetensors: its metadata has data.class_weight 0 '") + text +
                    "', which is not a number above 0; name another file of weights");
}

TEST_CASE("a column that is told wrongly is refused") {
  for (const char* text : {"", "1", "1 2", "one 2 x", "1 0 x", "1 -2 x", "nan 2 x", "1 inf x", "1,5 2 x"})
    CHECK(user_error([&] {
            trained_data_in({{"data.column 0", text}}, "old.safetensors");
          }) == std::string("old.safetensors: its metadata has data.column 0 '") + text +
                    "', which is not a mean, a deviation above 0 and a name; name another file of weights");
  CHECK(trained_data_in({{"data.column 0", "1 2 "}, {"data.class 0", "x"}}, "weights")->columns ==
        std::vector<std::string>{""});
}

TEST_CASE("weights of other tokens are refused") {
  TrainedData text;
  text.vocabulary = Vocabulary(TokenKind::words, {"<unk>", "a"});
  const Metadata now = to_metadata(text);
  check_vocabulary(now, "w", now);
  check_vocabulary({}, "w", now);
  check_vocabulary(now, "w", to_metadata(table));
  TrainedData other;
  other.vocabulary = Vocabulary(TokenKind::words, {"<unk>", "b"});
  CHECK(user_error([&] { check_vocabulary(to_metadata(other), "w", now); }) ==
        "w has weights of 2 words, and the text has 2 words, of which at least one is another; train on the "
        "same text, or "
        "set data.tokens to bytes in both runs");
}

}  // namespace plexaura::testing::trained_data_test
