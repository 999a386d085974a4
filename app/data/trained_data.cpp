#include "app/data/trained_data.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "training/data/tables/categories.h"

namespace plexaura {

namespace {

std::string class_key(std::size_t index) { return fmt::format("data.class {}", index); }

// Returns a key in the metadata. `kind` is "column" or "target".
std::string scaled_key(std::string_view kind, std::size_t index) {
  return fmt::format("data.{} {}", kind, index);
}

void write_scaled(std::string_view kind, const std::vector<std::string>& names, const Standardisation& scale,
                  Metadata& metadata) {
  for (std::size_t i = 0; i < names.size(); ++i)
    metadata[scaled_key(kind, i)] = fmt::format("{} {} {}", scale.mean[i], scale.stddev[i], names[i]);
}

// Removes a number and the blank after it from the beginning of a text. Returns false if there is none.
bool take_number(std::string_view& text, float& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return std::isfinite(number);
}

void read_scaled(std::string_view kind, const Metadata& metadata, const std::filesystem::path& path,
                 std::vector<std::string>& names, Standardisation& scale) {
  for (auto found = metadata.find(scaled_key(kind, 0)); found != metadata.end();
       found = metadata.find(scaled_key(kind, names.size()))) {
    std::string_view text = found->second;
    float mean = 0;
    float stddev = 0;
    if (!take_number(text, mean) || !take_number(text, stddev) || !(stddev > 0))
      throw UserError(fmt::format(
          "{}: its metadata has {} '{}', which is not a mean, a deviation above 0 and a name; name another "
          "file of weights",
          path.string(), found->first, found->second));
    scale.mean.push_back(mean);
    scale.stddev.push_back(stddev);
    names.emplace_back(text);
  }
}

std::string category_key(std::size_t index) { return fmt::format("data.category {}", index); }

std::vector<std::string> read_categories(const Metadata& metadata, const std::filesystem::path& path,
                                         const std::vector<std::string>& columns) {
  std::vector<std::string> categories;
  for (auto found = metadata.find(category_key(0)); found != metadata.end();
       found = metadata.find(category_key(categories.size())))
    categories.push_back(found->second);
  for (const CategoryColumn& category : words_of_features(columns, categories))
    if (category.words.empty())
      throw UserError(
          fmt::format("{}: its metadata has the column of words '{}', but none of its words; name another "
                      "file of weights",
                      path.string(), category.name));
  return categories;
}

std::string weight_key(std::size_t index) { return fmt::format("data.class_weight {}", index); }

std::vector<double> read_class_weights(const Metadata& metadata, const std::filesystem::path& path) {
  std::vector<double> weights;
  for (auto found = metadata.find(weight_key(0)); found != metadata.end();
       found = metadata.find(weight_key(weights.size()))) {
    const std::string& text = found->second;
    const char* const text_end = text.data() + text.size();
    double weight = 0;
    const auto [end, error] = std::from_chars(text.data(), text_end, weight);
    if (error != std::errc() || end != text_end || !std::isfinite(weight) || weight <= 0)
      throw UserError(fmt::format(
          "{}: its metadata has {} '{}', which is not a number above 0; name another file of weights",
          path.string(), found->first, text));
    weights.push_back(weight);
  }
  return weights;
}

constexpr const char* tokens_key = "data.tokens";

std::string token_key(std::size_t index) { return fmt::format("data.token {}", index); }

std::optional<Vocabulary> read_vocabulary(const Metadata& metadata, const std::filesystem::path& path) {
  const auto kind_name = metadata.find(tokens_key);
  if (kind_name == metadata.end()) return std::nullopt;
  std::vector<std::string> tokens;
  for (auto found = metadata.find(token_key(0)); found != metadata.end();
       found = metadata.find(token_key(tokens.size())))
    tokens.push_back(found->second);
  for (const TokenKind kind : {TokenKind::bytes, TokenKind::characters, TokenKind::words})
    if (name_of(kind) == kind_name->second) try {
        return Vocabulary(kind, tokens);
      } catch (const UserError& error) {
        throw UserError(fmt::format("{}: its metadata has {}", path.string(), error.what()));
      }
  throw UserError(
      fmt::format("{}: its metadata has {} '{}', which is no kind of token; name another file of weights",
                  path.string(), tokens_key, kind_name->second));
}

bool are_equal(const Standardisation& a, const Standardisation& b) {
  return a.mean == b.mean && a.stddev == b.stddev;
}

}  // namespace

bool operator==(const TrainedData& a, const TrainedData& b) {
  return a.columns == b.columns && a.categories == b.categories && are_equal(a.scale, b.scale) &&
         a.classes == b.classes && a.targets == b.targets && are_equal(a.target_scale, b.target_scale) &&
         a.class_weights == b.class_weights && a.vocabulary == b.vocabulary;
}

Metadata to_metadata(const TrainedData& data) {
  Metadata metadata;
  write_scaled("column", data.columns, data.scale, metadata);
  for (std::size_t i = 0; i < data.categories.size(); ++i) metadata[category_key(i)] = data.categories[i];
  write_scaled("target", data.targets, data.target_scale, metadata);
  for (std::size_t i = 0; i < data.classes.size(); ++i) metadata[class_key(i)] = data.classes[i];
  for (std::size_t i = 0; i < data.class_weights.size(); ++i)
    metadata[weight_key(i)] = fmt::format("{}", data.class_weights[i]);
  if (!data.vocabulary) return metadata;
  metadata[tokens_key] = name_of(data.vocabulary->kind());
  const std::vector<std::string>& tokens = data.vocabulary->tokens();
  for (std::size_t i = 0; i < tokens.size(); ++i) metadata[token_key(i)] = tokens[i];
  return metadata;
}

std::optional<TrainedData> trained_data_in(const Metadata& metadata, const std::filesystem::path& path) {
  TrainedData data;
  read_scaled("column", metadata, path, data.columns, data.scale);
  data.categories = read_categories(metadata, path, data.columns);
  read_scaled("target", metadata, path, data.targets, data.target_scale);
  for (auto found = metadata.find(class_key(0)); found != metadata.end();
       found = metadata.find(class_key(data.classes.size())))
    data.classes.push_back(found->second);
  data.vocabulary = read_vocabulary(metadata, path);
  if (data.classes.empty() && data.targets.empty() && !data.vocabulary) return std::nullopt;
  data.class_weights = read_class_weights(metadata, path);
  return data;
}

void check_vocabulary(const Metadata& weights, const std::filesystem::path& path, const Metadata& data) {
  const std::optional<Vocabulary> now = read_vocabulary(data, path);
  if (!now) return;
  const std::optional<Vocabulary> trained = read_vocabulary(weights, path);
  if (trained && *trained != *now)
    throw UserError(fmt::format(
        "{} has weights of {} {}, and the text has {} {}, of which at least one is another; "
        "train on the same text, or set "
        "data.tokens to bytes in both runs",
        path.string(), trained->size(), name_of(trained->kind()), now->size(), name_of(now->kind())));
}

}  // namespace plexaura
