#include "onnx/format/tensor_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/tensor/convert.h"
#include "core/tensor/dispatch.h"
#include "training/files/file.h"

namespace plexaura::onnx {

namespace {

void require_count(const TensorType& type, std::uint64_t found, std::string_view unit) {
  const std::int64_t expected = unit == "bytes" ? type.bytes() : type.shape.elements();
  if (found != static_cast<std::uint64_t>(expected))
    throw UserError(fmt::format("it has {} {}, but {} needs {}", found, unit, to_string(type), expected));
}

// Elements of 16 bits are stored as integers that have their bits.
template <class T>
T element_of(std::int64_t stored) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    T element;
    element.bits = static_cast<std::uint16_t>(stored);
    return element;
  } else {
    return convert<T>(stored);
  }
}

template <class Stored>
Tensor from_list(const TensorType& type, const std::vector<Stored>& stored) {
  Tensor tensor(type);
  dispatch(type.dtype, [&]<class T>(std::type_identity<T>) {
    std::ranges::transform(stored, tensor.as<T>().begin(), [](Stored element) {
      if constexpr (std::is_integral_v<Stored>) {
        return element_of<T>(element);
      } else {
        return convert<T>(element);
      }
    });
  });
  return tensor;
}

// Replaces each bool by 0 or 1, because a bool in the file may have any bits.
void make_bools_valid(Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  for (std::size_t i = 0; i < tensor.bytes(); ++i)
    tensor.data()[i] = tensor.data()[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

std::uint64_t number_in(const TensorProto& proto, const std::string& key, std::uint64_t otherwise) {
  const auto found = proto.external.find(key);
  if (found == proto.external.end()) return otherwise;
  const std::string& text = found->second;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UserError(fmt::format("its {} '{}' is not a number", key, text));
  return number;
}

// Returns the path without links, which must lead to an existing file or folder.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path found = std::filesystem::canonical(path, error);
  if (error)
    throw UserError(fmt::format("the path '{}' cannot be followed: {}", path.string(), error.message()));
  return found;
}

std::filesystem::path path_of_elements(const TensorProto& proto, const std::filesystem::path& folder) {
  const auto location = proto.external.find("location");
  if (location == proto.external.end())
    throw UserError("its elements are in another file, which is not named");
  if (folder.empty())
    throw UserError(
        fmt::format("its elements are in the file '{}', but a model that was passed as bytes reads no files; "
                    "pass the path "
                    "of the model",
                    location->second));
  const std::filesystem::path inside = resolved(folder);
  const std::filesystem::path path = resolved(inside / location->second);
  const auto [end, rest] = std::ranges::mismatch(inside, path);
  if (end != inside.end() || rest == path.end())
    throw UserError(fmt::format(
        "its elements are in '{}', which is not below the folder of the model; only files there are read",
        location->second));
  return path;
}

// Elements in a file of their own, from byte `offset` on. The file has as many bytes as the type needs.
struct ExternalElements {
  InputFile file;
  std::uint64_t offset = 0;
};

ExternalElements open_external(const TensorProto& proto, const TensorType& type,
                               const std::filesystem::path& folder) {
  ExternalElements elements{InputFile(path_of_elements(proto, folder)), number_in(proto, "offset", 0)};
  const std::uint64_t bytes = elements.file.bytes();
  if (elements.offset > bytes)
    throw UserError(fmt::format("its offset {} is beyond the end of its file", elements.offset));
  const std::uint64_t length = number_in(proto, "length", bytes - elements.offset);
  require_count(type, length, "bytes");
  if (length > bytes - elements.offset) throw UserError("its elements end beyond the end of their file");
  return elements;
}

// The elements of a message are in its raw bytes or in one list, which belongs to some types only.
void check_field_of_elements(const TensorProto& proto, DType dtype) {
  const bool has_raw = proto.raw && !proto.raw->empty();
  const int fields = (has_raw ? 1 : 0) + (proto.floats.empty() ? 0 : 1) + (proto.doubles.empty() ? 0 : 1) +
                     (proto.integers.empty() ? 0 : 1);
  if (fields > 1) throw UserError("it has elements in several fields; they must be in one");
  const bool fits = (proto.floats.empty() || dtype == DType::float32) &&
                    (proto.doubles.empty() || dtype == DType::float64) &&
                    (proto.integers.empty() || (dtype != DType::float32 && dtype != DType::float64));
  if (!fits)
    throw UserError(fmt::format("its elements are in a field of another type than {}", name_of(dtype)));
}

void check_message(const TensorProto& proto, const TensorType& type) {
  check_field_of_elements(proto, type.dtype);
  const std::size_t listed = proto.floats.size() + proto.doubles.size() + proto.integers.size();
  if (listed > 0) return require_count(type, listed, "elements");
  require_count(type, proto.raw.value_or(std::string_view()).size(), "bytes");
}

Tensor read_external(const TensorProto& proto, const TensorType& type, const std::filesystem::path& folder) {
  const ExternalElements elements = open_external(proto, type, folder);
  Tensor tensor(type);
  elements.file.read(elements.offset, {tensor.data(), tensor.bytes()});
  make_bools_valid(tensor);
  return tensor;
}

Tensor read_message(const TensorProto& proto, const TensorType& type) {
  check_message(proto, type);
  if (!proto.floats.empty()) return from_list(type, proto.floats);
  if (!proto.doubles.empty()) return from_list(type, proto.doubles);
  if (!proto.integers.empty()) return from_list(type, proto.integers);
  Tensor tensor(type);
  if (tensor.bytes() > 0) std::memcpy(tensor.data(), proto.raw->data(), tensor.bytes());
  make_bools_valid(tensor);
  return tensor;
}

template <class Work>
auto named(const TensorProto& proto, Work&& work) {
  try {
    return work();
  } catch (const UserError& error) {
    throw UserError(fmt::format("the tensor '{}': {}", proto.name, error.what()));
  }
}

}  // namespace

TensorType type_of(const TensorProto& proto) {
  return named(proto, [&] {
    if (proto.extents.size() > most_axes)
      throw UserError(
          fmt::format("it has {} axes; at most {} are supported", proto.extents.size(), most_axes));
    return TensorType{dtype_of(proto.type), Shape(proto.extents)};
  });
}

TensorType checked_type_of(const TensorProto& proto, const std::filesystem::path& folder) {
  TensorType type = type_of(proto);
  named(proto, [&] {
    if (proto.is_external)
      open_external(proto, type, folder);
    else
      check_message(proto, type);
  });
  return type;
}

Tensor read_tensor(const TensorProto& proto, const std::filesystem::path& folder) {
  const TensorType type = type_of(proto);
  return named(proto, [&] {
    return proto.is_external ? read_external(proto, type, folder) : read_message(proto, type);
  });
}

}  // namespace plexaura::onnx
