#include "training/files/wire_writer.h"

#include <bit>
#include <cstring>

namespace plexaura {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory");

std::string WireWriter::varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

void WireWriter::key(std::uint32_t number, std::uint32_t kind) {
  bytes_ += varint(std::uint64_t{number} << 3 | kind);
}

void WireWriter::integer(std::uint32_t number, std::int64_t value) {
  key(number, 0);
  bytes_ += varint(static_cast<std::uint64_t>(value));
}

template <class Real>
void WireWriter::append(Real value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof raw);
}

void WireWriter::real(std::uint32_t number, float value) {
  key(number, 5);
  append(value);
}

void WireWriter::real64(std::uint32_t number, double value) {
  key(number, 1);
  append(value);
}

void WireWriter::bytes(std::uint32_t number, std::string_view value) {
  key(number, 2);
  bytes_ += varint(value.size());
  bytes_ += value;
}

}  // namespace plexaura
