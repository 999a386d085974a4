#include "onnx/format/wire.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::onnx {

static_assert(std::endian::native == std::endian::little, "numbers are read as they are stored");

namespace {

[[noreturn]] void fail_as_damaged(const std::string& what) {
  throw UserError(fmt::format(
      "it is damaged, incomplete, or of another format: {}; copy or export it again, or name another file",
      what));
}

}  // namespace

bool WireReader::next() {
  if (bytes_.empty()) return false;
  const std::uint64_t key = take_varint();
  if (key >> 3 == 0 || key >> 3 >= 1U << 29) fail_as_damaged("a field has an impossible number");
  number_ = static_cast<std::uint32_t>(key >> 3);
  kind_ = static_cast<Kind>(key & 7U);
  switch (kind_) {
    case Kind::varint:
      varint_ = take_varint();
      return true;
    case Kind::fixed64:
      content_ = take(8);
      return true;
    case Kind::fixed32:
      content_ = take(4);
      return true;
    case Kind::bytes:
      content_ = take(take_varint());
      return true;
  }
  fail_as_damaged(fmt::format("field {} is of an unknown kind", number_));
}

std::uint64_t WireReader::take_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(take(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  fail_as_damaged("a number has more than 64 bits");
}

std::string_view WireReader::take(std::uint64_t count) {
  if (count > bytes_.size()) fail_as_damaged("it ends within a field");
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

void WireReader::require(Kind kind) const {
  if (kind_ != kind) fail_as_damaged(fmt::format("field {} has a value of another kind", number_));
}

std::int64_t WireReader::integer() const {
  require(Kind::varint);
  return static_cast<std::int64_t>(varint_);
}

float WireReader::real() const {
  require(Kind::fixed32);
  float value = 0;
  std::memcpy(&value, content_.data(), sizeof value);
  return value;
}

std::string_view WireReader::bytes() const {
  require(Kind::bytes);
  return content_;
}

void WireReader::add_to(std::vector<std::int64_t>& values) const {
  if (kind_ == Kind::varint) return values.push_back(integer());
  WireReader packed(bytes());
  while (!packed.bytes_.empty()) values.push_back(static_cast<std::int64_t>(packed.take_varint()));
}

void WireReader::add_to(std::vector<float>& values) const { add_fixed(values, Kind::fixed32); }
void WireReader::add_to(std::vector<double>& values) const { add_fixed(values, Kind::fixed64); }

template <class T>
void WireReader::add_fixed(std::vector<T>& values, Kind single) const {
  if (kind_ != single) require(Kind::bytes);
  if (content_.size() % sizeof(T) != 0)
    fail_as_damaged(fmt::format("field {} ends within a number", number_));
  const std::size_t before = values.size();
  values.resize(before + content_.size() / sizeof(T));
  if (!content_.empty()) std::memcpy(values.data() + before, content_.data(), content_.size());
}

}  // namespace plexaura::onnx
