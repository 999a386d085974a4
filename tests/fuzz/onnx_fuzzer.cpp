// Lets libFuzzer choose the bytes of an ONNX file: see tests/fuzz/onnx.sh.
#include <algorithm>
#include <cstdint>
#include <string>

#include "onnx/model.h"

#include "core/base/error.h"

namespace {

using plexaura::Graph;
using plexaura::Node;
using plexaura::Shape;
using plexaura::Tensor;
using plexaura::TensorType;
using plexaura::onnx::InputFacts;

// Returns the shape of an input, small where the file allows any shape or extent, or a large one.
Shape small_shape(const InputFacts& input) {
  if (!input.has_shape) return {2, 3};
  std::vector<std::int64_t> extents = input.extents;
  extents.resize(std::min<std::size_t>(extents.size(), 6));
  for (std::int64_t& extent : extents) extent = extent < 0 ? 2 : std::min<std::int64_t>(extent, 8);
  return Shape(extents);
}

// Builds the graph of a model twice: for inputs that are fed, and for inputs that are known.
void build(const plexaura::onnx::FileModel& model, bool are_known) {
  Graph graph;
  std::map<std::string, Node, std::less<>> inputs;
  for (const InputFacts& input : model.inputs()) {
    const TensorType type{input.dtype, small_shape(input)};
    if (are_known) {
      Tensor tensor(type);
      std::fill_n(tensor.data(), tensor.bytes(), std::byte{1});
      inputs[input.name] = graph.constant(std::move(tensor));
    } else {
      inputs[input.name] = graph.input(input.name, type);
    }
  }
  model(graph, inputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  for (const bool are_known : {false, true}) {
    try {
      plexaura::onnx::FileModel model(std::string(reinterpret_cast<const char*>(bytes), count), "fuzz.onnx");
      const plexaura::ParameterStore store = model.make_store();
      build(model, are_known);
    } catch (const plexaura::UserError&) {
    }
  }
  return 0;
}
