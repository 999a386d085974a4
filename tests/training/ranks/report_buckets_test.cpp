#include "training/ranks/report_buckets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/support/backend.h"
#include "tests/support/event_listener.h"
#include "tests/training/tiny_store.h"

namespace plexaura::testing::report_buckets_test {

TEST_CASE("each bucket is told with its tensors") {
  TinyStore tiny(1);
  const EventListener listener;
  report_buckets(WeightsImmigration(tiny.store, 1));
  CHECK(listener.heard == std::vector<std::string>{"16 0 fc.weight", "16 1 bn.mean"});
}

TEST_CASE("of many tensors some are named") {
  std::vector<ParameterSpec> specs;
  Placement placement;
  for (int i = 0; i < 20; ++i) {
    specs.push_back({fmt::format("layer{:02}.weight", i),
                     {DType::float32, Shape{2}},
                     ParameterRole::trainable,
                     Initialiser::zeros()});
    placement.append(specs.back().name, specs.back().type, specs.back().role, Layout::row_major(1));
  }
  ParameterStore store(specs);
  store.place(placement, test_backend());
  const EventListener listener;
  report_buckets(WeightsImmigration(store, 1 << 20));
  REQUIRE(listener.heard.size() == 1);
  CHECK(listener.heard[0] ==
        "16 0 layer00.weight, layer01.weight, layer02.weight, layer03.weight, layer04.weight, "
        "layer05.weight and 14 more");
}

}  // namespace plexaura::testing::report_buckets_test
