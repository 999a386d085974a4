#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// A value for an input of a program, by the input's name. A temporary tensor is kept. Of another one this knows where
// its elements lie: whoever reads them after the tensor was destroyed or assigned to gets a UserError.
class PLEXAURA_API Feed {
 public:
  Feed(std::string name, const Tensor& tensor);
  Feed(std::string name, Tensor&& tensor);

  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  // The elements, which lie there as long as the tensor does.
  const std::byte* data() const;
  // A tensor of the same memory.
  Tensor tensor() const;

 private:
  std::shared_ptr<std::byte> memory() const;

  std::string name_;
  TensorType type_;
  std::shared_ptr<std::byte> kept_;  // null where the tensor is not kept
  std::weak_ptr<std::byte> memory_;
};

}  // namespace plexaura
