#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/dtype.h"

namespace plexaura {

// Writes small ONNX files for tests.
class WrittenGraph {
 public:
  // A graph within a node, such as the body of a loop.
  struct Inner {
    std::string bytes;
  };
  // The value of an attribute in a function that is an attribute of the call.
  struct Reference {
    std::string to;
  };
  using Names = std::vector<std::string>;
  using Extents = std::vector<std::int64_t>;
  using Attribute = std::variant<std::int64_t, float, std::string, Extents, Names, Inner, Reference>;
  using Attributes = std::vector<std::pair<std::string, Attribute>>;

  // The op is one of the standard, or "DOMAIN:OP".
  void node(const std::string& op, const Names& inputs, const Names& outputs,
            const Attributes& attributes = {}) {
    std::string bytes;
    for (const std::string& input : inputs) bytes += field(1, input);
    for (const std::string& output : outputs) bytes += field(2, output);
    const std::size_t colon = op.find(':');
    bytes += field(4, colon == std::string::npos ? op : op.substr(colon + 1));
    if (colon != std::string::npos) bytes += field(7, op.substr(0, colon));
    for (const auto& [name, value] : attributes) bytes += field(5, named_attribute(name, value));
    bytes_ += field(1, bytes);
    nodes_.push_back(bytes);
  }

  template <class T>
  void initialiser(const std::string& name, const Extents& extents, const std::vector<T>& values) {
    std::string raw(values.size() * sizeof(T), '\0');
    if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
    bytes_ += field(5, tensor(name, extents, type_number(dtype_of<T>)) + field(9, raw));
  }
  void initialiser(const std::string& name, const Extents& extents, const std::vector<float>& values) {
    initialiser<float>(name, extents, values);
  }

  // Adds an initialiser whose elements are in another file. `more` are further entries, such as "offset".
  void external(const std::string& name, const Extents& extents, const std::string& location,
                const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::string entries = field(13, field(1, std::string("location")) + field(2, location));
    for (const auto& [key, value] : more) entries += field(13, field(1, key) + field(2, value));
    bytes_ += field(5, tensor(name, extents, 1) + entries + field(14, std::int64_t{1}));
  }

  // An extent of -1 is left open. `type` is the standard's number of the type of elements; 1 is float32.
  void input(const std::string& name, const Extents& extents, std::int64_t type = 1) {
    bytes_ += field(11, value(name, extents, type));
  }
  void output(const std::string& name, const Extents& extents = {}, std::int64_t type = 1) {
    bytes_ += field(12, value(name, extents, type));
  }
  // Adds an input of a graph within a node, without a type.
  void untyped_input(const std::string& name) { bytes_ += field(11, field(1, name)); }
  Inner inner() const { return {bytes_}; }

  // Returns the nodes as a function of the domain "f", which uses this version of the standard's ops.
  std::string function(const std::string& name, const Names& inputs, const Names& outputs,
                       std::int64_t version, const Names& attributes = {},
                       const Attributes& defaults = {}) const {
    std::string bytes = field(1, name) + field(10, std::string("f")) + field(9, field(2, version));
    for (const std::string& input : inputs) bytes += field(4, input);
    for (const std::string& output : outputs) bytes += field(5, output);
    for (const std::string& attribute : attributes) bytes += field(6, attribute);
    for (const std::string& node : nodes_) bytes += field(7, node);
    for (const auto& [key, value] : defaults) bytes += field(11, named_attribute(key, value));
    return bytes;
  }

  // Returns a file that uses this version of the standard's ops, with these functions.
  std::string model(std::int64_t version, const std::vector<std::string>& functions = {}) const {
    std::string bytes = field(1, std::int64_t{8}) + field(7, bytes_) + field(8, field(2, version));
    for (const std::string& function : functions) bytes += field(25, function);
    return bytes;
  }

  // Returns the standard's number of a type of elements.
  static std::int64_t type_number(DType dtype) {
    switch (dtype) {
      case DType::uint8:
        return 2;
      case DType::int32:
        return 6;
      case DType::int64:
        return 7;
      case DType::boolean:
        return 9;
      case DType::float16:
        return 10;
      case DType::float64:
        return 11;
      default:
        return 1;
    }
  }

 private:
  static std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  }
  static std::string field(std::uint64_t number, std::int64_t value) {
    return varint(number << 3) + varint(static_cast<std::uint64_t>(value));
  }
  static std::string field(std::uint64_t number, const std::string& bytes) {
    return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
  }

  static std::string named_attribute(const std::string& name, const Attribute& value) {
    return field(1, name) + std::visit([](const auto& of) { return attribute(of); }, value);
  }
  static std::string attribute(std::int64_t value) { return field(3, value) + field(20, std::int64_t{2}); }
  static std::string attribute(float value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return varint(2 << 3 | 5) + bytes + field(20, std::int64_t{1});
  }
  static std::string attribute(const std::string& value) {
    return field(4, value) + field(20, std::int64_t{3});
  }
  static std::string attribute(const Extents& values) {
    std::string bytes;
    for (const std::int64_t value : values) bytes += field(8, value);
    return bytes + field(20, std::int64_t{7});
  }
  static std::string attribute(const Names& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += field(9, value);
    return bytes + field(20, std::int64_t{8});
  }

  static std::string attribute(const Inner& graph) {
    return field(6, graph.bytes) + field(20, std::int64_t{5});
  }

  static std::string attribute(const Reference& reference) { return field(21, reference.to); }

  static std::string tensor(const std::string& name, const Extents& extents, std::int64_t type) {
    std::string bytes;
    for (const std::int64_t extent : extents) bytes += field(1, extent);
    return bytes + field(2, type) + field(8, name);
  }
  static std::string value(const std::string& name, const Extents& extents, std::int64_t type) {
    std::string shape;
    for (const std::int64_t extent : extents)
      shape += field(1, extent < 0 ? std::string() : field(1, extent));
    return field(1, name) + field(2, field(1, field(1, type) + field(2, shape)));
  }

  std::string bytes_;  // of the graph
  Names nodes_;        // their bytes
};

}  // namespace plexaura
