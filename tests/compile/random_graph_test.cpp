// Tests random graphs: values and derivatives of all kinds of ops in any order, whatever the compiler merges, folds, fuses,
// computes in place or computes once before the run.
//
// PLEXAURA_RANDOM_GRAPHS=FIRST:LAST tests the graphs of these seeds instead of the usual ones.

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "tests/support/backend.h"
#include "tests/support/random_graph/properties.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::random_graph_test {

namespace {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = sanitized ? 30 : 300;
};

Seeds seeds() {
  const char* const text = std::getenv("PLEXAURA_RANDOM_GRAPHS");
  if (text == nullptr) return {};
  char* end = nullptr;
  Seeds chosen{std::strtoull(text, &end, 10), 0};
  const char* const last = *end == ':' ? end + 1 : "";
  chosen.last = std::strtoull(last, &end, 10);
  REQUIRE_MESSAGE((*last != '\0' && *end == '\0' && chosen.first <= chosen.last),
                  "PLEXAURA_RANDOM_GRAPHS is '" << text << "'; write FIRST:LAST, as in 1:10000");
  return chosen;
}

GraphReport check_recipe(const Recipe& recipe, std::uint64_t seed) {
  return check_random_graph(recipe, seed % 4 == 0, test_backend(), oracle());
}

// Describes the smallest graph with the failure of this seed.
std::string description(std::uint64_t seed) {
  const Recipe smallest = shrink(
      random_recipe(seed), [&](const Recipe& recipe) { return !check_recipe(recipe, seed).failure.empty(); });
  const RandomGraph graph(smallest, DType::float64);
  return fmt::format("the graph of seed {}: {}\n{}", seed, check_recipe(smallest, seed).failure,
                     graph.text());
}

// Ops that only optimizers, readers of images and some second derivatives use.
bool is_rare(const std::string& op) {
  return op.ends_with("_step") || op.ends_with("_gather") || op == "normalise_image";
}

const std::set<std::string> all_ops{
#define PLEXAURA_OP(name) #name,
#include "core/ops/ops.def"
};

}  // namespace

TEST_CASE("random graphs have the same values however they are compiled, and right derivatives") {
  const auto [first, last] = seeds();
  int derivatives = 0;
  int not_comparable = 0;
  int limited = 0;
  std::set<std::string> missing = all_ops;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const GraphReport report = check_recipe(random_recipe(seed), seed);
    CHECK_MESSAGE(report.failure.empty(), description(seed));
    derivatives += report.derivatives;
    not_comparable += report.not_comparable;
    limited += report.limited;
    for (const std::string& op : report.ops) missing.erase(op);
  }
  CAPTURE(derivatives);
  CHECK(not_comparable * 20 <= derivatives);
  std::erase_if(missing, is_rare);
  if (last - first >= 290) {
    CHECK(limited > 0);
    CHECK_MESSAGE(missing.empty(), fmt::format("no graph has {}", fmt::join(missing, ", ")));
  }
}

}  // namespace plexaura::testing::random_graph_test
