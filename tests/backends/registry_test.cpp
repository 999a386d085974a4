#include "backends/registry.h"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

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
                       doctest::Contains("is not part of this version of Plexaura; use the backend 'cpu'"),
                       UserError);
}

TEST_CASE("a plugin that was built for other headers is refused with both stamps") {
  setenv("PLEXAURA_PLUGIN_PATH", "/nowhere::" PLEXAURA_TEST_PLUGINS, 1);
  CHECK_THROWS_WITH_AS(open_backend("wrong"), doctest::Contains("contract of long ago"), UserError);
  CHECK_THROWS_WITH_AS(open_backend("wrong"), doctest::Contains(plugin_stamp), UserError);
  const auto known = known_backends();
  CHECK(std::ranges::find(known, "wrong") != known.end());
  unsetenv("PLEXAURA_PLUGIN_PATH");
  CHECK_THROWS_WITH_AS(open_backend("wrong"), doctest::Contains("no backend 'wrong'"), UserError);
}

TEST_CASE("a file that is no plugin is refused by name") {
  const std::string folder = PLEXAURA_TEST_PLUGINS "/broken";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/plexaura_broken.so") << "not a shared object";
  setenv("PLEXAURA_PLUGIN_PATH", folder.c_str(), 1);
  CHECK_THROWS_WITH_AS(open_backend("broken"), doctest::Contains("plexaura_broken.so cannot be loaded"),
                       UserError);
  unsetenv("PLEXAURA_PLUGIN_PATH");
}

TEST_CASE("the far device is a plugin that is found beside the core") {
  const auto known = known_backends();
  CHECK(std::ranges::find(known, "far") != known.end());
  CHECK(open_backend("far")->info().name == "far");
  CHECK(!open_backend("far")->info().host_memory);
}
