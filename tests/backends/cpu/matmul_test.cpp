#include "core/ops/matmul.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/compile/compile.h"
#include "core/host/costs.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "core/vm/vm.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

#ifdef PLEXAURA_HAS_ONEDNN
#include "backends/cpu/onednn/dnnl_compat.h"
#endif

// Null in a program without OpenMP.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::matmul_test {

namespace {

constexpr double bound = 1e-6;  // sums of at most 40 products of numbers below 1

}  // namespace

TEST_CASE("matrix products agree with the portable kernels in double, transposed or not") {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node a = graph.input("a", {dtype, ta ? Shape{40, 70} : Shape{70, 40}});
        const Node b = graph.input("b", {dtype, tb ? Shape{110, 40} : Shape{40, 110}});
        return {matmul(a, b, {ta, tb})};
      });
      CHECK(result.uses("onednn") == has_onednn());
      CHECK(result.worst() < bound);
    }
}

TEST_CASE(
    "threads divide the rows of a product if each gets enough of them, and agree with the portable kernels") {
  if (omp_set_num_threads == nullptr) return;
  const std::string by_rows = "onednn gemm of each thread's rows";
  // 220 columns make enough work for several threads.
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3})
    for (const std::int64_t rows : {95, 96, 100})
      for (const bool tb : {false, true}) {
        CAPTURE(threads);
        CAPTURE(rows);
        CAPTURE(tb);
        omp_set_num_threads(threads);
        for (const Shape& shape : {Shape{rows, 40}, Shape{rows, 1, 40}}) {
          const auto build = [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const Node b = graph.input("b", {dtype, tb ? Shape{220, 40} : Shape{40, 220}});
            return {matmul(graph.input("a", {dtype, shape}), b, {.transpose_b = tb})};
          };
          Graph graph;
          const bool is_offered = std::ranges::any_of(
              offers(build(graph, DType::float32)[0]),
              [&](const Candidate& candidate) { return candidate.implementation == by_rows; });
          CHECK(is_offered == (has_onednn() && threads > 1 && rows >= 32 * threads));
          if (is_offered) CHECK(agreement_of_node(build, {}, {.implementation = by_rows}).worst() < bound);
        }
      }
  omp_set_num_threads(before);
}

TEST_CASE("so do those of small matrices, for which no library is called") {
  for (const std::int64_t rows : {1, 3, 4, 9})
    for (const std::int64_t columns : {1, 6, 15, 16, 17, 33})
      for (const std::int64_t inner : {1, 2, 13})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) {
            CAPTURE(rows);
            CAPTURE(columns);
            CAPTURE(inner);
            const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
              const Node a = graph.input("a", {dtype, ta ? Shape{inner, rows} : Shape{rows, inner}});
              const Node b = graph.input("b", {dtype, tb ? Shape{columns, inner} : Shape{inner, columns}});
              const Node bias = graph.input("bias", {dtype, {columns}});
              return {matmul(a, b, {ta, tb}), matmul(a + 1, b, {ta, tb}) + bias};
            });
            CHECK(result.uses(") [fast"));
            CHECK_FALSE(result.uses("onednn"));
            CHECK_FALSE(result.uses("[portable"));
            CHECK(result.worst() < bound);
          }
}

TEST_CASE("the axes in front of matrices broadcast") {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{3, 4, 5}, {5, 6}}, {{3, 4, 5}, {3, 5, 6}}, {{1, 4, 5}, {3, 5, 6}}, {{2, 1, 4, 5}, {3, 5, 6}},
      {{4, 5}, {2, 5, 6}}, {{2, 3, 4, 5}, {5, 6}}, {{1, 4, 5}, {1, 5, 6}}};
  for (const auto& [a, b] : shapes) {
    CAPTURE(to_string(a));
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      return {matmul(graph.input("a", {dtype, a}), graph.input("b", {dtype, b}))};
    });
    CHECK_FALSE(result.uses("[portable"));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE(
    "products of float64 in blocks agree with the portable kernels, with every transposition and broadcast") {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{1, 1}, {1, 1}},          {{7, 300}, {300, 9}}, {{100, 33}, {33, 270}}, {{6, 512}, {512, 8}},
      {{2, 1, 4, 5}, {3, 5, 6}}, {{4, 5}, {2, 5, 6}},  {{2, 3, 4, 5}, {5, 6}}, {{1, 4, 5}, {3, 5, 6}}};
  const auto stored = [](Shape shape, bool transpose) {
    std::vector<std::int64_t> extents = shape.extents();
    if (transpose) std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
    return Shape(extents);
  };
  for (const auto& [a, b] : shapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        CAPTURE(to_string(a));
        CAPTURE(ta);
        CAPTURE(tb);
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {matmul(graph.input("a", {dtype, stored(a, ta)}),
                             graph.input("b", {dtype, stored(b, tb)}), {ta, tb})};
            },
            {.dtype = DType::float64});
        CHECK_FALSE(result.uses("[portable"));
        CHECK(result.worst() < 1e-14);
      }
}

TEST_CASE("a product takes its bias along") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {90, 40}});
    const Node w = graph.input("w", {dtype, {130, 40}});
    const Node b = graph.input("b", {dtype, {130}});
    return {relu(matmul(x, w, {.transpose_b = true}) + b), b + matmul(square(x), w, {.transpose_b = true})};
  });
  CAPTURE(result.program);
  CHECK(result.uses("(matmul+bias) [onednn") == has_onednn());
  CHECK(result.worst() < bound);
}

TEST_CASE("a product is expected to take as long as its operations") {
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {500, 1000}});
  const Candidate once = offers(matmul(a, graph.input("b", {DType::float32, {1000, 300}})))[0];
  const Candidate twice = offers(matmul(a, graph.input("c", {DType::float32, {1000, 600}})))[0];
  REQUIRE(once.implementation.starts_with("onednn") == has_onednn());
  CHECK(once.seconds > 1e-5);
  CHECK(once.seconds < 1);
  if (has_onednn()) CHECK(twice.seconds == doctest::Approx(2 * once.seconds));
}

TEST_CASE("so is a small one, which takes longer with more rows") {
  Graph graph;
  const Node b = graph.input("b", {DType::float32, {60, 40}});
  const auto seconds_of = [&](const Node& a) {
    for (const Candidate& candidate : offers(matmul(a, b)))
      if (candidate.implementation.starts_with("fast")) return candidate.seconds;
    return 0.0;
  };
  const double few = seconds_of(graph.input("few", {DType::float32, {2, 60}}));
  const double many = seconds_of(graph.input("many", {DType::float32, {40, 60}}));
  CHECK(few > 0);
  CHECK(many - few > 2.0 * 38 * 60 * 40 / costs::operations);
}

namespace {

// Returns true if oneDNN, asked without the backend's code, wants b of a product of a [rows, inner] and
// b [inner, columns] in blocks. On some processors it never does.
bool library_wants_blocks([[maybe_unused]] std::int64_t rows, [[maybe_unused]] std::int64_t inner,
                          [[maybe_unused]] std::int64_t columns) {
#ifdef PLEXAURA_HAS_ONEDNN
  using namespace onednn;
  const auto matrix = [](std::int64_t height, std::int64_t width) {
    return row_major({height, width}, DType::float32);
  };
  try {
    const memory::desc b = describe_matmul({.src = matrix(rows, inner),
                                            .weights = any_layout({inner, columns}, DType::float32),
                                            .bias = {},
                                            .dst = matrix(rows, columns)},
                                           attributes_with({}))
                               .weights_desc();
    return b != matrix(inner, columns) && b != strided({inner, columns}, {1, inner}, DType::float32);
  } catch (const dnnl::error&) {
    return false;
  }
#else
  return false;
#endif
}

// Returns the candidates that read b in the library's layout.
std::vector<Candidate> packed_offers(const Node& product, std::vector<std::optional<Layout>> given = {}) {
  std::vector<Candidate> candidates = offers(product, std::move(given));
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.inputs[1].blocks().empty(); });
  return candidates;
}

// Returns the product of x [5, inner] and w [columns, inner] or, if it is not transposed, [inner, columns].
Node weighted(Graph& graph, DType dtype, bool transposed, std::int64_t inner = 48,
              std::int64_t columns = 192) {
  const Node x = graph.input("x", {dtype, {5, inner}});
  const Node w = graph.parameter("w", {dtype, transposed ? Shape{columns, inner} : Shape{inner, columns}});
  return matmul(x, w, {.transpose_b = transposed});
}

}  // namespace

TEST_CASE("weights in the library's layout give the product of the portable kernels") {
  for (const bool transposed : {false, true})
    for (const std::int64_t columns : {192, 384}) {
      CAPTURE(transposed);
      CAPTURE(columns);
      Graph graph(Mode::inference);
      const std::vector<Candidate> packed =
          packed_offers(weighted(graph, DType::float32, transposed, 48, columns));
      REQUIRE(packed.empty() == !library_wants_blocks(5, 48, columns));
      for (const Candidate& candidate : packed) {
        const auto build = [&](Graph& of, DType dtype) -> std::vector<Node> {
          return {weighted(of, dtype, transposed, 48, columns)};
        };
        const Agreement result = agreement_of_node(
            build, candidate.inputs, {.mode = Mode::inference, .implementation = candidate.implementation});
        CHECK(result.worst() < bound);
      }
    }
}

TEST_CASE("weights that would mostly be padding are not read in the library's layout") {
  for (const bool transposed : {false, true})
    for (const Shape& sizes : {Shape{4096, 1}, Shape{512, 10}, Shape{1, 512}}) {
      Graph graph(Mode::inference);
      CHECK(packed_offers(weighted(graph, DType::float32, transposed, sizes[0], sizes[1])).empty());
    }
}

TEST_CASE("weights keep a layout that a training program or an earlier program has given them") {
  Graph training;
  CHECK(packed_offers(weighted(training, DType::float32, true)).empty());
  Graph inference(Mode::inference);
  const Node product = weighted(inference, DType::float32, true);
  CHECK(packed_offers(product, {Layout::row_major(2), Layout::row_major(2)}).empty());
  const std::vector<Candidate> offered = packed_offers(product);
  REQUIRE(offered.empty() == !library_wants_blocks(5, 48, 192));
  for (const Candidate& packed : offered)
    CHECK(packed_offers(product, {Layout::row_major(2), packed.inputs[1]}).size() == 1);
}

TEST_CASE("a loop of many steps reads weights in the library's layout, and one of a single step does not") {
  for (const std::int64_t steps : {1, 100}) {
    const Agreement result = agreement([&](Graph& of, DType dtype) -> std::vector<Node> {
      const Node w = of.input("w", {dtype, {256, 256}});
      const auto body = [&](const auto& carries, const auto& xs) -> ScanStep {
        return {{tanh(matmul(carries[0], w, {.transpose_b = true}) * 0.01 + xs[0])}, {}};
      };
      return {scan({of.input("x", {dtype, {steps, 5, 256}})}, {of.input("h", {dtype, {5, 256}})}, body)
                  .carries[0]};
    });
    CAPTURE(result.program);
    CHECK(result.uses("packed") == (library_wants_blocks(5, 256, 256) && steps > 1));
    CHECK(result.worst() < bound);
  }
}

namespace {

// Returns the product of x [5, 256] and the transposed w [256, 256]. With several steps, x is [steps, 5, 256], and the
// result is the sum of the products, which a loop computes.
Node sum_of_products(Graph& graph, std::int64_t steps, const Node& w) {
  if (steps == 1) return matmul(graph.input("x", {DType::float32, {5, 256}}), w, {.transpose_b = true});
  const auto body = [&](const auto& carries, const auto& xs) -> ScanStep {
    return {{carries[0] + matmul(xs[0], w, {.transpose_b = true})}, {}};
  };
  return scan({graph.input("x", {DType::float32, {steps, 5, 256}})},
              {graph.input("sum", {DType::float32, {5, 256}})}, body)
      .carries[0];
}

struct OverwrittenRuns {
  std::string program;
  Layout stored;                // the layout of w in the placement
  std::vector<Tensor> outputs;  // one for each value of w
};

// Runs a program for inference, overwrites w, and runs it again. If w is not stored as float32, the store has a shadow of
// float32, which the product reads.
OverwrittenRuns run_with_two_weights(Backend& backend, std::int64_t steps, DType stored) {
  const TensorType type{stored, {256, 256}};
  Graph graph(Mode::inference);
  const Node w = graph.parameter("w", type);
  ArenaTypes types = ArenaTypes::all(stored);
  if (stored != DType::float32) types.shadow = DType::float32;
  const Node result = sum_of_products(graph, steps, types.shadow ? cast(w, *types.shadow) : w);
  const auto program =
      compile(graph, std::vector<ProgramOutput>{{.node = result}}, backend, {.types = types});
  ParameterStore store({{.name = "w", .type = type, .initialiser = {}}});
  store.set_types(types);
  VM vm(program, backend, {.store = &store});
  std::vector<Tensor> values;
  for (const Program::Feed& feed : program->feeds) values.push_back(drawn(feed.type, feed.name));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < values.size(); ++i) feeds.emplace_back(program->feeds[i].name, values[i]);
  OverwrittenRuns runs{program->to_text(), program->placement.find("w")->layout, {}};
  for (const char* weights : {"first", "second"}) {
    store.write("w", drawn(type, weights));
    vm.run(feeds);
    runs.outputs.push_back(vm.output());
  }
  return runs;
}

}  // namespace

TEST_CASE("weights that are overwritten between runs count, also in the library's layout") {
  const bool in_blocks = library_wants_blocks(5, 256, 256);
  for (const auto& [steps, stored] :
       {std::pair{1, DType::float32}, {100, DType::float32}, {1, DType::float64}}) {
    CAPTURE(steps);
    CAPTURE(name_of(stored));
    const OverwrittenRuns fast = run_with_two_weights(*make_cpu_backend(), steps, stored);
    const OverwrittenRuns portable = run_with_two_weights(*make_portable_backend(), steps, stored);
    CAPTURE(fast.program);
    CHECK((fast.program.find("packed") != std::string::npos) == in_blocks);
    CHECK(fast.stored.blocks().empty() == !(in_blocks && steps == 1));  // a loop copies them itself
    CHECK(fast.outputs[0] != fast.outputs[1]);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> found = fast.outputs[i].to_doubles();
      const std::vector<double> expected = portable.outputs[i].to_doubles();
      for (std::size_t element = 0; element < expected.size(); ++element)
        REQUIRE(found[element] == doctest::Approx(expected[element]).epsilon(1e-5).scale(10));
    }
  }
}

TEST_CASE("what is added to a product need not be a row for all of its rows") {
  for (const Shape& added : {Shape{9, 13}, Shape{9, 1}, Shape{1, 13}, Shape{1}, Shape{}}) {
    CAPTURE(to_string(added));
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node product = matmul(graph.input("x", {dtype, {9, 20}}), graph.input("w", {dtype, {20, 13}}));
      return {product + graph.input("added", {dtype, added})};
    });
    CAPTURE(result.program);
    CHECK(result.uses("matmul+bias") == (added == Shape{1, 13}));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("a NaN goes through a product, its bias and the ReLU behind it") {
  for (const std::int64_t rows : {40, 40000})  // sizes for our own kernel and for the library's
    CHECK(agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
            const Node x = log(graph.input("x", {dtype, {rows, 3}}));  // log() gives NaN where x is below 0
            const Node product = matmul(x, graph.input("w", {dtype, {3, 5}}));
            return {relu(product), relu(product + graph.input("b", {dtype, {5}}))};
          }).worst() < bound);
}

}  // namespace plexaura::testing::matmul_test
