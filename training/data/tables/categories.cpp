#include "training/data/tables/categories.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "training/data/tables/csv_cells.h"

namespace plexaura {

std::string feature_of_word(const std::string& column, const std::string& word) {
  return fmt::format("{}={}", column, word);
}

const std::string* category_of(const std::string& feature, std::span<const std::string> categories) {
  const auto found = std::ranges::find_if(categories, [&](const std::string& column) {
    return feature.size() > column.size() && feature.starts_with(column) && feature[column.size()] == '=';
  });
  return found == categories.end() ? nullptr : &*found;
}

std::vector<std::string> table_columns(std::span<const std::string> features,
                                       std::span<const std::string> categories) {
  std::vector<std::string> columns;
  for (const std::string& feature : features) {
    const std::string* const category = category_of(feature, categories);
    const std::string& column = category != nullptr ? *category : feature;
    if (category == nullptr || columns.empty() || columns.back() != column) columns.push_back(column);
  }
  return columns;
}

std::vector<CategoryColumn> words_of_features(std::span<const std::string> features,
                                              std::span<const std::string> categories) {
  std::vector<CategoryColumn> columns;
  for (const std::string& column : categories) {
    columns.push_back({column});
    for (const std::string& feature : features)
      if (category_of(feature, std::span(&column, 1)) != nullptr)
        columns.back().words.push_back(feature.substr(column.size() + 1));
  }
  return columns;
}

WordNumbers::WordNumbers(std::span<const std::string> given) : given_(given.begin(), given.end()) {
  for (const std::string& word : given) numbers_.emplace(word, std::ssize(numbers_));
}

std::optional<std::int64_t> WordNumbers::number_of(const std::string& word) {
  if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
  if (!given_.empty()) return std::nullopt;
  return numbers_.emplace(word, std::ssize(numbers_)).first->second;
}

std::vector<std::string> WordNumbers::words() const {
  if (!given_.empty()) return given_;
  std::set<std::string> found;
  for (const auto& [word, number] : numbers_) found.insert(word);
  return sorted_names(found);
}

std::vector<std::size_t> WordNumbers::places() const {
  const std::vector<std::string> sorted = words();
  std::vector<std::size_t> places(numbers_.size());
  for (std::size_t place = 0; place < sorted.size(); ++place)
    places[static_cast<std::size_t>(numbers_.at(sorted[place]))] = place;
  return places;
}

}  // namespace plexaura
