// Tests the kernels of attention and its gradient against the ops one by one.

#include "backends/cpu/fast/attention/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/attention.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/backends/cpu/fast/attention_backend.h"

// Null in builds without OpenMP, such as that with the thread sanitizer.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::attention_kernels_test {

namespace {

using Extents = std::vector<std::int64_t>;

constexpr double bound_of_floats = 1e-5;

struct AttentionSizes {
  Extents pairs;
  std::int64_t queries, keys, features, values;

  Shape matrix(std::int64_t rows, std::int64_t columns) const {
    Extents extents = pairs;
    extents.insert(extents.end(), {rows, columns});
    return Shape(extents);
  }
};

struct AttentionCase {
  AttentionSizes sizes;
  AttentionOptions options = {};
  std::optional<Extents> mask = {};
  bool adds = false;  // true if the mask is added
};

// Returns the result of an attention, and its gradients by query, key and value.
std::vector<Node> with_gradients(Graph& graph, DType dtype, const AttentionCase& wanted) {
  const auto& [sizes, options, mask_extents, adds] = wanted;
  const auto input = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return graph.input(name, {dtype, sizes.matrix(rows, columns)});
  };
  const Node query = input("query", sizes.queries, sizes.features);
  const Node key = input("key", sizes.keys, sizes.features);
  const Node value = input("value", sizes.keys, sizes.values);
  std::vector<Node> results;
  if (mask_extents) {
    const Node mask = graph.input("mask", {adds ? dtype : DType::boolean, Shape(*mask_extents)});
    results.push_back(scaled_dot_product_attention(query, key, value, mask, options));
  } else {
    results.push_back(scaled_dot_product_attention(query, key, value, options));
  }
  const Node grad = input("grad", sizes.queries, sizes.values);
  for (const Node& found : vjp(results, std::vector{grad}, std::vector{query, key, value}))
    results.push_back(found);
  return results;
}

void check_agreement(const AttentionCase& wanted) {
  AttentionBackend backend;
  CAPTURE(to_string(wanted.sizes.matrix(wanted.sizes.queries, wanted.sizes.keys)));
  const BuildGraph build = [&](Graph& graph, DType dtype) { return with_gradients(graph, dtype, wanted); };
  const Agreement floats = agreement(build, {.backend = &backend});
  CHECK(floats.uses("(attention"));
  CHECK(floats.uses("(attention_grad"));
  CHECK(floats.worst() < bound_of_floats);
  if (wanted.options.dropout > 0) return;
  const Agreement doubles = agreement(build, {.backend = &backend, .dtype = DType::float64});
  CHECK(doubles.uses("(attention_grad"));
  CHECK(doubles.worst() < bound_of_doubles);
}

// Runs an attention and its gradients with the inputs of `change`, as the CPU does and op by op.
struct BothRuns {
  explicit BothRuns(const AttentionCase& wanted) {
    const std::vector<Node> nodes = with_gradients(graph, DType::float32, wanted);
    for (NodeId id = 0; id < graph.size(); ++id)
      if (const Leaf* leaf = as_leaf(*graph.record(id).op);
          leaf != nullptr && leaf->kind() == LeafKind::input)
        feeds.push_back(drawn(leaf->type(), leaf->label()));
    regions = std::make_unique<Runner>(graph, nodes, *backend);
    apart = std::make_unique<Runner>(graph, nodes, *backend, CompileOptions{.optimise = false});
  }

  // Checks that the same elements are NaN, and that some are if `expected`.
  void check_nans(bool expected) {
    const std::vector<Tensor> found = (*regions)(feeds), wanted = (*apart)(feeds);
    bool any = false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      const std::vector<double> a = found[i].to_doubles(), b = wanted[i].to_doubles();
      for (std::size_t j = 0; j < a.size(); ++j) {
        CAPTURE(j);
        CHECK(std::isnan(a[j]) == std::isnan(b[j]));
        if (std::isinf(a[j]) || std::isinf(b[j])) CHECK(a[j] == b[j]);
        if (std::isfinite(b[j])) CHECK(a[j] == doctest::Approx(b[j]).epsilon(1e-4));
        any = any || std::isnan(b[j]);
      }
    }
    CHECK(any == expected);
  }

  std::shared_ptr<Backend> backend = std::make_shared<AttentionBackend>();
  Graph graph;
  std::vector<Tensor> feeds;
  std::unique_ptr<Runner> regions, apart;
};

// The order of the inputs.
enum Feeds : std::uint8_t { query_feed, key_feed, value_feed, mask_feed };

const AttentionSizes few{{2}, 6, 40, 5, 3};

std::size_t arena_of(const AttentionCase& wanted) {
  const auto backend = std::make_shared<AttentionBackend>();
  Graph graph;
  std::vector<ProgramOutput> outputs;
  for (const Node& node : with_gradients(graph, DType::float32, wanted)) outputs.push_back({.node = node});
  return compile(graph, outputs, *backend)->arena_bytes;
}

}  // namespace

TEST_CASE("attention in blocks has the values and gradients of its ops: sizes") {
  for (const AttentionSizes& sizes :
       {AttentionSizes{{}, 50, 50, 8, 8}, AttentionSizes{{2, 3}, 19, 37, 4, 9},
        AttentionSizes{{3}, 100, 48, 17, 33}, AttentionSizes{{2, 1, 2}, 16, 16, 16, 16},
        AttentionSizes{{}, 150, 700, 20, 5}, AttentionSizes{{1}, 300, 2900, 3, 6}})
    check_agreement({sizes});
}

TEST_CASE("attention in blocks has the values and gradients of its ops: masks") {
  const AttentionSizes sizes{{2, 3}, 50, 70, 8, 12};
  for (const Extents& mask : {Extents{50, 70}, Extents{2, 3, 50, 70}, Extents{2, 1, 1, 70},
                              Extents{3, 50, 70}, Extents{1, 70}, Extents{70}}) {
    CAPTURE(mask.size());
    check_agreement({.sizes = sizes, .mask = mask});
    check_agreement({.sizes = sizes, .mask = mask, .adds = true});
  }
  check_agreement({.sizes = sizes, .mask = Extents{2, 1, 50, 1}, .adds = true});
  check_agreement({.sizes = sizes, .options = {.scale = 0.1}, .mask = Extents{50, 70}});
}

TEST_CASE("attention in blocks has the values and gradients of its ops: causal") {
  for (const AttentionSizes& sizes :
       {AttentionSizes{{2}, 100, 100, 8, 8}, AttentionSizes{{2}, 60, 100, 8, 8},
        AttentionSizes{{2}, 100, 60, 8, 8}, AttentionSizes{{}, 1100, 1000, 4, 4}})
    check_agreement({.sizes = sizes, .options = {.is_causal = true}});
}

TEST_CASE("attention in blocks drops the weights that the op dropout drops") {
  check_agreement({.sizes = {{2}, 100, 37, 8, 8}, .options = {.dropout = 0.3}});
  check_agreement({.sizes = {{2}, 100, 101, 8, 8}, .options = {.is_causal = true, .dropout = 0.6}});
  check_agreement({.sizes = {{2}, 60, 70, 8, 8}, .options = {.dropout = 0.5}, .mask = Extents{2, 1, 70}});
}

TEST_CASE("attention in blocks is NaN where its ops are: a query without keys") {
  BothRuns runs({.sizes = few, .mask = Extents{6, 40}});
  std::fill_n(runs.feeds[mask_feed].as<bool>().begin() + 40, 40, false);
  runs.check_nans(true);
}

TEST_CASE("attention in blocks is NaN where its ops are: infinities and NaN") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool is_causal : {false, true})
    for (const Feeds feed : {query_feed, key_feed, value_feed, mask_feed})
      for (const float special : {infinity, -infinity, nan}) {
        CAPTURE(is_causal);
        CAPTURE(static_cast<int>(feed));
        CAPTURE(special);
        BothRuns runs({.sizes = few, .options = {.is_causal = is_causal}});
        // A key that no query of a causal attention may attend to.
        const auto elements = runs.feeds[feed].as<float>();
        elements[elements.size() - 1] = special;
        (*runs.regions)(runs.feeds);
        const std::vector<Tensor> wanted = (*runs.apart)(runs.feeds);
        const bool any = std::ranges::any_of(wanted, [](const Tensor& value) {
          return std::ranges::any_of(value.to_doubles(), [](double x) { return std::isnan(x); });
        });
        runs.check_nans(any);
      }
}

TEST_CASE("attention in blocks is NaN where its ops are: products that overflow") {
  const AttentionCase causal{.sizes = {{}, 60, 60, 5, 5}, .options = {.is_causal = true}};
  BothRuns scores(causal);
  scores.feeds[query_feed].as<float>()[0] = scores.feeds[key_feed].as<float>()[0] = 1e30F;
  scores.check_nans(true);
  BothRuns gradients(causal);
  gradients.feeds[mask_feed].as<float>()[0] = 1e30F;  // the gradient of the result
  gradients.feeds[value_feed].as<float>()[295] = 1e30F;
  gradients.check_nans(true);
}

TEST_CASE("attention in blocks has the same bits on any number of threads") {
  if (omp_set_num_threads == nullptr) return;
  const int threads = omp_get_max_threads();
  for (const AttentionCase& wanted :
       {AttentionCase{.sizes = {{}, 600, 300, 8, 8}},
        AttentionCase{.sizes = {{3}, 500, 400, 8, 8}, .options = {.is_causal = true, .dropout = 0.2}}}) {
    std::vector<std::vector<Tensor>> results;
    for (const int count : {1, 2, 3, 7}) {
      omp_set_num_threads(count);
      BothRuns runs(wanted);
      results.push_back((*runs.regions)(runs.feeds));
      omp_set_num_threads(4);
      results.push_back((*runs.regions)(runs.feeds));
    }
    omp_set_num_threads(threads);
    for (const std::vector<Tensor>& result : results) CHECK(result == results[0]);
  }
}

TEST_CASE("the arena of an attention grows with the number of positions, not with its square") {
  for (const bool is_causal : {false, true})
    for (const double dropout : {0.0, 0.1}) {
      const auto arena = [&](std::int64_t positions) {
        return arena_of({.sizes = {{4}, positions, positions, 16, 16},
                         .options = {.is_causal = is_causal, .dropout = dropout}});
      };
      const std::size_t scores = std::size_t{4} * 2048 * 2048 * sizeof(float);
      CHECK(arena(2048) < scores / 4);
      CHECK(arena(4096) < 2.1 * static_cast<double>(arena(2048)));
    }
}

}  // namespace plexaura::testing::attention_kernels_test
