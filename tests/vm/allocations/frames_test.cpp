// Counts our stack frames between VM::run and a call of oneDNN. This program replaces the library's function.

#include "tests/support/frames.h"

#include <algorithm>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <vector>

#include "core/compile/compile.h"
#include "core/ops/conv2d.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"

namespace plexaura::testing {

namespace {

// For each call of oneDNN, the number of stack frames below it. Null: calls are not recorded.
std::vector<std::ptrdiff_t>* depths = nullptr;

}  // namespace

extern "C" __attribute__((visibility("default"))) int dnnl_primitive_execute(const void* primitive,
                                                                             void* stream, int count,
                                                                             const void* arguments) {
  if (depths != nullptr) depths->push_back(std::ssize(frames_around()) - 1);  // without this function
  static const auto library =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  return library(primitive, stream, count, arguments);
}

TEST_CASE(
    "from VM::run to a call of oneDNN there are at most five frames of ours, and six without inlining") {
#ifdef NDEBUG
  constexpr int most = 5;
#else
  constexpr int most = 6;
#endif
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {8, 16, 16, 16}});
  const Node w = graph.input("w", {DType::float32, {16, 16, 3, 3}});
  const std::vector<ProgramOutput> outputs{{conv2d(x, w)}};
  const auto program = compile(graph, outputs, test_backend());
  if (std::ranges::none_of(program->instructions, [](const Instruction& instruction) {
        return instruction.implementation.starts_with("onednn");
      })) {
    MESSAGE("skipped: there is no oneDNN on " << test_backend().info().name);
    return;
  }
  VM vm(program, test_backend());
  const Tensor images(x.type());
  const Tensor filters(w.type());
  const Feed feeds[] = {{"x", images}, {"w", filters}};
  vm.run(feeds);
  std::vector<std::ptrdiff_t> seen;
  const std::ptrdiff_t around_run = std::ssize(frames_around());
  depths = &seen;
  vm.run(feeds);
  depths = nullptr;
  REQUIRE(!seen.empty());
  for (const std::ptrdiff_t around_call : seen) {
    CHECK(around_call > around_run);
    CHECK_MESSAGE(around_call - around_run <= most,
                  "frames of ours, with that of VM::run: " << around_call - around_run);
  }
}

}  // namespace plexaura::testing
