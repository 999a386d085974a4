#include "training/data/subset.h"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>

#include "tests/training/data/data_support.h"

namespace plexaura::testing::subset_test {

namespace {

// 100 samples: 60 of class 0, 30 of class 1, 10 of class 2.
std::vector<std::int64_t> uneven_labels() {
  std::vector<std::int64_t> labels(100, 0);
  std::fill(labels.begin() + 60, labels.begin() + 90, 1);
  std::fill(labels.begin() + 90, labels.end(), 2);
  return labels;
}

std::array<int, 3> count_classes(const std::vector<std::int64_t>& part) {
  std::array<int, 3> counts{};
  for (const std::int64_t index : part)
    ++counts[static_cast<std::size_t>(uneven_labels()[static_cast<std::size_t>(index)])];
  return counts;
}

std::vector<std::int64_t> merged(const std::vector<std::vector<std::int64_t>>& parts) {
  std::vector<std::int64_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return all;
}

std::vector<std::int64_t> first_hundred() {
  std::vector<std::int64_t> all(100);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return all;
}

}  // namespace

TEST_CASE("a split keeps the shares of the classes and loses nothing") {
  const std::array fractions{0.7, 0.2, 0.1};
  const auto parts = stratified_split(uneven_labels(), fractions, 1);
  REQUIRE(parts.size() == 3);
  CHECK(count_classes(parts[0]) == std::array<int, 3>{42, 21, 7});
  CHECK(count_classes(parts[1]) == std::array<int, 3>{12, 6, 2});
  CHECK(count_classes(parts[2]) == std::array<int, 3>{6, 3, 1});
  CHECK(merged(parts) == first_hundred());
  CHECK(stratified_split(uneven_labels(), fractions, 1) == parts);
  CHECK(stratified_split(uneven_labels(), fractions, 2) != parts);
}

TEST_CASE("folds are stratified, and what is left of one is all the others") {
  const auto folds = stratified_folds(uneven_labels(), 10, 4);
  for (const auto& fold : folds) CHECK(count_classes(fold) == std::array<int, 3>{6, 3, 1});
  CHECK(merged(folds) == first_hundred());
  CHECK(merged({without_fold(folds, 3), folds[3]}) == first_hundred());
}

TEST_CASE("a limit and a fraction take a stratified part") {
  CHECK(count_classes(stratified_limit(uneven_labels(), 10, 1)) == std::array<int, 3>{6, 3, 1});
  CHECK(stratified_limit(uneven_labels(), 1000, 1) == first_hundred());
  CHECK(count_classes(stratified_fraction(uneven_labels(), 0.2, 1)) == std::array<int, 3>{12, 6, 2});
  CHECK(stratified_fraction(uneven_labels(), 1e-6, 1).size() == 1);
}

TEST_CASE("impossible splits are refused") {
  CHECK_THROWS_AS(stratified_split(uneven_labels(), std::array{0.7, 0.2}, 1), UserError);
  CHECK_THROWS_AS(stratified_split(uneven_labels(), std::array{1.5, -0.5}, 1), UserError);
  CHECK_THROWS_AS(stratified_folds(uneven_labels(), 1, 1), UserError);
  CHECK_THROWS_AS(stratified_folds(uneven_labels(), 101, 1), UserError);
  CHECK_THROWS_AS(stratified_limit(uneven_labels(), 0, 1), UserError);
  CHECK_THROWS_AS(stratified_fraction(uneven_labels(), 0, 1), UserError);
  CHECK_THROWS_AS(stratified_fraction(uneven_labels(), 1.1, 1), UserError);
}

TEST_CASE("a subset reads the samples of the whole") {
  const auto whole = std::make_shared<testing::CountingDataset>(10);
  const SubsetDataset subset(whole, {7, 2});
  std::vector<float> sample(2);
  std::int64_t label = -1;
  subset.read_sample(0, {0, 4}, std::as_writable_bytes(std::span(sample)), label);
  CHECK(sample == std::vector<float>{7, 4});
  CHECK(label == 1);
  CHECK(labels_of(subset) == std::vector<std::int64_t>{1, 2});
  CHECK_THROWS_AS(SubsetDataset(whole, {10}), UserError);
}

}  // namespace plexaura::testing::subset_test
