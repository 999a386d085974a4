#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/export.h"
#include "core/tensor/shape.h"

namespace plexaura {

// A dense tensor in host memory, row-major, a value: copies are deep. Memory is aligned to 64 bytes and
// starts as zeros; addresses and spans of it hold until the tensor is assigned to, moved from or destroyed.
// Reading or copying one that was moved from throws UserError; its data() is null.
// Several threads may read a tensor at once, or write different elements of it.
class PLEXAURA_API Tensor {
 public:
  Tensor() : Tensor(TensorType{}) {}
  explicit Tensor(TensorType type);
  Tensor(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // A tensor of uninitialised memory that the pointer keeps: aligned to 64 bytes, and as large as the type says.
  static Tensor in(std::shared_ptr<std::byte> memory, TensorType type);
  // Throws UserError when the number of values is not the number of elements.
  template <class T>
  static Tensor of(Shape shape, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value);

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  std::int64_t elements() const { return type_.shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(type_.bytes()); }

  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  // Who holds this keeps the elements where they are, but not what they are.
  const std::shared_ptr<std::byte>& memory() const { return memory_; }

  // The elements as T; throws UserError when T does not belong to the dtype.
  template <class T>
  std::span<T> as() {
    check_holds(dtype_of<T>);
    return {reinterpret_cast<T*>(memory_.get()), static_cast<std::size_t>(elements())};
  }
  template <class T>
  std::span<const T> as() const {
    check_holds(dtype_of<T>);
    return {reinterpret_cast<const T*>(memory_.get()), static_cast<std::size_t>(elements())};
  }

  // Every element converted, whatever the dtype; for reading results and for tests.
  std::vector<double> to_doubles() const;
  // A copy with every element converted to another dtype, as by the op cast: see convert() of core/tensor/convert.h.
  Tensor cast(DType target) const;
  // A copy with another shape of as many elements.
  Tensor reshaped(Shape shape) const;

  // Bit for bit: same type, same bytes (so NaN equals NaN, and 0 differs from -0).
  bool operator==(const Tensor& other) const;

 private:
  Tensor(std::shared_ptr<std::byte> memory, TensorType type)
      : type_(std::move(type)), memory_(std::move(memory)) {}
  void check_holds(DType dtype) const;
  static void check_count(const Shape& shape, std::size_t values);

  TensorType type_;
  std::shared_ptr<std::byte> memory_;  // of this tensor alone, or a part of a larger piece
};

template <class T>
Tensor Tensor::of(Shape shape, const std::vector<T>& values) {
  check_count(shape, values.size());
  Tensor tensor(TensorType{dtype_of<T>, std::move(shape)});
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

template <class T>
Tensor Tensor::scalar(T value) {
  Tensor tensor(TensorType{dtype_of<T>, Shape{}});
  tensor.as<T>()[0] = value;
  return tensor;
}

}  // namespace plexaura
