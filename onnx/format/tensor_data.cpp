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
  require_count(type, stored.size(), "elements");
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

// A bool in the file may have any bits.
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

std::filesystem::path path_of_elements(const TensorProto& proto, const std::filesystem::path& folder) {
  const auto location = proto.external.find("location");
  if (location == proto.external.end())
    throw UserError("its elements are in another file, which is not named");
  std::error_code error;
  const auto inside = std::filesystem::weakly_canonical(folder.empty() ? "." : folder, error);
  const auto path = std::filesystem::weakly_canonical(inside / location->second, error);
  const auto [end, rest] = std::ranges::mismatch(inside, path);
  if (error || end != inside.end() || rest == path.end())
    throw UserError(fmt::format(
        "its elements are in '{}', which is not below the folder of the model; only files there are read",
        location->second));
  return path;
}

Tensor read_external(const TensorProto& proto, const TensorType& type, const std::filesystem::path& folder) {
  const InputFile file(path_of_elements(proto, folder));
  const std::uint64_t offset = number_in(proto, "offset", 0);
  if (offset > file.bytes())
    throw UserError(fmt::format("its offset {} is beyond the end of its file", offset));
  const std::uint64_t length = number_in(proto, "length", file.bytes() - offset);
  require_count(type, length, "bytes");
  if (length > file.bytes() - offset) throw UserError("its elements end beyond the end of their file");
  Tensor tensor(type);
  file.read(offset, {tensor.data(), tensor.bytes()});
  make_bools_valid(tensor);
  return tensor;
}

Tensor elements_of(const TensorProto& proto, const TensorType& type, const std::filesystem::path& folder) {
  if (proto.is_external) return read_external(proto, type, folder);
  if (!proto.floats.empty()) return from_list(type, proto.floats);
  if (!proto.doubles.empty()) return from_list(type, proto.doubles);
  if (!proto.integers.empty()) return from_list(type, proto.integers);
  const std::string_view raw = proto.raw.value_or(std::string_view());
  require_count(type, raw.size(), "bytes");
  Tensor tensor(type);
  if (!raw.empty()) std::memcpy(tensor.data(), raw.data(), raw.size());
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
  return named(proto, [&] { return TensorType{dtype_of(proto.type), Shape(proto.extents)}; });
}

Tensor read_tensor(const TensorProto& proto, const std::filesystem::path& folder) {
  const TensorType type = type_of(proto);
  return named(proto, [&] { return elements_of(proto, type, folder); });
}

}  // namespace plexaura::onnx
