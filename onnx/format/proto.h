#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace plexaura::onnx {

// The messages of an ONNX file, as far as they are used. TensorProto::raw refers to the bytes of the file.

// The numbers that the standard gives to the types of elements.
enum class ElementType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  text = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
};

// Returns the dtype with these elements. Throws UserError, which begins with "elements of", if there is none.
DType dtype_of(ElementType type);
ElementType element_type_of(DType dtype);

struct TensorProto {
  std::string name;
  std::vector<std::int64_t> extents;
  ElementType type = ElementType::undefined;
  // The elements are in one of the members below.
  std::optional<std::string_view> raw = {};
  std::vector<float> floats = {};
  std::vector<double> doubles = {};
  std::vector<std::int64_t> integers = {};
  bool is_external = false;  // in another file, at the place that `external` describes
  std::map<std::string, std::string> external = {};  // "location", "offset", "length"
};

struct GraphProto;

// The numbers that the standard gives to the kinds of values of attributes.
enum class AttributeKind : std::int32_t {
  undefined = 0,  // in files of the first versions of the format
  real = 1,
  integer = 2,
  text = 3,
  tensor = 4,
  graph = 5,
  reals = 6,
  integers = 7,
  texts = 8,
};

struct AttributeProto {
  std::string name;
  AttributeKind kind = AttributeKind::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::shared_ptr<const TensorProto> tensor = {};
  std::shared_ptr<const GraphProto> graph = {};
  std::vector<float> reals = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::string> texts = {};
  // Within a function: the name of the call's attribute that gives the value. Empty: this object holds the value.
  std::string refers_to = {};
};

struct NodeProto {
  std::string name;
  std::string op;
  std::string domain;                // "" for the standard's own ops
  std::vector<std::string> inputs;   // "" for an input that is left out
  std::vector<std::string> outputs;  // "" for an output that no one reads
  std::vector<AttributeProto> attributes;
  std::string overload = {};                 // distinguishes functions with one name
  std::optional<std::int64_t> version = {};  // version of its set of ops; empty: that of the model
};

// An input, an output or another value of a graph. An extent that the file leaves open is -1.
struct ValueProto {
  std::string name = {};
  ElementType type = ElementType::undefined;  // undefined if it is no tensor
  std::vector<std::int64_t> extents = {};
  std::map<std::size_t, std::string> open_names =
      {};                 // names of open extents by axis; equal names are equal extents
  bool has_shape = true;  // false: the file does not even say how many axes there are
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initialisers;
  std::vector<ValueProto> inputs;
  std::vector<ValueProto> outputs;
  std::vector<ValueProto> inner_values = {};  // other values, as far as the file has their types
  bool has_sparse = false;
};

// The versions of sets of ops by domain. The domain of the standard's own ops is "".
using OpsetVersions = std::map<std::string, std::int64_t>;

// An op that the file itself defines. A node with this op stands for the nodes of the function.
struct FunctionProto {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;   // names of the attributes without a default
  std::vector<AttributeProto> defaults;  // the attributes with a default
  std::vector<NodeProto> nodes;
  OpsetVersions opsets;
};

struct ModelProto {
  OpsetVersions opsets;
  GraphProto graph;
  std::vector<FunctionProto> functions = {};
};

// The greatest nesting depth of graphs and functions.
constexpr int most_nested = 32;

// Parse the bytes of a whole message. The result refers to the bytes. Graphs within attributes may be nested
// `most_nested` deep, and a model may have `most_messages` nodes, attributes, tensors, values and names. Throw UserError,
// without the name of a file, if the bytes are no such message.
ModelProto parse_model(std::string_view bytes, std::int64_t most_messages = std::int64_t{1} << 22);
TensorProto parse_tensor(std::string_view bytes);

}  // namespace plexaura::onnx
