#include "onnx/format/inline_functions.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "core/base/error.h"

namespace plexaura::onnx {

namespace {

std::string printed(const FunctionProto& function) {
  return function.domain.empty() ? function.name : function.domain + "." + function.name;
}

std::string label_in(const NodeProto& node, std::size_t index) {
  return node.name.empty() ? fmt::format("{}", index) : node.name;
}

[[noreturn]] void fail(const NodeProto& node, std::string_view text) {
  throw UserError(fmt::format("node '{}' ({}): {}", node.name, node.op, text));
}

// The names that values already have.
class TakenNames {
 public:
  void add(const GraphProto& graph) {
    for (const ValueProto& input : graph.inputs) names_.insert(input.name);
    for (const TensorProto& tensor : graph.initialisers) names_.insert(tensor.name);
    for (const NodeProto& node : graph.nodes) {
      names_.insert(node.inputs.begin(), node.inputs.end());
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.graph) add(*attribute.graph);
    }
  }

  // Returns a name that is not taken, and takes it.
  std::string unlike(const std::string& name) {
    std::string unique = name;
    while (!names_.insert(unique).second) unique = fmt::format("{}_{}", name, ++count_);
    return unique;
  }

 private:
  std::set<std::string> names_;
  std::int64_t count_ = 0;
};

// One call of a function.
struct FunctionCall {
  const NodeProto& node;
  const FunctionProto& function;
  // Names of values in the graph, by their names in the function.
  std::map<std::string, std::string> names = {};
  std::set<std::string> inputs = {};  // names of the inputs in the function
  // Attributes of the node, or their defaults, by name.
  std::map<std::string, const AttributeProto*> attributes = {};
};

class FunctionInliner {
 public:
  FunctionInliner(const ModelProto& model, const InlineLimits& limits) : limits_(limits) {
    for (const FunctionProto& function : model.functions)
      if (!functions_.emplace(std::tie(function.domain, function.name, function.overload), &function).second)
        throw UserError(
            fmt::format("it has two functions with the name '{}'; names must differ", printed(function)));
    taken_.add(model.graph);
  }

  // Replaces the calls in a graph. `depth`: how many graphs and calls of functions contain it.
  void expand(GraphProto& graph, std::size_t depth) {
    std::vector<NodeProto> expanded;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      graph.nodes[i].name = label_in(graph.nodes[i], i);
      add(std::move(graph.nodes[i]), depth, expanded);
    }
    graph.nodes = std::move(expanded);
  }

 private:
  using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name and overload

  const FunctionProto* function_of(const NodeProto& node) const {
    const auto found = functions_.find(std::tie(node.domain, node.op, node.overload));
    return found == functions_.end() ? nullptr : found->second;
  }

  // Adds a node, or the nodes of the function that it calls.
  void add(NodeProto node, std::size_t depth, std::vector<NodeProto>& to) {
    if (!calls_.empty()) count(node);
    const FunctionProto* function = function_of(node);
    if (function != nullptr) return add_function({node, *function}, depth, to);
    for (AttributeProto& attribute : node.attributes) {
      if (!attribute.graph) continue;
      require_depth(node, depth + 1);
      GraphProto inner = *attribute.graph;
      if (!calls_.empty() && !inner.initialisers.empty())
        fail(node, "a graph within a function must not have initialisers; make them Constant nodes");
      expand(inner, depth + 1);
      attribute.graph = std::make_shared<const GraphProto>(std::move(inner));
    }
    to.push_back(std::move(node));
  }

  void add_function(FunctionCall call, std::size_t depth, std::vector<NodeProto>& to) {
    if (std::ranges::find(calls_, &call.function) != calls_.end())
      fail(call.node,
           fmt::format("the function '{}' calls itself, which is not allowed", printed(call.function)));
    require_depth(call.node, depth + 1);
    count_bytes(64 * (call.function.inputs.size() + call.function.outputs.size() +
                      call.function.attributes.size() + call.function.defaults.size()));
    bind_attributes(call);
    bind_inputs(call);
    const std::vector<NodeProto> passed_on = bind_outputs(call);
    calls_.push_back(&call.function);
    for (std::size_t i = 0; i < call.function.nodes.size(); ++i)
      add(copy_of(call.function.nodes[i], i, call), depth + 1, to);
    to.insert(to.end(), passed_on.begin(), passed_on.end());
    calls_.pop_back();
  }

  static void require_depth(const NodeProto& node, std::size_t depth) {
    if (depth > most_nested)
      fail(node, fmt::format("functions and graphs are nested more than {} deep", most_nested));
  }

  static void bind_attributes(FunctionCall& call) {
    std::set<std::string_view> known(call.function.attributes.begin(), call.function.attributes.end());
    for (const AttributeProto& attribute : call.function.defaults) {
      known.insert(attribute.name);
      call.attributes[attribute.name] = &attribute;
    }
    for (const AttributeProto& attribute : call.node.attributes) {
      if (!known.contains(attribute.name))
        fail(call.node,
             fmt::format("the function '{}' has no attribute '{}'", printed(call.function), attribute.name));
      call.attributes[attribute.name] = &attribute;
    }
  }

  // Maps the inputs of the function to those of the call. An input that the call leaves out gets the empty name.
  static void bind_inputs(FunctionCall& call) {
    const std::vector<std::string>& formal = call.function.inputs;
    const std::vector<std::string>& actual = call.node.inputs;
    if (actual.size() > formal.size())
      fail(call.node, fmt::format("it has {} inputs, but the function '{}' has {}", actual.size(),
                                  printed(call.function), formal.size()));
    call.inputs.insert(formal.begin(), formal.end());
    for (std::size_t i = 0; i < formal.size(); ++i)
      if (!call.names.emplace(formal[i], i < actual.size() ? actual[i] : std::string()).second)
        fail(call.node, fmt::format("the function '{}' has two inputs with the name '{}'; names must differ",
                                    printed(call.function), formal[i]));
  }

  // Maps the outputs of the function to those of the call. Returns Identity nodes for outputs that are also inputs of the
  // function, and for outputs that it returns twice.
  static std::vector<NodeProto> bind_outputs(FunctionCall& call) {
    const std::vector<std::string>& formal = call.function.outputs;
    const std::vector<std::string>& actual = call.node.outputs;
    if (actual.size() > formal.size())
      fail(call.node, fmt::format("it has {} outputs, but the function '{}' has {}", actual.size(),
                                  printed(call.function), formal.size()));
    std::vector<NodeProto> passed_on;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (actual[i].empty()) continue;
      const auto [bound, is_new] = call.names.emplace(formal[i], actual[i]);
      if (is_new) continue;
      NodeProto& node = passed_on.emplace_back();
      node.name = fmt::format("{}/{}", call.node.name, formal[i]);
      node.op = "Identity";
      node.inputs = {bound->second};
      node.outputs = {actual[i]};
      node.version = 1;
    }
    return passed_on;
  }

  std::string name_in(FunctionCall& call, const std::string& name) {
    if (name.empty()) return name;
    const auto found = call.names.find(name);
    if (found != call.names.end()) return found->second;
    return call.names[name] = taken_.unlike(fmt::format("{}/{}", call.node.name, name));
  }

  // Returns the name in the graph of a value that a node of the function makes. Throws UserError if `name` is that of an
  // input.
  std::string new_name_in(FunctionCall& call, const std::string& name) {
    if (!name.empty() && call.inputs.contains(name))
      fail(call.node, fmt::format("the function '{}' makes the value '{}', which is one of its inputs",
                                  printed(call.function), name));
    return name_in(call, name);
  }

  NodeProto copy_of(const NodeProto& node, std::size_t index, FunctionCall& call) {
    NodeProto copy;
    copy.name = fmt::format("{}/{}", call.node.name, label_in(node, index));
    copy.op = node.op;
    copy.domain = node.domain;
    copy.overload = node.overload;
    for (const std::string& input : node.inputs) copy.inputs.push_back(name_in(call, input));
    for (const std::string& output : node.outputs) copy.outputs.push_back(new_name_in(call, output));
    for (const AttributeProto& attribute : node.attributes) add_attribute(copy, attribute, call);
    if (function_of(node) != nullptr) return copy;
    const auto version = call.function.opsets.find(node.domain);
    if (version == call.function.opsets.end())
      fail(copy, fmt::format("the function '{}' names no version of the ops of its domain '{}'",
                             printed(call.function), node.domain));
    copy.version = version->second;
    return copy;
  }

  // Adds an attribute. If it refers to an attribute that the call does not give and that has no default, leaves it out.
  void add_attribute(NodeProto& to, const AttributeProto& attribute, FunctionCall& call) {
    if (attribute.refers_to.empty()) {
      to.attributes.push_back(attribute);
      if (attribute.graph)
        to.attributes.back().graph = std::make_shared<const GraphProto>(copy_of(*attribute.graph, call));
      return;
    }
    const auto value = call.attributes.find(attribute.refers_to);
    if (value == call.attributes.end()) return;
    to.attributes.push_back(*value->second);
    to.attributes.back().name = attribute.name;
  }

  // Returns a copy of a graph that is an attribute of a node of the function, with the names of this call.
  GraphProto copy_of(const GraphProto& graph, FunctionCall& call) {
    GraphProto copy;
    copy.name = graph.name;
    copy.initialisers = graph.initialisers;
    copy.has_sparse = graph.has_sparse;
    for (const ValueProto& input : graph.inputs) {
      copy.inputs.push_back(input);
      copy.inputs.back().name = new_name_in(call, input.name);
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      copy.nodes.push_back(copy_of(graph.nodes[i], i, call));
    for (const ValueProto& output : graph.outputs) {
      copy.outputs.push_back(output);
      copy.outputs.back().name = name_in(call, output.name);
    }
    return copy;
  }

  // Counts a node within a function. Throws UserError beyond the limit.
  void count(const NodeProto& node) {
    if (++nodes_ > limits_.nodes)
      fail(node,
           fmt::format("the calls of the file's functions become more than {} nodes up to here, which is "
                       "the limit; export the model with fewer calls",
                       limits_.nodes));
    count_bytes(bytes_of(node));
  }

  void count_bytes(std::size_t bytes) {
    bytes_ += static_cast<std::int64_t>(bytes);
    if (bytes_ > limits_.bytes)
      throw UserError(fmt::format(
          "the calls of the file's functions become more than {} bytes of names and attributes, which is the "
          "limit; export the model with fewer calls",
          limits_.bytes));
  }

  static std::size_t bytes_of(const NodeProto& node) {
    std::size_t bytes = node.name.size() + node.op.size() + node.domain.size() + node.overload.size();
    const auto add_names = [&](const std::vector<std::string>& names) {
      for (const std::string& name : names) bytes += sizeof name + name.size();
    };
    const auto add_values = [&](const std::vector<ValueProto>& values) {
      for (const ValueProto& value : values)
        bytes += sizeof value + value.name.size() + 8 * value.extents.size() + 64 * value.open_names.size();
    };
    add_names(node.inputs);
    add_names(node.outputs);
    for (const AttributeProto& attribute : node.attributes) {
      bytes += sizeof attribute + attribute.name.size() + attribute.text.size() + 4 * attribute.reals.size() +
               8 * attribute.integers.size();
      add_names(attribute.texts);
      if (!attribute.graph) continue;
      add_values(attribute.graph->inputs);
      add_values(attribute.graph->outputs);
    }
    return bytes;
  }

  std::map<FunctionKey, const FunctionProto*> functions_;
  InlineLimits limits_;
  TakenNames taken_;
  std::vector<const FunctionProto*> calls_;  // the functions around the current node, the outermost first
  std::int64_t nodes_ = 0;                   // number of nodes within functions
  std::int64_t bytes_ = 0;
};

}  // namespace

void inline_functions(ModelProto& model, const InlineLimits& limits) {
  if (model.functions.empty()) return;
  FunctionInliner(model, limits).expand(model.graph, 0);
  model.functions.clear();
}

}  // namespace plexaura::onnx
