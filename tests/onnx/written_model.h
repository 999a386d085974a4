#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace plexaura {

// Writes small ONNX files for tests.
class WrittenGraph {
 public:
  using Names = std::vector<std::string>;
  using Extents = std::vector<std::int64_t>;

  void node(const std::string& op, const Names& inputs, const Names& outputs,
            const std::vector<std::pair<std::string, std::int64_t>>& integers = {}) {
    std::string bytes;
    for (const std::string& input : inputs) bytes += field(1, input);
    for (const std::string& output : outputs) bytes += field(2, output);
    bytes += field(4, op);
    for (const auto& [name, value] : integers)
      bytes += field(5, field(1, name) + field(3, value) + field(20, std::int64_t{2}));
    bytes_ += field(1, bytes);
  }

  void initialiser(const std::string& name, const Extents& extents, const std::vector<float>& values) {
    std::string raw(values.size() * sizeof(float), '\0');
    std::memcpy(raw.data(), values.data(), raw.size());
    bytes_ += field(5, tensor(name, extents) + field(9, raw));
  }

  void external(const std::string& name, const Extents& extents, const std::string& location) {
    const std::string entry = field(1, std::string("location")) + field(2, location);
    bytes_ += field(5, tensor(name, extents) + field(13, entry) + field(14, std::int64_t{1}));
  }

  // An extent of -1 is left open. `type` is the standard's number of the type of elements; 1 is float32.
  void input(const std::string& name, const Extents& extents, std::int64_t type = 1) {
    bytes_ += field(11, value(name, extents, type));
  }
  void output(const std::string& name) { bytes_ += field(12, value(name, {}, 1)); }

  // Returns a file that uses this version of the standard's ops.
  std::string model(std::int64_t version) const {
    return field(1, std::int64_t{8}) + field(7, bytes_) + field(8, field(2, version));
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
  static std::string tensor(const std::string& name, const Extents& extents) {
    std::string bytes;
    for (const std::int64_t extent : extents) bytes += field(1, extent);
    return bytes + field(2, std::int64_t{1}) + field(8, name);
  }
  static std::string value(const std::string& name, const Extents& extents, std::int64_t type) {
    std::string shape;
    for (const std::int64_t extent : extents)
      shape += field(1, extent < 0 ? std::string() : field(1, extent));
    return field(1, name) + field(2, field(1, field(1, type) + field(2, shape)));
  }

  std::string bytes_;  // of the graph
};

}  // namespace plexaura
