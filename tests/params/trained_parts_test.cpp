#include "core/params/trained_parts.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::trained_parts_test {

TEST_CASE("a part ends with its last pointer, and parts are in the order of their names") {
  TrainedParts parts;
  auto g = parts.add({.name = "sgd of g", .parameters = {"g"}}, {});
  const auto d = parts.add({.name = "adam of d", .parameters = {"d"}}, {g});
  CHECK(parts.names() == "adam of d; sgd of g");
  CHECK(parts.has(g));
  g.reset();
  CHECK(parts.names() == "adam of d");
  parts.clear();
  CHECK(!parts.has(d));
  CHECK(parts.parts().empty());
}

TEST_CASE("a part remains beside others, ends with all of its parameters, and is not divided") {
  const std::set<std::string> trainable{"a", "b", "c"};
  TrainedParts parts;
  const auto part = parts.add({.name = "sgd", .parameters = {"a", "b"}}, {});
  CHECK(parts.beside({"c"}, trainable).size() == 1);
  CHECK(parts.beside({"a", "b", "c"}, trainable).empty());
  CHECK(parts.beside({"a"}, {"a", "c"}).empty());  // b is frozen
  CHECK(user_error([&] {
          parts.beside({"b", "c"}, trainable);
        }) ==
        "another Optimizer of this store, sgd, trains 'b' too, and 'a' besides; give both "
        "OptimizerOptions::parameters that have none in common, or destroy the other one first");
}

TEST_CASE("a part keeps its states for its parameters, and all parameters have them without parts") {
  TrainedParts parts;
  CHECK(parts.states() == 0);
  CHECK(parts.have_state(0, "d"));
  const auto g = parts.add({.name = "sgd of g", .parameters = {"g"}, .states = 1}, {});
  auto d = parts.add({.name = "adam of d", .parameters = {"d"}, .states = 2}, {g});
  CHECK(parts.states() == 2);
  CHECK(parts.have_state(1, "d"));
  CHECK(parts.have_state(0, "g"));
  CHECK(!parts.have_state(1, "g"));
  d.reset();
  CHECK(parts.states() == 1);
  CHECK(!parts.have_state(0, "d"));
}

}  // namespace plexaura::testing::trained_parts_test
