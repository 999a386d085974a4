// Runs layers on weights and inputs from files and prints how much outputs and gradients differ from those in
// the files. See dev/compare_layers.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "dev/layer_cases.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/vm/vm.h"
#include "training/checkpoints/weights.h"

namespace plexaura {

namespace {

// Returns the tensors whose names begin with `prefix`. Removes the prefix from the names.
SafeTensors part_of(const SafeTensors& file, const std::string& prefix) {
  SafeTensors part;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with(prefix)) part.tensors.emplace_back(name.substr(prefix.size()), tensor);
  return part;
}

// Returns the largest difference of two elements. For elements above 1 it is relative to the element. Returns
// infinity for different shapes.
double difference(const Tensor& found, const Tensor& expected) {
  if (found.shape() != expected.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> a = found.to_doubles();
  const std::vector<double> b = expected.to_doubles();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double each = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    largest = std::isnan(each) ? std::numeric_limits<double>::infinity() : std::max(largest, each);
  }
  return largest;
}

// Appends inputs for the tensors whose names begin with "input." and returns them.
std::vector<Node> inputs_of(Graph& graph, const SafeTensors& file, std::vector<Feed>& feeds) {
  std::vector<Node> inputs;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with("input.")) {
      inputs.push_back(graph.input(name, tensor.type()));
      feeds.push_back({name, tensor});
    }
  return inputs;
}

Tensor tensor_of(const SafeTensors& file, const std::string& name) {
  return part_of(file, name).tensors.at(0).second;
}

// A computed value, and the value that the file has for it.
struct Comparison {
  std::vector<ProgramOutput> outputs;
  std::vector<Tensor> expected;
};

Comparison output_and_gradients(const Node& output, const Node& factor, const ParameterStore& store,
                                const SafeTensors& file) {
  Comparison all{{{.node = output}}, {tensor_of(file, "output")}};
  std::vector<Node> parameters;
  for (const ParameterSpec& spec : store.specs())
    if (spec.role == ParameterRole::trainable) {
      parameters.push_back(output.graph().parameter(spec.name, spec.type));
      all.expected.push_back(tensor_of(file, "gradient." + spec.name));
    }
  for (const Node& slope : gradients(sum(output * factor), parameters))
    all.outputs.push_back({.node = slope});
  return all;
}

// Compares a layer with its file. The file has the tensors "before.NAME": the parameters and buffers before
// the call; "after.NAME": the buffers after it; "input.0", "input.1" and so on; "output"; and
// "gradient.NAME": the gradient of sum(output * factor) with respect to a parameter.
double compared(const LayerCase& of, const std::filesystem::path& path, Backend& backend) {
  const SafeTensors file = read_safetensors(path);
  ParameterStore store = make_store(*of.module, DType::float32);
  put_weights(path, part_of(file, "before."), store);
  Graph graph(of.mode);
  std::vector<Feed> feeds;
  const Node output = of.call(inputs_of(graph, file, feeds));
  feeds.push_back({"factor", tensor_of(file, "factor")});
  const Comparison all = output_and_gradients(output, graph.input("factor", output.type()), store, file);
  VM vm(compile(graph, all.outputs, backend, {.placement = &store.placement()}), backend, {.store = &store});
  vm.run(feeds);
  double largest = 0;
  for (std::size_t i = 0; i < all.outputs.size(); ++i)
    largest = std::max(largest, difference(vm.output(i), all.expected[i]));
  vm.wait();
  const SafeTensors after = part_of(file, "after.");
  for (const auto& [name, tensor] : after.tensors)
    largest = std::max(largest, difference(store.read(name), tensor));
  return largest;
}

// Returns true if each difference is at most `most`.
bool compare_all(const std::filesystem::path& folder, double most, Backend& backend) {
  bool all = true;
  for (const LayerCase& each : layer_cases()) {
    const double largest = compared(each, folder / (each.name + ".safetensors"), backend);
    std::fputs(
        fmt::format("{:<26} {:>9.1e}{}\n", each.name, largest, largest <= most ? "" : "  too large").c_str(),
        stdout);
    all = all && largest <= most;
  }
  return all;
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Compares the outputs and gradients of layers with those in files", "run_layers");
  std::string folder;
  std::string backend = "cpu";
  double most = 1e-5;
  app.option_defaults()->always_capture_default();
  app.add_option("FOLDER", folder, "has a safetensors file for each case of dev/layer_cases.cpp")->required();
  app.add_option("--backend", backend, "cpu, portable or a plugin; options follow its name");
  app.add_option("--most", most, "the largest difference that is permitted");
  return run_tool(app, argc, argv, [&] {
    if (!compare_all(folder, most, *open_backend(backend)))
      throw UserError("a layer differs from PyTorch's; see the lines above that say 'too large'");
  });
}
