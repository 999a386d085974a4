// Exports models of the zoo, and imports them again.

#include <algorithm>
#include <doctest/doctest.h>

#include "onnx/exporter.h"
#include "onnx/format/proto.h"
#include "onnx/open_batch.h"
#include "onnx/runner.h"
#include "onnx/stored_data.h"

#include "models/predictor.h"
#include "models/zoo/model.h"
#include "testing/values.h"
#include "tests/support/backend.h"

namespace plexaura::zoo_test {

namespace {

// Initial values hide errors: moments are 0 and 1, and the scales of residuals 0.
void draw_parameters(ParameterStore& store) {
  testing::Random random(1);
  for (const ParameterSpec& spec : store.specs()) {
    const bool is_variance = spec.name.ends_with("running_var");
    store.write(spec.name, random.tensor(spec.type, is_variance ? 0.5 : -0.2, is_variance ? 1.5 : 0.2));
  }
}

std::string exported(const Model& model, const ParameterStore& store, const TensorType& samples) {
  Graph graph(Mode::inference);
  const Node outputs = model(graph.input("samples", samples));
  return onnx::export_graph(std::vector<onnx::ExportedOutput>{{"outputs", outputs}}, store);
}

double distance_after_round_trip(const std::string& name, const Shape& sample, std::int64_t classes) {
  const Config config = Config::load(PLEXAURA_SOURCE "/models/" + name + ".yaml");
  const std::unique_ptr<Model> model = make_model(config, sample, classes);
  ParameterStore store = make_store(*model, DType::float32);
  draw_parameters(store);
  std::vector<std::int64_t> extents{2};
  extents.insert(extents.end(), sample.begin(), sample.end());
  testing::Random random(2);
  const Tensor samples = random.tensor({DType::float32, Shape(extents)}, -1, 1);
  onnx::FileModel file(exported(*model, store, samples.type()), name);
  ParameterStore of_file = file.make_store();
  const std::vector<Tensor> found =
      onnx::Runner(file, of_file, testing::test_backend())({{"samples", samples}});
  Predictor predict([&](const Node& x) { return (*model)(x); }, store, testing::test_backend());
  const Tensor expected = predict(samples);
  CHECK(found.at(0).type() == expected.type());
  return onnx::largest_distance(found.at(0), expected);
}

}  // namespace

TEST_CASE("models of the zoo compute the same after export and import") {
  CHECK(distance_after_round_trip("iris", {4}, 3) <= 1e-6);
  CHECK(distance_after_round_trip("throws", {3}, 3) <= 1e-6);
  CHECK(distance_after_round_trip("mnist_cnn", {1, 28, 28}, 10) <= 1e-6);
  CHECK(distance_after_round_trip("mnist_lstm", {1, 28, 28}, 10) <= 1e-6);
  CHECK(distance_after_round_trip("mnist_vit", {1, 28, 28}, 10) <= 1e-6);
  CHECK(distance_after_round_trip("resnet18", {3, 32, 32}, 5) <= 1e-6);
  CHECK(distance_after_round_trip("mobilenet_v2", {3, 32, 32}, 5) <= 1e-6);
  CHECK(distance_after_round_trip("mnist_unet", {1, 28, 28}, 10) <= 1e-6);
}

TEST_CASE("a recurrent net for any number of samples multiplies their words and not all words of its table") {
  const Config config = Config::parse(
      "model: {name: convnet, task: language_model, layers: [{type: embedding, units: 3}, {type: lstm, "
      "units: 4}, "
      "{type: linear}]}\n",
      "x.yaml");
  const std::unique_ptr<Model> model = make_model(config.section("model"), Shape{2}, 7, {});
  ParameterStore store = make_store(*model, DType::float32);
  draw_parameters(store);
  const auto for_samples = [&](std::int64_t samples) {
    return exported(*model, store, {DType::int64, {samples, 2}});
  };
  const std::string bytes = onnx::with_open_batch(for_samples(101), for_samples(103));
  for (const onnx::NodeProto& node : onnx::parse_model(bytes).graph.nodes)
    if (std::ranges::find(node.inputs, "embedding1.weight") != node.inputs.end()) CHECK(node.op == "Gather");
  onnx::FileModel file(bytes, "open.onnx");
  ParameterStore of_file = file.make_store();
  onnx::Runner run(file, of_file, testing::test_backend());
  Predictor predict([&](const Node& x) { return (*model)(x); }, store, testing::test_backend());
  for (const Tensor& words :
       {Tensor::of<std::int64_t>({1, 2}, {6, 0}), Tensor::of<std::int64_t>({3, 2}, {1, 2, 3, 4, 5, 5})})
    CHECK(onnx::largest_distance(run({{"samples", words}}).at(0), predict(words)) <= 1e-6);
}

}  // namespace plexaura::zoo_test
