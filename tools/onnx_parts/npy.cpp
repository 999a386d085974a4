#include "tools/onnx_parts/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as they are in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::array<std::pair<std::string_view, DType>, 7> types{{
    {"<f8", DType::float64},
    {"<f4", DType::float32},
    {"<f2", DType::float16},
    {"<i8", DType::int64},
    {"<i4", DType::int32},
    {"|u1", DType::uint8},
    {"|b1", DType::boolean},
}};

// Returns the text after `key` in the header, which is a dictionary of Python.
std::string_view after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) throw UserError("its header is not one of numpy");
  header.remove_prefix(at + key.size());
  header.remove_prefix(std::min(header.find_first_not_of(": "), header.size()));
  return header;
}

DType dtype_in(std::string_view header) {
  const std::string_view text = after(header, "'descr'");
  for (const auto& [name, dtype] : types)
    if (text.starts_with(fmt::format("'{}'", name))) return dtype;
  throw UserError(
      "its elements are not float64, float32, float16, int64, int32, uint8 or bool in little-endian order");
}

Shape shape_in(std::string_view header) {
  std::string_view text = after(header, "'shape'");
  std::vector<std::int64_t> extents;
  text.remove_prefix(text.starts_with('(') ? 1 : 0);
  while (!text.empty() && text[0] != ')') {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc()) throw UserError("its header is not one of numpy");
    extents.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
  }
  return Shape(extents);
}

Tensor parse_npy(std::string_view bytes) {
  if (!bytes.starts_with(magic) || bytes.size() < 12) throw UserError("it is no file of numpy");
  const std::size_t width = bytes[6] == 1 ? 2 : 4;  // of the length of the header
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, width);
  const std::size_t begin = 8 + width;
  if (length > bytes.size() - begin) throw UserError("it ends within its header");
  const std::string_view header = bytes.substr(begin, length);
  if (!after(header, "'fortran_order'").starts_with("False"))
    throw UserError("its elements are in Fortran's order; save numpy.ascontiguousarray(array)");
  const TensorType type{dtype_in(header), shape_in(header)};
  const std::string_view elements = bytes.substr(begin + length);
  if (elements.size() != static_cast<std::uint64_t>(type.bytes()))
    throw UserError(fmt::format("it has {} bytes of elements, but {} needs {}", elements.size(),
                                to_string(type), type.bytes()));
  Tensor tensor(type);
  if (!elements.empty()) std::memcpy(tensor.data(), elements.data(), elements.size());
  return tensor;
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  try {
    return parse_npy({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string_view type;
  for (const auto& [name, dtype] : types)
    if (dtype == tensor.dtype()) type = name;
  if (type.empty())
    throw UserError(fmt::format("{}: numpy has no elements of {}", path.string(), name_of(tensor.dtype())));
  const auto& extents = tensor.shape().extents();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                                   fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
  header.resize((10 + header.size()) / 64 * 64 + 64 - 10, ' ');  // elements begin at a multiple of 64 bytes
  header.back() = '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  AtomicFile file(path);
  file.write(std::string(magic) + std::string("\x01\x00", 2) + static_cast<char>(length & 0xff) +
             static_cast<char>(length >> 8) + header);
  file.write(std::span(tensor.data(), tensor.bytes()));
  file.commit();
}

}  // namespace plexaura
