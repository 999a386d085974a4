#include "onnx/export/model_writer.h"

#include <doctest/doctest.h>

#include "onnx/format/proto.h"

#include "tests/support/error_text.h"

namespace plexaura::model_writer_test {

namespace {

const TensorType pair{DType::float32, {2}};

// y = x + w, where w has 8 bytes.
onnx::ModelWriter sum_of_two() {
  onnx::ModelWriter to;
  to.unique("y");
  to.add_input(to.unique("x"), pair);
  to.add_initialiser(to.unique("w"), Tensor(pair));
  to.add_output("y", to.add("sum", "Add", {"x", "w"}, {pair}, {})[0], pair);
  return to;
}

}  // namespace

TEST_CASE("a file with too many bytes of tensors is an error") {
  CHECK(!sum_of_two().finish("g", 9).empty());
  CHECK(testing::user_error([] { sum_of_two().finish("g", 8); }) ==
        "the parameters and constants have 8 bytes, and a file of ONNX has less than 2 GiB; export the parts "
        "of the "
        "model one by one");
}

TEST_CASE("names of values are unique, and equal small constants are one") {
  onnx::ModelWriter to;
  CHECK(to.unique("a") == "a");
  CHECK(to.unique("a") == "a_2");
  CHECK(to.constant(Tensor::scalar(1.0F)) == to.constant(Tensor::scalar(1.0F)));
  CHECK(to.constant(Tensor::scalar(1.0F)) != to.constant(Tensor::scalar(1.0)));
  CHECK(to.constant(Tensor::scalar(1.0F)) != to.constant(Tensor::of({1}, std::vector{1.0F})));
}

TEST_CASE("nodes and initialisers that no output needs are left out") {
  onnx::ModelWriter to = sum_of_two();
  to.add_initialiser(to.unique("unread"), Tensor(pair));
  to.add("unneeded", "Exp", {to.constant(Tensor(pair))}, {pair}, {});
  const onnx::GraphProto graph = onnx::parse_model(to.finish("g")).graph;
  CHECK(graph.nodes.size() == 1);
  CHECK(graph.initialisers.size() == 1);
}

}  // namespace plexaura::model_writer_test
