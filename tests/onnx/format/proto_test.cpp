#include "onnx/format/proto.h"

#include <doctest/doctest.h>
#include <string>

#include "core/base/error.h"

namespace plexaura::onnx_proto_test {

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A model whose graph has so many fields with this number, which are empty messages.
std::string model_of_fields(int number, int count) {
  std::string graph;
  for (int i = 0; i < count; ++i) graph += {static_cast<char>(number << 3 | 2), '\0'};
  return "\x3a" + varint(graph.size()) + graph;
}

}  // namespace

TEST_CASE("a file with more small messages than the limit is an error") {
  for (const int number : {1, 5, 11, 12, 13}) {
    CHECK_NOTHROW(onnx::parse_model(model_of_fields(number, 10), 10));
    CHECK_THROWS_WITH_AS(onnx::parse_model(model_of_fields(number, 11), 10),
                         "it has more than 10 nodes, attributes and names, which is the limit", UserError);
  }
}

TEST_CASE("the names and attributes of a node count as messages") {
  const std::string node("\x0a\x06\x0a\x00\x12\x00\x2a\x00", 8);  // an input, an output and an attribute
  const std::string model = "\x3a" + varint(node.size()) + node;
  CHECK(onnx::parse_model(model, 4).graph.nodes[0].attributes.size() == 1);
  CHECK_THROWS_AS(onnx::parse_model(model, 3), UserError);
}

}  // namespace plexaura::onnx_proto_test
