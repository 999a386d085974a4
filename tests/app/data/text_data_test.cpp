#include "app/data/text_data.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/data/open_data.h"
#include "app/data/prediction_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/text/token_windows.h"

namespace plexaura::testing::text_data_test {

namespace {

Config config_of(const TemporaryFolder& folder, const std::string& path, const std::string& keys,
                 const std::string& model = "task: language_model") {
  return Config::parse(fmt::format("model: {{{}}}\ndata: {{format: text, path: {}, {}}}\n", model,
                                   (folder / path).string(), keys),
                       "test.yaml");
}

RunData open(const TemporaryFolder& folder, const std::string& path, const std::string& keys,
             const std::optional<TrainedData>& trained = {}) {
  const Config config = config_of(folder, path, keys);
  RunData data = open_data(config, trained);
  config.check_all_used();
  return data;
}

RunData open_file(const std::string& text, const std::string& keys,
                  const std::optional<TrainedData>& trained = {}) {
  const TemporaryFolder folder;
  folder.write("t.txt", text);
  return open(folder, "t.txt", keys, trained);
}

// Returns the text of all windows that follow each other.
std::string text_of(const SampleSource& windows, const Vocabulary& vocabulary) {
  std::string text;
  const auto length = static_cast<std::size_t>(windows.fields()[0].type.shape[0]);
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    std::vector<std::int64_t> tokens(length);
    std::vector<std::int64_t> targets(length);
    windows.read_fields(
        i, {},
        std::vector{std::as_writable_bytes(std::span(tokens)), std::as_writable_bytes(std::span(targets))});
    if (i == 0) text += vocabulary.text_of(tokens[0]);
    for (const std::int64_t target : targets)
      if (target != no_target) text += vocabulary.text_of(target);
  }
  return text;
}

}  // namespace

TEST_CASE("the end of each file is for validation") {
  const TemporaryFolder folder;
  folder.write("b/x.txt", "0123456789");
  folder.write("a.txt", "abcdefghi\xc3\xa4");
  folder.write("c.md", "not read");
  const RunData data = open(folder, "", "sequence_length: 3, minimum_count: 1, validation_share: 0.2");
  const Vocabulary& vocabulary = *data.trained.vocabulary;
  CHECK(vocabulary.size() == 17);
  CHECK(text_of(*data.train, vocabulary) == "abcdefgh01234567");
  CHECK(text_of(*data.validation, vocabulary) == "<unk><unk><unk><unk>");
  CHECK(data.is_cut);
  CHECK(data.output_count() == 17);
  CHECK(data.kind_of_outputs() == std::string("tokens"));
  CHECK(data.sample() == TensorType{DType::int64, {3}});
  CHECK(
      data.description.starts_with("5 windows of 3 tokens, 1 for validation, from a text of 20 tokens in "));
  CHECK(open(folder, "", "extension: .md, sequence_length: 3, minimum_count: 1, validation_share: 0")
            .train->size() == 3);
}

TEST_CASE("a text of its own may be for validation") {
  const TemporaryFolder folder;
  folder.write("t.txt", "abcabcabc");
  folder.write("v/1.txt", "ab");
  folder.write("v/2.txt", "ca");
  const RunData data =
      open(folder, "t.txt", "sequence_length: 2, validation_path: " + (folder / "v").string());
  CHECK(text_of(*data.train, *data.trained.vocabulary) == "abcabcabc");
  CHECK(text_of(*data.validation, *data.trained.vocabulary) == "abca");
  CHECK(!data.is_cut);
}

TEST_CASE("windows may overlap, and only some of them may be used") {
  const std::string text(100, 'a');
  const auto count = [&](const std::string& keys) {
    const RunData data = open_file(text, "sequence_length: 10, validation_share: 0.2, " + keys);
    return std::pair{data.train->size(), data.validation->size()};
  };
  CHECK(count("tokens: bytes") == std::pair<std::int64_t, std::int64_t>{8, 2});
  CHECK(count("stride: 5") == std::pair<std::int64_t, std::int64_t>{15, 2});
  CHECK(count("limit: 3") == std::pair<std::int64_t, std::int64_t>{3, 2});
  CHECK(count("use_fraction: 0.5") == std::pair<std::int64_t, std::int64_t>{4, 2});
  CHECK(count("validation_limit: 1") == std::pair<std::int64_t, std::int64_t>{8, 1});
  CHECK(count("validation_limit: 0") == std::pair<std::int64_t, std::int64_t>{10, 0});
  CHECK(open_file(text, "sequence_length: 10, validation_share: 0").validation->size() == 0);
}

TEST_CASE("a trained model reads a text with its own vocabulary") {
  const RunData trained = open_file("abababababababababab", "sequence_length: 2");
  const RunData other = open_file("aabc", "sequence_length: 3, validation_share: 0.5", trained.trained);
  CHECK(other.trained == trained.trained);
  CHECK(text_of(*other.validation, *trained.trained.vocabulary) == "b<unk>");
  CHECK(text_of(*open_file("aabc", "sequence_length: 3, validation_share: 1", trained.trained).validation,
                *trained.trained.vocabulary) == "aab<unk>");
  CHECK(user_error([&] { open_file("ab", "sequence_length: 2, tokens: words", trained.trained); })
            .ends_with(
                "data.tokens is words, and the weights are of a model of characters; set it to characters"));
  CHECK(user_error([&] {
          open_file("ab", "sequence_length: 2", TrainedData{{"rose", "tulip"}});
        }).find("the weights are of a model that was not trained on a text") != std::string::npos);
}

TEST_CASE("a resumed run has the same text, split, windows and tokens") {
  const std::string text = "abcabcabcabcabcabcabcabc";
  const auto origin = [&](const std::string& keys, const std::string& of) {
    return open_file(of, keys).origin;
  };
  const std::uint64_t before = origin("sequence_length: 4", text);
  CHECK(origin("sequence_length: 4", text) == before);
  CHECK(origin("sequence_length: 5", text) != before);
  CHECK(origin("sequence_length: 4, stride: 3", text) != before);
  CHECK(origin("sequence_length: 4, validation_share: 0.2", text) != before);
  CHECK(origin("sequence_length: 4", "b" + text.substr(1)) != before);
}

TEST_CASE("a text that cannot be used is refused in a sentence") {
  const auto refusal = [](const std::string& text, const std::string& keys) {
    return user_error([&] { open_file(text, keys); });
  };
  const std::string length = "sequence_length: 4";
  for (const char* tokens : {"", ", tokens: bytes"})
    CHECK(refusal("", length + tokens).ends_with("t.txt' is empty; name a text with tokens"));
  CHECK(refusal("abab", length + ", validation_share: 0").find("has 4 tokens to train on") !=
        std::string::npos);
  CHECK(refusal("abcd", length + ", validation_share: 0")
            .ends_with("data.minimum_count is 2, and no token of the text occurs so often; give a smaller "
                       "number"));
  CHECK(refusal("abab", length + ", validation_share: 0.9")
            .ends_with(
                "data.validation_share is 0.9, which leaves no token to train on; give a smaller share"));
  CHECK(
      refusal("ababababababa\xff", length)
          .ends_with(
              "t.txt: byte 14 is not a character of UTF-8; convert the file, for example with iconv, or set "
              "data.tokens to bytes"));
  CHECK(refusal("ababababababa\xff", length + ", tokens: bytes, validation_share: 0.2").empty());
  CHECK(
      refusal("abababab", length + ", validation_share: 0.01")
          .ends_with(
              "data.validation_share is 0.01, which leaves fewer than 2 tokens for validation; give a larger "
              "share, or 0"));
  CHECK(refusal("abababab", length + ", stride: 5").find("data.stride is '5'") != std::string::npos);
  CHECK(refusal("abababab", length + ", minimum_count: 3, tokens: bytes")
            .find("data.minimum_count has no effect") != std::string::npos);
  CHECK(refusal("abababab", length + ", validation_share: 0.5, validation_path: x")
            .find("data.validation_share and validation_path are both given") != std::string::npos);
  const TemporaryFolder folder;
  folder.write("a.md", "abab");
  CHECK(user_error([&] { open(folder, "", length); })
            .find("contains no file whose name ends with '.txt'; name another folder, or give the end of the "
                  "names in "
                  "data.extension") != std::string::npos);
  CHECK(user_error([&] { open_data(config_of(folder, "a.md", length, "task: classification")); })
            .ends_with("data.format is text, and model.task is classification; set model.task to "
                       "language_model, or name "
                       "the format of other data"));
  CHECK(user_error([&] {
          open_data(
              Config::parse("model: {task: language_model}\ndata: {format: csv, path: x}\n", "test.yaml"));
        })
            .ends_with(
                "data.format is csv, and model.task is language_model; set it to text, or set another task"));
}

TEST_CASE("texts are continued without reading one, and --predict is refused") {
  const TemporaryFolder folder;
  const RunData trained = open_file("abababababababababab", "sequence_length: 2");
  const RunData data = data_to_generate(config_of(folder, "none", "sequence_length: 7"), trained.trained);
  CHECK(data.trained == trained.trained);
  CHECK(data.sample() == TensorType{DType::int64, {7}});
  CHECK(data.train->size() == 0);
  CHECK(user_error([&] {
          data_to_generate(config_of(folder, "none", "sequence_length: 7"), {});
        }).find("the weights are of a model that was not trained on a text") != std::string::npos);
  CHECK(user_error([&] {
          data_to_generate(config_of(folder, "none", "sequence_length: 7", "task: regression"),
                           trained.trained);
        }).ends_with("model.task is regression, and --generate continues a text; it needs language_model"));
  CHECK(user_error([&] { prediction_data(config_of(folder, "none", "sequence_length: 7"), trained.trained); })
            .ends_with("data.format is text, and --predict reads tables (csv) and images (image_folder, "
                       "idx); --generate "
                       "continues a text"));
}

}  // namespace plexaura::testing::text_data_test
