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

// A dense row-major tensor in host memory. Copies are deep. Its memory is aligned to 64 bytes and starts as
// zeros. Addresses and spans of it are valid until the tensor is assigned to, moved from or destroyed.
// Reading or copying a moved-from tensor throws UserError; its data() is null. Several threads may read a
// tensor at once, or write different elements of it.
class PLEXAURA_API Tensor {
 public:
  Tensor() : Tensor(TensorType{}) {}
  explicit Tensor(TensorType type);
  Tensor(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // Makes a tensor in the memory that the pointer owns; its elements are what the memory contains. The memory
  // must be aligned to 64 bytes, and as large as the type requires.
  static Tensor in(std::shared_ptr<std::byte> memory, TensorType type);
  // Throws UserError if the number of values is not the number of elements.
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
  // The memory of the elements. Holding this pointer keeps the elements at their address, but does not
  // prevent changes of them.
  const std::shared_ptr<std::byte>& memory() const { return memory_; }

  // Returns the elements as T. Throws UserError if T does not belong to the dtype.
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

  // Returns every element converted to double, whatever the dtype. For reading results and for tests.
  std::vector<double> to_doubles() const;
  // Returns a copy with every element converted to another dtype, as the op cast does: see convert() of
  // core/tensor/convert.h.
  Tensor cast(DType target) const;
  // Returns a copy with another shape of the same number of elements.
  Tensor reshaped(Shape shape) const;

  // Compares bit for bit: same type, same bytes. So NaN equals NaN, and 0 differs from -0.
  bool operator==(const Tensor& other) const;

 private:
  Tensor(std::shared_ptr<std::byte> memory, TensorType type)
      : type_(std::move(type)), memory_(std::move(memory)) {}
  void check_holds(DType dtype) const;
  static void check_count(const Shape& shape, std::size_t values);

  TensorType type_;
  std::shared_ptr<std::byte> memory_;  // memory of this tensor alone, or a part of larger memory
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
