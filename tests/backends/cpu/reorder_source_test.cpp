#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/compile/rebuild.h"
#include "core/ops/reorder.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::reorder_source_test {

namespace {

const std::vector<Layout> layouts{Layout::row_major(4),
                                  channels_last(),
                                  blocked_channels(16),
                                  blocked_channels(8),
                                  Layout({0, 1, 2, 3}, {{1, 16}, {0, 16}}),
                                  Layout({1, 0, 2, 3}, {{0, 16}, {1, 16}})};

}  // namespace

TEST_CASE("values keep their elements and a zero padding through every pair of layouts") {
  const auto backend = make_cpu_backend();
  for (const Shape& shape : {Shape{2, 17, 3, 5}, Shape{3, 3, 2, 1}, Shape{2, 1, 3, 5}, Shape{32, 16, 1, 1}})
    for (const DType dtype : {DType::float32, DType::uint8, DType::boolean})
      for (const Layout& from : layouts)
        for (const Layout& to : layouts) {
          CAPTURE(to_string(from));
          CAPTURE(to_string(to));
          Graph graph;
          const Node x = graph.input("x", {dtype, shape});
          const Node y =
              graph.append(std::make_shared<Reorder>(to), std::vector{x}, std::source_location::current())[0];
          const Tensor value = drawn(x.type(), "x");
          RegionRun run(*backend, graph, single(graph, y.id()), {value}, {.given = {from}});
          REQUIRE(run.candidate().outputs[0] == to);
          run.output().spoil();
          run.launch();
          CHECK(run.output().read() == value);
          std::vector<std::byte> physical(static_cast<std::size_t>(to.bytes(x.type())));
          reorder(value.data(), Layout::row_major(4), physical.data(), to, x.type());
          CHECK(run.output().read_bytes() == physical);
        }
}

}  // namespace plexaura::testing::reorder_source_test
