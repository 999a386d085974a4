#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_windows_test {

using Extents = WrittenGraph::Extents;

TEST_CASE("Col2Im adds up overlapping windows, also of one axis") {
  const OneNode pairs("Col2Im", 18);
  const Tensor columns = floats({1, 2, 3}, {1, 2, 3, 10, 20, 30});
  CHECK(pairs({columns, integers({1}, {4}), integers({1}, {2})})[0] == floats({1, 1, 4}, {1, 12, 23, 30}));
  const OneNode padded("Col2Im", 18, {{"pads", Extents{1, 0}}});
  CHECK(padded({columns, integers({1}, {3}), integers({1}, {2})})[0] == floats({1, 1, 3}, {12, 23, 30}));
  const OneNode dilated("Col2Im", 18, {{"dilations", Extents{2}}});
  CHECK(dilated({columns, integers({1}, {5}), integers({1}, {2})})[0] ==
        floats({1, 1, 5}, {1, 2, 13, 20, 30}));
}

TEST_CASE("columns that do not fit the image are an error") {
  const OneNode node("Col2Im", 18);
  const Tensor columns = floats({1, 2, 3}, {1, 2, 3, 10, 20, 30});
  CHECK(node.error({columns, integers({1}, {5}), integers({1}, {2})}) ==
        "one.onnx: node 0 (Col2Im): columns [1,2,3] do not fit 2 elements of a block at 4 places");
  CHECK(node.error({columns, integers({1}, {4}), integers({2}, {2, 1})})
            .find("the shape of the block has 2 numbers") != std::string::npos);
  CHECK(node.error({columns, integers({1}, {1}), integers({1}, {2})}).find("does not fit 1 elements") !=
        std::string::npos);
  CHECK(node.error({columns, integers({1}, {std::int64_t{1} << 40}), integers({1}, {2})})
            .find("extents of the image must be from 1") != std::string::npos);
}

TEST_CASE(
    "ConvTranspose cuts the odd element at the start for a given shape, but for SAME_UPPER at the end") {
  const std::vector<Tensor> inputs{floats({1, 1, 2}, {1, 10}),
                                   floats({1, 1, 2}, {1, 2})};  // 1, 12, 20 in full
  const OneNode::Attributes shape{{"output_shape", Extents{2}}};
  const auto cut = [&](const char* auto_pad) {
    OneNode::Attributes attributes = shape;
    attributes.emplace_back("auto_pad", auto_pad);
    return OneNode("ConvTranspose", 11, attributes)(inputs)[0];
  };
  CHECK(OneNode("ConvTranspose", 11, shape)(inputs)[0] == floats({1, 1, 2}, {12, 20}));
  CHECK(cut("SAME_LOWER") == floats({1, 1, 2}, {12, 20}));
  CHECK(cut("SAME_UPPER") == floats({1, 1, 2}, {1, 12}));
}

}  // namespace plexaura::onnx_windows_test
