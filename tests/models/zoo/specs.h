#pragma once

#include <algorithm>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

#include "core/params/module.h"

namespace plexaura::testing {

// Returns the number of elements of the trainable parameters.
inline std::int64_t trainable_elements(Module& module) {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : specs_of(module, DType::float32))
    if (spec.role == ParameterRole::trainable) total += spec.type.shape.elements();
  return total;
}

// Returns the spec of a name. Fails the test if there is none.
inline const ParameterSpec& spec_named(const std::vector<ParameterSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &ParameterSpec::name);
  REQUIRE_MESSAGE(found != specs.end(), name);
  return *found;
}

struct NamedShape {
  const char* name;
  Shape shape;
};

inline void check_shapes(const std::vector<ParameterSpec>& specs, const std::vector<NamedShape>& expected) {
  for (const auto& [name, shape] : expected) {
    CAPTURE(name);
    CHECK(spec_named(specs, name).type.shape == shape);
  }
}

// Returns the shapes of the first outputs of the ops with this name.
inline std::vector<Shape> outputs_of_ops(const Graph& graph, std::string_view name) {
  std::vector<Shape> shapes;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == name) shapes.push_back(graph.record(id).types[0].shape);
  return shapes;
}

}  // namespace plexaura::testing
