#include "app/choices/rank_choice.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

namespace plexaura::testing::rank_choice_test {

namespace {

// Takes the largest of its numbers, and records its steps.
class LargestNumber final : public RankChoice<int> {
 public:
  LargestNumber(std::vector<int> numbers, std::string kept, bool judges_again = false)
      : numbers_(std::move(numbers)), kept_(std::move(kept)), judges_again_(judges_again) {}

  std::string steps;

 private:
  std::vector<int> candidates() override { return numbers_; }
  std::string name_of(const int& number) const override { return "number " + std::to_string(number); }
  std::string kept_name() override { return kept_; }
  bool judges_again() const override { return judges_again_; }
  int judge() override {
    steps += "judge, ";
    return std::ranges::max(numbers_);
  }
  void take(const int& number) override { steps += "take " + std::to_string(number) + ", "; }
  void keep(const std::string& name) override { steps += "keep " + name + ", "; }
  ChoiceReport report(const int& number) override {
    steps += "report " + std::to_string(number);
    return {.sentence = "chosen"};
  }

  std::vector<int> numbers_;
  std::string kept_;
  bool judges_again_;
};

std::string steps_of(LargestNumber choice) {
  choice.make();
  return choice.steps;
}

}  // namespace

TEST_CASE("choice of ranks: the best candidate is taken, kept and reported") {
  LargestNumber choice({1, 3, 2}, "");
  CHECK(choice.make().sentence == "chosen");
  CHECK(choice.steps == "judge, take 3, keep number 3, report 3");
}

TEST_CASE("choice of ranks: a kept candidate is taken without a judgement") {
  CHECK(steps_of({{1, 3, 2}, "number 2"}) == "take 2, report 2");
}

TEST_CASE("choice of ranks: a kept candidate is taken even if others are judged again") {
  CHECK(steps_of({{1, 3, 2}, "number 2", true}) == "judge, take 2, keep number 2, report 2");
}

TEST_CASE("choice of ranks: a kept name that is no candidate is ignored") {
  CHECK(steps_of({{1, 3, 2}, "number 4"}) == "judge, take 3, keep number 3, report 3");
}

TEST_CASE("choice of ranks: nothing is chosen among fewer than two candidates") {
  LargestNumber choice({1}, "number 1");
  CHECK(choice.make().sentence.empty());
  CHECK(choice.steps.empty());
}

}  // namespace plexaura::testing::rank_choice_test
