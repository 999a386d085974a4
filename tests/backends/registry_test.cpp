#include "backends/registry.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/error.h"

using namespace plexaura;

TEST_CASE("cpu and portable are always there") {
  CHECK(open_backend("cpu")->info().name == "cpu");
  CHECK(open_backend("portable")->info().name == "portable");
  CHECK(open_backend("cpu")->info().host_memory);
}

TEST_CASE("an unknown backend is refused with the names of those there are") {
  CHECK_THROWS_WITH_AS(open_backend("toaster"),
                       doctest::Contains("no backend 'toaster'; there are: cpu, portable"), UserError);
  CHECK_THROWS_AS(open_backend(""), UserError);
  CHECK_THROWS_AS(open_backend("../cpu"), UserError);
}

TEST_CASE("options of backends that have none are refused") {
  CHECK_THROWS_WITH_AS(open_backend("cpu", {{"lazy", "1"}}), doctest::Contains("no option 'lazy'"),
                       UserError);
}

TEST_CASE("cuda without its plugin says what is missing") {
  const auto known = known_backends();
  if (std::ranges::find(known, "cuda") != known.end()) return;
  CHECK_THROWS_WITH_AS(open_backend("cuda"),
                       doctest::Contains("needs its plugin plexaura_cuda.so, which is missing in /"),
                       UserError);
}
