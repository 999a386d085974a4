// Trains, saves, loads and uses a model from a YAML file. docs/guide/using_a_model.md explains it.
// Run it from the project's folder: build/examples/using_a_model

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <plexaura/plexaura.h>

using namespace plexaura;

// Standardises samples [N, values] like a StandardisedDataset does with training samples.
Tensor scaled(Tensor samples, const Standardisation& measured) {
  const std::span<float> values = samples.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % measured.mean.size();
    values[i] = (values[i] - measured.mean[column]) / measured.stddev[column];
  }
  return samples;
}

// Returns true if the loaded weights equal the saved ones.
bool save_and_load(Model& model, const ParameterStore& store, const std::filesystem::path& file) {
  save_weights(file, store);
  ParameterStore loaded = make_store(model, DType::float32);
  load_weights(file, loaded);
  // Prepares the model for another task with other classes: the last layer keeps its random start, and a
  // Trainer trains this layer alone.
  std::vector<ParameterSpec> specs = specs_of(model, DType::float32);
  for (const char* pattern : {"fc1.*", "fc2.*"}) freeze(specs, pattern);
  ParameterStore tuned(specs, /*seed=*/2);
  load_weights(file, tuned, {"fc3.*"});
  return loaded.read("fc1.weight") == store.read("fc1.weight") &&
         tuned.read("fc1.weight") == store.read("fc1.weight") &&
         tuned.spec("fc1.weight").role == ParameterRole::frozen &&
         tuned.read("fc3.weight") != store.read("fc3.weight");
}

// Returns the gradient of a class's logit with respect to the measurements of one flower [1, 4].
Tensor input_gradient(Model& model, ParameterStore& store, Backend& backend, const Tensor& flower,
                      std::int64_t label) {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", flower.type());
  const Node logit =
      sum(model(x) * one_hot(graph.constant(Tensor::of<std::int64_t>({1}, {label})), 3, DType::float32));
  Function slope(graph, {x}, {gradients(logit, {x})[0]}, backend, &store);
  return slope(flower)[0];
}

// Returns a value from inside the graph, here the input of the model's first tanh.
Tensor before_first_tanh(Model& model, ParameterStore& store, Backend& backend, const Tensor& flower) {
  Graph graph(Mode::inference);
  model(graph.input("x", flower.type()));
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == "tanh")
      return evaluate(Node(graph, graph.record(id).inputs[0]), {{"x", flower}}, backend, &store);
  throw UserError("the model has no tanh");
}

int main() try {
  const auto backend = open_backend("cpu");
  const Config config = Config::load("models/iris.yaml");
  const auto table = std::make_shared<CsvDataset>("models/iris.csv");
  const Standardisation measured = measure_standardisation(*table);
  const auto data = std::make_shared<StandardisedDataset>(table, measured);
  const auto model = make_model(config, data->sample_shape(), 3);
  ParameterStore store = make_store(*model, DType::float32, /*seed=*/1);
  Trainer trainer(
      {.model = builder_of(*model), .store = store, .backend = *backend, .train = data},
      {.batch_size = 10, .epochs = 60, .optimizer = {.kind = OptimizerSpec::adam}, .learning_rate = 0.01});
  trainer.run();

  const std::filesystem::path file = std::filesystem::temp_directory_path() / "iris.safetensors";
  const bool same = save_and_load(*model, store, file);

  Predictor predict(config, file, data->sample_shape(), 3, *backend);
  // The measurements of a flower in centimetres: length and width of the sepal, length and width of the
  // petal.
  const Tensor flower = scaled(Tensor::of<float>({1, 4}, {5.9F, 3.0F, 5.1F, 1.8F}), measured);
  const Tensor logits = predict(flower);
  const auto best = std::max_element(logits.as<float>().begin(), logits.as<float>().end());
  const std::int64_t label = best - logits.as<float>().begin();
  std::printf("it is %s\n", data->class_names()[static_cast<std::size_t>(label)].c_str());

  ParameterStore loaded = make_store(*model, DType::float32);
  load_weights(file, loaded);
  const Tensor slope = input_gradient(*model, loaded, *backend, flower, label);
  const Tensor hidden = before_first_tanh(*model, loaded, *backend, flower);
  std::printf("the petal's length moves its logit by %.2f a centimetre; %s units in the first layer\n",
              slope.as<float>()[2] / measured.stddev[2], std::to_string(hidden.elements()).c_str());
  std::filesystem::remove(file);
  return same && label == 2 && slope.as<float>()[2] > 0 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
