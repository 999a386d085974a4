#include "core/tensor/tensor.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>

#include "core/base/error.h"
#include "core/base/machine_memory.h"
#include "core/tensor/convert.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

constexpr std::align_val_t alignment{64};

// From this size on, querying the system's free memory (0.1 ms) takes at most a hundredth of the time that
// clearing new memory takes.
constexpr std::size_t large = std::size_t{16} << 20;

// Throws UserError if 16 MiB or more are needed and not available. The system would allocate them anyway, and
// kill a process that writes there.
void require_room(const TensorType& type, std::size_t bytes) {
  if (bytes < large) return;
  if (const std::size_t available = available_memory(); bytes > available)
    throw UserError(fmt::format(
        "a tensor {} needs {} bytes, and this machine, or its container, has {} left; make it smaller",
        to_string(type), bytes, available));
}

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
  return {static_cast<std::byte*>(::operator new(bytes, alignment)),
          [](std::byte* memory) { ::operator delete(memory, alignment); }};
}

}  // namespace

Tensor::Tensor(TensorType type) : type_(std::move(type)) {
  const std::size_t size = std::max<std::size_t>(bytes(), 1);
  require_room(type_, size);
  try {
    memory_ = allocate(size);
  } catch (const std::bad_alloc&) {
    throw UserError(
        fmt::format("a tensor {} needs {} bytes, and there is not so much memory; make it smaller",
                    to_string(type_), size));
  }
  std::memset(memory_.get(), 0, size);
}

Tensor Tensor::in(std::shared_ptr<std::byte> memory, TensorType type) {
  return {std::move(memory), std::move(type)};
}

Tensor::Tensor(const Tensor& other) : Tensor(other.type_) {
  other.check_holds(other.dtype());
  std::memcpy(data(), other.data(), bytes());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

void Tensor::check_holds(DType dtype) const {
  if (!memory_)
    throw UserError(
        "a tensor that was moved from was read or copied; it holds nothing until it is assigned to");
  if (dtype != type_.dtype)
    throw UserError(fmt::format("a tensor of {} was read as {}; use cast() or the tensor's own type",
                                to_string(type_), name_of(dtype)));
}

void Tensor::check_count(const Shape& shape, std::size_t values) {
  if (static_cast<std::size_t>(shape.elements()) != values)
    throw UserError(fmt::format("a tensor of shape {} takes {} values and was given {}", to_string(shape),
                                shape.elements(), values));
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values(static_cast<std::size_t>(elements()));
  dispatch(dtype(), [&]<class T>(std::type_identity<T>) {
    std::ranges::transform(as<T>(), values.begin(), [](T value) { return static_cast<double>(value); });
  });
  return values;
}

Tensor Tensor::cast(DType target) const {
  Tensor result(TensorType{target, shape()});
  dispatch(dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(target, [&]<class To>(std::type_identity<To>) {
      std::ranges::transform(as<From>(), result.as<To>().begin(),
                             [](From value) { return convert<To>(value); });
    });
  });
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  check_holds(dtype());
  check_count(shape, static_cast<std::size_t>(elements()));
  Tensor result(TensorType{dtype(), std::move(shape)});
  std::memcpy(result.data(), data(), bytes());
  return result;
}

bool Tensor::operator==(const Tensor& other) const {
  check_holds(dtype());
  other.check_holds(other.dtype());
  return type_ == other.type_ && std::memcmp(data(), other.data(), bytes()) == 0;
}

}  // namespace plexaura
