#include "core/loops/denormals.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "core/compile/compile.h"
#include "core/compile/tuner.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/conv2d.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/points.h"

namespace plexaura::testing::denormals_test {

namespace {

constexpr std::int64_t many = 50'000;  // enough elements for several threads

// Returns true if this thread computes 1e-310 without flushing it to 0.
bool keeps_denormals() {
  const volatile double small = 1e-300;
  return small * 1e-10 != 0;
}

bool new_thread_keeps_denormals() {
  bool keeps = false;
  std::thread([&] { keeps = keeps_denormals(); }).join();
  return keeps;
}

Tensor filled(const TensorType& type, double value) {
  Tensor wide(TensorType{DType::float64, type.shape});
  std::ranges::fill(wide.as<double>(), value);
  return wide.cast(type.dtype);
}

Tensor output_of(Backend& backend, const Node& result, const Tensor& x) {
  const ProgramOutput outputs[] = {{.node = result}};
  VM vm(compile(result.graph(), outputs, backend), backend);
  vm.run({{"x", x}});
  return vm.output();
}

struct Function {
  const char* name;
  std::function<Node(const Node&)> of;
  std::function<double(double)> expected;
  double x64;
  double x32;
};

const std::vector<Function> functions{
    {"log", [](const Node& x) { return log(x); }, [](double x) { return std::log(x); }, 1e-310, 1e-40},
    {"log of the least", [](const Node& x) { return log(x); }, [](double x) { return std::log(x); },
     std::numeric_limits<double>::denorm_min(), double{std::numeric_limits<float>::denorm_min()}},
    {"root by pow", [](const Node& x) { return pow(x, 0.5); }, [](double x) { return std::sqrt(x); }, 1e-310,
     1e-40},
    {"pow", [](const Node& x) { return pow(x, -0.25); }, [](double x) { return std::pow(x, -0.25); }, 3e-320,
     1e-42},
    {"sqrt", [](const Node& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, 1e-310, 1e-40},
    {"exp", [](const Node& x) { return exp(x); }, [](double x) { return std::exp(x); }, -740, -100},
    {"exp, enlarged", [](const Node& x) { return exp(x) * 1e30; },
     [](double x) { return std::exp(x) * 1e30; }, -710, -88.5},
    {"softplus", [](const Node& x) { return softplus(x); }, [](double x) { return std::exp(x); }, -720, -90},
    {"log of sigmoid", [](const Node& x) { return log(sigmoid(x)); }, [](double x) { return x; }, -720, -90},
    {"log of softmax",
     [](const Node& x) {
       return log(softmax(concat({x, 0 * x}, 1), 1));
     },
     [](double x) { return x; }, -715, -90},
    {"quotient", [](const Node& x) { return x / x; }, [](double) { return 1.0; }, 1e-310, 1e-40},
    {"comparison", [](const Node& x) { return where(gt(x, 0), x * 0 + 1, x * 0); },
     [](double) { return 1.0; }, 1e-310, 1e-40},
    {"sum", [](const Node& x) { return sum(x, {.axes = {1}, .keepdims = true}); }, [](double x) { return x; },
     1e-310, 1e-40},
};

// Checks a value near the denormals, to the digits that the dtype has there.
void check_close(double value, double expected, DType dtype) {
  const bool is_wide = dtype == DType::float64;
  const double least =
      is_wide ? std::numeric_limits<double>::denorm_min() : double{std::numeric_limits<float>::denorm_min()};
  CAPTURE(value);
  CAPTURE(expected);
  CHECK(std::abs(value - expected) <= std::max(2 * least, (is_wide ? 1e-13 : 1e-6) * std::abs(expected)));
}

}  // namespace

TEST_CASE("the caller's own arithmetic keeps denormals, whatever a backend does") {
  for (const auto& make : {make_cpu_backend, make_portable_backend}) {
    const auto backend = make();
    CHECK(keeps_denormals());
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {2, 16, 12, 12}});
    const Node y = conv2d(x, graph.input("w", {DType::float32, {16, 16, 3, 3}}));
    const Node folded = log(graph.constant(filled({DType::float32, {8}}, 2)));
    const Node result = exp(y) + sum(folded);
    Tuner tuner(Tuning::measure);
    const ProgramOutput outputs[] = {{.node = result}};
    const auto program = compile(graph, outputs, *backend, {.tuner = &tuner});
    CHECK(keeps_denormals());
    std::vector<bool> at_points;
    std::vector<HostPoint> points;
    for (std::size_t i = 0; i <= program->instructions.size(); ++i) points.push_back({i});
    VM vm(program, *backend, {.host_points = points});
    run_with_points(vm,
                    {{"x", filled(x.type(), 0.01)}, {"w", filled({DType::float32, {16, 16, 3, 3}}, 0.01)}},
                    [&](std::size_t) { at_points.push_back(keeps_denormals()); });
    CHECK(at_points == std::vector<bool>(points.size(), true));
    CHECK(keeps_denormals());
    CHECK(new_thread_keeps_denormals());
  }
}

TEST_CASE("functions keep denormals in all their threads, behind kernels that do not") {
  for (const auto& make : {make_cpu_backend, make_portable_backend}) {
    const auto backend = make();
    Graph first;
    const Node square = first.input("x", {DType::float32, {128, 128}});
    output_of(*backend, matmul(square, square), filled(square.type(), 1));
    for (const DType dtype : {DType::float64, DType::float32})
      for (const Function& function : functions) {
        CAPTURE(std::string(name_of(dtype)));
        CAPTURE(std::string(function.name));
        const Tensor values =
            filled({dtype, {many, 1}}, dtype == DType::float64 ? function.x64 : function.x32);
        Graph graph(Mode::inference);
        const Tensor result = output_of(*backend, function.of(graph.input("x", values.type())), values);
        const std::vector<double> results = result.to_doubles();
        const std::size_t width = results.size() / many;
        for (std::size_t i = 0; i < results.size(); i += width) REQUIRE(results[i] == results[0]);
        check_close(results[0], function.expected(values.to_doubles()[0]), dtype);
      }
  }
}

TEST_CASE("a scope changes this thread alone, and puts back what was there") {
  CHECK(keeps_denormals());
#if defined(__SSE__) || defined(__aarch64__)
  const DenormalScope outer(Denormals::flushed);
  CHECK(!keeps_denormals());
  CHECK(denormals_here() == Denormals::flushed);
  {
    const DenormalScope inner(Denormals::kept);
    CHECK(keeps_denormals());
    CHECK(new_thread_keeps_denormals());
  }
  CHECK(!keeps_denormals());
#endif
}

TEST_CASE("a large product of float32 takes denormals for zero in all its threads") {
  const auto backend = make_cpu_backend();
  if (cpu_libraries() == "no oneDNN") return;
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {256, 256}});
  const Node ones = graph.constant(filled(x.type(), 1));
  for (const double value : output_of(*backend, matmul(x, ones), filled(x.type(), 1e-40)).to_doubles())
    REQUIRE(value == 0);
}

}  // namespace plexaura::testing::denormals_test
