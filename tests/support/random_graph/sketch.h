#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "testing/values.h"

namespace plexaura::testing {

// An input or a parameter of a random graph.
struct SketchLeaf {
  std::string name;
  TensorType type;
  bool is_parameter = false;
  Node node = {};
};

// A random graph that is being built, and its text as lines of C++. Every choice depends on the number of the step that
// makes it and on the candidates alone, so that a graph changes little if one of its steps is left out.
class Sketch {
 public:
  Sketch(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  // Starts a step: the next choices depend on this number.
  void begin(std::uint64_t seed);

  Graph& graph() { return graph_; }
  DType dtype() const { return dtype_; }
  const std::vector<Node>& nodes() const { return nodes_; }  // floating, of dtype()
  const std::vector<SketchLeaf>& leaves() const { return leaves_; }
  const std::string& text() const { return text_; }
  const std::string& name_of(const Node& node) const { return names_.at(node.value()); }

  // Operands: values that were made before or, if none is suitable, new leaves.
  Node any() { return of_rank(0, 5); }
  Node of_rank(std::int64_t lowest, std::int64_t highest);  // with so many axes, none of which is empty
  Node square_matrix();
  Node like(const Shape& shape);    // of this shape
  Node beside(const Shape& shape);  // of a shape that broadcasts with this one
  Node leaf(Shape shape);           // always a new one
  Node integers(const Shape& shape, std::int64_t low, std::int64_t high);  // constant int64, low <= i < high

  std::int64_t below(std::int64_t count) { return random_->below(count); }
  bool coin() { return below(2) == 0; }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  std::int64_t axis_of(const Node& node);  // from the front or from the end
  std::vector<std::int64_t> axes_of(const Node& node);
  std::vector<std::int64_t> order_of(const Node& node);    // all axes, in random order
  std::vector<std::int64_t> extents_of(const Node& node);  // for another shape with as many elements
  Shape shape(std::int64_t rank);

  // Adds `result` = `expression`, in which the names of variables are replaced by their values.
  template <class... Variables>
  void made(const Node& result, std::string_view expression, std::string_view names,
            const Variables&... variables) {
    add(result, replaced(expression, names, {text_of(variables)...}));
  }

 private:
  template <class Suits>
  std::optional<Node> choose(Suits suits);
  void add(const Node& result, const std::string& expression);
  std::string name_new(const Node& node);
  static std::string replaced(std::string_view expression, std::string_view names,
                              const std::vector<std::string>& values);
  std::string text_of(const Node& node) const { return name_of(node); }
  std::string text_of(bool flag) const { return flag ? "true" : "false"; }
  std::string text_of(std::int64_t number) const { return std::to_string(number); }
  std::string text_of(DType dtype) const { return "DType::" + std::string(plexaura::name_of(dtype)); }
  std::string text_of(const std::vector<std::int64_t>& numbers) const;
  std::string text_of(const Shape& shape) const { return "Shape" + text_of(shape.extents()); }
  std::string text_of(const Graph&) const { return "graph"; }

  Graph& graph_;
  DType dtype_;
  std::uint64_t seed_ = 0;
  std::uint64_t choices_ = 0;
  std::optional<Random> random_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> marks_;  // by node: a number that does not depend on the other steps
  std::vector<SketchLeaf> leaves_;
  std::map<Value, std::string> names_;
  std::string text_;
};

// A kind of node that a step may add to a sketch.
struct SketchEntry {
  void (*add)(Sketch& sketch);
};

// All kinds of nodes, by family.
std::vector<SketchEntry> elementwise_entries();
std::vector<SketchEntry> arranging_entries();
std::vector<SketchEntry> reducing_entries();
std::vector<SketchEntry> matrix_entries();
std::vector<SketchEntry> window_entries();
std::vector<SketchEntry> loss_entries();
std::vector<SketchEntry> loop_entries();

}  // namespace plexaura::testing

// Adds the value of an expression to `sketch`. The variables that it uses follow.
#define PLEXAURA_SKETCH(expression, ...) sketch.made(expression, #expression, #__VA_ARGS__, __VA_ARGS__)
