#include "core/base/did_you_mean.h"

#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::did_you_mean_test {

TEST_CASE("the nearest name is one added, removed, changed or exchanged letter away") {
  const std::vector<std::string> names{"learning_rate", "epochs", "lr"};
  for (const char* typo : {"learning_rat", "learning_ratee", "learnin_grate", "learninG_rate"})
    CHECK(nearest(typo, names) == "learning_rate");
  CHECK(nearest("epoch", names) == "epochs");
  CHECK(nearest("lt", names) == "lr");
}

TEST_CASE("what is too far away is no name meant") {
  const std::vector<std::string> names{"learning_rate", "epochs", "lr"};
  for (const char* word : {"batch", "", "xy"}) CHECK(nearest(word, names).empty());
  CHECK(nearest("anything", {}).empty());
  CHECK(nearest(std::string(1000000, 'e'), names).empty());
}

TEST_CASE("of two the nearer one, and the first of equals") {
  CHECK(nearest("momentun", std::vector<std::string>{"moments", "momentum"}) == "momentum");
  CHECK(nearest("steps2", std::vector<std::string>{"steps1", "steps3"}) == "steps1");
}

TEST_CASE("a name that differs in its case alone comes first") {
  CHECK(nearest("B", std::vector<std::string>{"a", "b"}) == "b");
  CHECK(nearest("BATCH_NORM", std::vector<std::string>{"batchnorm", "batch_norm"}) == "batch_norm");
}

TEST_CASE("the question in an error's text") {
  const std::vector<std::string> names{"relu", "tanh"};
  CHECK(did_you_mean("tahn", names) == "; did you mean 'tanh'?");
  CHECK(did_you_mean("softmax", names).empty());
}

}  // namespace plexaura::testing::did_you_mean_test
