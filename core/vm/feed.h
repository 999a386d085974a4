#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// A value for the input of a program with this name. A temporary tensor is kept in the Feed. For any other
// tensor, the Feed refers to the tensor's elements. Reading them after the tensor was destroyed or assigned
// to throws UserError.
class PLEXAURA_API Feed {
 public:
  Feed(std::string name, const Tensor& tensor);
  Feed(std::string name, Tensor&& tensor);

  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  // The address of the elements. Valid as long as the tensor lives, or the Feed if the tensor was a temporary one.
  const std::byte* data() const;
  // Returns a tensor that shares the memory.
  Tensor tensor() const;

 private:
  std::shared_ptr<std::byte> memory() const;

  std::string name_;
  TensorType type_;
  std::shared_ptr<std::byte> kept_;  // the memory of a temporary tensor; null for other tensors
  std::weak_ptr<std::byte> memory_;
};

}  // namespace plexaura
