#include "onnx/export/model_writer.h"

#include <doctest/doctest.h>
#include <map>

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
  CHECK(!sum_of_two().finish("g", nullptr, 9).empty());
  CHECK(testing::user_error([] { sum_of_two().finish("g", nullptr, 8); }) ==
        "the parameters and constants within the file have 8 bytes, and a file of ONNX has less than 2 GiB; "
        "store parameters in a file of their own, and make large constants parameters");
}

TEST_CASE("the elements of initialisers move to an external file, at multiples of 4 KiB") {
  std::string data;
  onnx::ExternalFile external{"m.data", [&](std::string_view bytes) { data += bytes; }, true};
  onnx::ModelWriter to = sum_of_two();
  to.add_initialiser(to.unique("v"), Tensor::of({1}, std::vector{5.0F}));
  to.add_output(to.unique("z"), to.add("difference", "Sub", {"x", "v"}, {pair}, {})[0], pair);
  const std::string bytes = to.finish("g", &external);
  const onnx::GraphProto graph = onnx::parse_model(bytes).graph;
  using Entries = std::map<std::string, std::string>;
  REQUIRE(graph.initialisers.size() == 2);
  CHECK(graph.initialisers[0].is_external);
  CHECK(graph.initialisers[0].external == Entries{{"location", "m.data"}, {"offset", "0"}, {"length", "8"}});
  CHECK(graph.initialisers[1].external ==
        Entries{{"location", "m.data"}, {"offset", "4096"}, {"length", "4"}});
  const float five = 5;
  CHECK(data == std::string(4096, '\0') + std::string(reinterpret_cast<const char*>(&five), sizeof five));
}

TEST_CASE("an external file is used only for a file that would be too large, unless it is always used") {
  std::string data;
  const onnx::ExternalFile external{"m.data", [&](std::string_view bytes) { data += bytes; }};
  CHECK(sum_of_two().finish("g", &external, 9) == sum_of_two().finish("g", nullptr, 9));
  CHECK(data.empty());
  const std::string bytes = sum_of_two().finish("g", &external, 8);
  CHECK(onnx::parse_model(bytes).graph.initialisers.at(0).is_external);
  CHECK(data.size() == 8);
  onnx::ModelWriter constants = sum_of_two();
  constants.add_output("z", constants.add("s", "Exp", {constants.constant(Tensor(pair))}, {pair}, {})[0],
                       pair);
  CHECK(testing::user_error([&] {
          constants.finish("g", &external, 8);
        }).starts_with("the parameters and constants within the file have 8 bytes"));
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
