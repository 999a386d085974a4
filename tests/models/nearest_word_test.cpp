#include "models/nearest_word.h"

#include <doctest/doctest.h>
#include <vector>

using plexaura::nearest_word;

TEST_CASE("the nearest word is one added, removed, changed or exchanged letter away") {
  const std::vector<std::string> words{"learning_rate", "epochs", "lr"};
  for (const char* typo : {"learning_rat", "learning_ratee", "learnin_grate", "learninG_rate"})
    CHECK(nearest_word(typo, words) == "learning_rate");
  CHECK(nearest_word("epoch", words) == "epochs");
  CHECK(nearest_word("lt", words) == "lr");
}

TEST_CASE("what is too far away is no word meant") {
  const std::vector<std::string> words{"learning_rate", "epochs", "lr"};
  CHECK(!nearest_word("batch", words));
  CHECK(!nearest_word("", words));
  CHECK(!nearest_word("xy", words));
  CHECK(!nearest_word("anything", {}));
  CHECK(!nearest_word(std::string(1000000, 'e'), words));
}

TEST_CASE("of two the nearer one, and the first of equals") {
  CHECK(nearest_word("momentun", std::vector<std::string>{"moments", "momentum"}) == "momentum");
  CHECK(nearest_word("steps2", std::vector<std::string>{"steps1", "steps3"}) == "steps1");
}
