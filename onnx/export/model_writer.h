#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "onnx/format/proto.h"

#include "core/tensor/tensor.h"

namespace plexaura::onnx {

// The attributes of a node of a file, by their names in the standard.
using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, Tensor>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

// An op that the standard does not have: its name, and the line of the program that made the node.
struct MissingOp {
  std::string op;
  std::string place;
};

// A file beside the model, to which the elements of all initialisers are moved.
struct ExternalFile {
  std::string location;  // its path from the folder of the model
  // Appends bytes to the file; null if the file is not to be written.
  std::function<void(std::string_view)> append;
  bool is_always_used = false;  // false: only for a model that would have 2 GiB or more
};

// Collects the parts of a file: nodes, constants, initialisers, inputs and outputs, each with its type. Nodes must be
// added in topological order.
class ModelWriter {
 public:
  using Names = std::vector<std::string>;

  // Returns a name that no other value has: `name`, or one that begins with it.
  std::string unique(const std::string& name);

  void add_input(const std::string& name, const TensorType& type);
  void add_initialiser(const std::string& name, Tensor value);
  // Adds a node with this name, and returns the names of its outputs.
  Names add(const std::string& name, std::string_view op, Names inputs, const std::vector<TensorType>& types,
            Attributes attributes);
  // Returns the name of a constant with this value. Equal small constants are stored once.
  std::string constant(const Tensor& value);
  // Adds a node that stands for an op that the standard does not have.
  Names add_missing(const std::string& name, MissingOp missing, Names inputs, std::size_t outputs);
  // Makes a value an output of the model, with this name.
  void add_output(const std::string& name, const std::string& value, const TensorType& type);

  // Protocol buffers allow less than 2 GiB.
  static constexpr std::size_t largest_file = std::size_t{1} << 31;

  // Removes nodes that no output needs, and returns the bytes of the file. Throws UserError that lists all ops which
  // are missing, and UserError if the tensors within the file have `limit` bytes or more. Offsets in the external file
  // are multiples of 4 KiB, as the standard recommends for mapping it to memory.
  std::string finish(const std::string& graph_name, const ExternalFile* external = nullptr,
                     std::size_t limit = largest_file);

 private:
  TensorProto stored(const std::string& name, Tensor value);
  AttributeProto attribute(const std::string& name, AttributeValue value);
  void remove_unneeded();
  void check_none_missing() const;
  std::size_t bytes_of_tensors() const;
  void move_to(const ExternalFile& external);
  void check_size(std::size_t limit) const;
  void rename_outputs();

  GraphProto graph_;
  std::vector<NodeProto> constants_;                       // nodes of constants, which come first in the file
  std::deque<Tensor> tensors_;                             // elements to which the tensors of the file refer
  std::map<std::string, std::string> names_of_constants_;  // names of constants by type and elements
  std::map<std::string, TensorType> types_;                // types of constants and of the outputs of nodes
  std::map<std::string, MissingOp> missing_;               // missing ops by the name of the node
  std::vector<std::string> outputs_;                       // values that are outputs, by their names in nodes
  std::set<std::string> taken_;
};

}  // namespace plexaura::onnx
