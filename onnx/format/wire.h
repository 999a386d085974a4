#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura::onnx {

// Reads the fields of one message in the wire format of protocol buffers. It is a reader of our own, and not a
// library with a generator: the format has four kinds of fields, a library would need the standard's .proto file
// and a step of the build, and the bounds that a hostile file needs are easier to check here. bytes() copies
// nothing: its result is a part of the bytes that were passed, so that memory is proportional to the file's size.
// Every function throws UserError, without the name of the file, if the bytes are no such message.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  // Goes to the next field; false at the end of the message.
  bool next();

  std::uint32_t number() const { return number_; }  // number of the current field

  // Return the value of the current field. These functions throw if the field has another kind of value.
  std::int64_t integer() const;
  float real() const;
  std::string_view bytes() const;
  std::string text() const { return std::string(bytes()); }

  // Add the values of a repeated field, which has one value or, packed, many.
  void add_to(std::vector<std::int64_t>& values) const;
  void add_to(std::vector<float>& values) const;
  void add_to(std::vector<double>& values) const;

 private:
  enum class Kind : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  std::uint64_t take_varint();
  std::string_view take(std::uint64_t count);
  void require(Kind kind) const;
  template <class T>
  void add_fixed(std::vector<T>& values, Kind single) const;

  std::string_view bytes_;  // bytes that were not read yet
  std::uint32_t number_ = 0;
  Kind kind_ = Kind::varint;
  std::uint64_t varint_ = 0;
  std::string_view content_;  // content of a field of any other kind
};

}  // namespace plexaura::onnx
