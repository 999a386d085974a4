#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"
#include "tests/support/error_text.h"

namespace plexaura::onnx_indices_test {

namespace {

const Tensor& matrix() {
  static const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  return x;
}

}  // namespace

TEST_CASE("indices of elements have as many axes as x, and are not longer") {
  const OneNode gather("GatherElements", 13, {{"axis", 1}});
  CHECK(gather({matrix(), integers({2, 1}, {1, 0})})[0] == floats({2, 1}, {2, 3}));
  CHECK(gather.error({matrix(), integers({2, 1, 1}, {1, 0})}) ==
        "one.onnx: node 0 (GatherElements): indices [2,1,1] along axis 1 do not fit [2,2]");
  CHECK(testing::contains(gather.error({matrix(), integers({2}, {1, 0})}), "do not fit [2,2]"));
  CHECK(testing::contains(gather.error({matrix(), integers({3, 1}, {1, 0, 1})}), "do not fit [2,2]"));
  const OneNode scatter("ScatterElements", 13, {{"axis", 1}});
  CHECK(testing::contains(scatter.error({matrix(), integers({2}, {1, 0}), floats({2}, {1, 0})}),
                          "do not fit [2,2]"));
  CHECK(testing::contains(scatter.error({matrix(), integers({2, 1}, {1, 0}), floats({1, 1}, {1})}),
                          "updates [1,1] must have the shape of the indices"));
}

TEST_CASE("GatherND checks its batch axes") {
  const auto with = [](std::int64_t batch) { return OneNode("GatherND", 13, {{"batch_dims", batch}}); };
  CHECK(with(1)({matrix(), integers({2, 1}, {1, 0})})[0] == floats({2}, {2, 3}));
  CHECK(with(-1).error({matrix(), integers({2, 1}, {1, 0})}) ==
        "one.onnx: node 0 (GatherND): indices [2,1] with -1 batch axes do not fit [2,2]");
  CHECK(testing::contains(with(2).error({matrix(), integers({2, 1}, {1, 0})}), "do not fit"));
  CHECK(testing::contains(with(1).error({matrix(), integers({3, 1}, {1, 0, 1})}), "do not fit"));
  CHECK(testing::contains(with(0).error({matrix(), integers({1, 3}, {0, 0, 0})}), "do not fit"));
}

TEST_CASE("updates of ScatterND have the shape of what they replace") {
  const OneNode scatter("ScatterND", 13);
  CHECK(scatter({matrix(), integers({1, 1}, {1}), floats({1, 2}, {7, 8})})[0] ==
        floats({2, 2}, {1, 2, 7, 8}));
  CHECK(testing::contains(scatter.error({matrix(), integers({1, 1}, {1}), floats({2, 1}, {7, 8})}),
                          "updates [2,1] must have the shape [1,2]"));
}

TEST_CASE("the depth and the values of OneHot are checked") {
  const OneNode one_hot("OneHot", 11);
  CHECK(one_hot({integers({1}, {1}), integers({}, {2}), floats({2}, {0, 5})})[0] == floats({1, 2}, {0, 5}));
  CHECK(testing::contains(one_hot.error({integers({1}, {1}), floats({}, {1e30F}), floats({2}, {0, 5})}),
                          "at most 16777216"));
  CHECK(testing::contains(one_hot.error({integers({1}, {1}), integers({}, {2}), floats({1}, {0})}),
                          "its values must be two"));
}

TEST_CASE("axes, conditions and lengths that do not fit are errors") {
  CHECK(testing::contains(OneNode("Compress", 11, {{"axis", 2}}).error({matrix(), integers({1}, {1})}),
                          "axis 2"));
  CHECK(testing::contains(OneNode("Compress", 11, {{"axis", 0}}).error({matrix(), integers({3}, {0, 0, 1})}),
                          "its condition chooses index 2 of axis 0, which has 2"));
  CHECK(testing::contains(OneNode("ReverseSequence", 10).error({matrix(), integers({1}, {1})}),
                          "do not fit the batches"));
  CHECK(testing::contains(
      OneNode("ReverseSequence", 10, {{"time_axis", 1}}).error({matrix(), integers({2}, {1, 1})}),
      "do not fit the batches"));
}

}  // namespace plexaura::onnx_indices_test
