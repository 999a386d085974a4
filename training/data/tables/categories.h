#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plexaura {

// A column of words, and the words that its cells may have. Each word is a feature of its own, which is 1 in rows with
// this word and 0 in all others.
struct CategoryColumn {
  std::string name;
  // The words in the order of the features; empty: those in the file, sorted.
  std::vector<std::string> words = {};
  bool operator==(const CategoryColumn&) const = default;
};

// Returns the name of the feature of a word: "colour=red".
std::string feature_of_word(const std::string& column, const std::string& word);

// Finds the columns of a table from the names of its features. `categories` has the names of the columns of words.

// Returns the column of words that a feature was made from; null for a column of numbers.
const std::string* category_of(const std::string& feature, std::span<const std::string> categories);
// Returns the columns in the order of their features.
std::vector<std::string> table_columns(std::span<const std::string> features,
                                       std::span<const std::string> categories);
// Returns the columns of words with their words. A column without a feature has no words.
std::vector<CategoryColumn> words_of_features(std::span<const std::string> features,
                                              std::span<const std::string> categories);

// Numbers the words of a column while a file is read.
class WordNumbers {
 public:
  // `given` has the permitted words, in the order of their numbers. If it is empty, all words are permitted.
  explicit WordNumbers(std::span<const std::string> given);

  // Returns the number of a word, or nothing if it is not permitted. A new word gets the next number.
  std::optional<std::int64_t> number_of(const std::string& word);
  std::size_t size() const { return numbers_.size(); }
  // Returns the permitted words in their order. If all words are permitted, returns all that were numbered: sorted as
  // whole numbers if all are whole numbers, otherwise as text.
  std::vector<std::string> words() const;
  // Returns for each number the index of its word in words().
  std::vector<std::size_t> places() const;

 private:
  std::vector<std::string> given_;
  std::map<std::string, std::int64_t> numbers_;
};

}  // namespace plexaura
