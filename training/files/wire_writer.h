#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace plexaura {

// Writes the fields of a message in the wire format of protocol buffers.
class WireWriter {
 public:
  void integer(std::uint32_t number, std::int64_t value);
  void real(std::uint32_t number, float value);
  void real64(std::uint32_t number, double value);
  void bytes(std::uint32_t number, std::string_view value);

  // Writes a field that is a message. `fill` writes the fields of that message to this writer.
  template <class Fill>
  void message(std::uint32_t number, Fill&& fill) {
    key(number, 2);
    const std::size_t begin = bytes_.size();
    fill();
    bytes_.insert(begin, varint(bytes_.size() - begin));
  }

  // Returns the bytes, and leaves this writer empty.
  std::string take() { return std::exchange(bytes_, {}); }

 private:
  static std::string varint(std::uint64_t value);
  void key(std::uint32_t number, std::uint32_t kind);
  template <class Real>
  void append(Real value);

  std::string bytes_;
};

}  // namespace plexaura
