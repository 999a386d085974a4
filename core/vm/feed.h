#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/tensor/tensor.h"

namespace plexaura {

// A value for an input of a program, by the input's name. A temporary tensor is kept; another one is only
// referred to and must outlive the Feed.
class Feed {
 public:
  Feed(std::string name, const Tensor& tensor)
      : name_(std::move(name)), tensor_(std::shared_ptr<const Tensor>(), &tensor) {}
  Feed(std::string name, Tensor&& tensor)
      : name_(std::move(name)), tensor_(std::make_shared<const Tensor>(std::move(tensor))) {}

  const std::string& name() const { return name_; }
  const Tensor& tensor() const { return *tensor_; }

 private:
  std::string name_;
  std::shared_ptr<const Tensor> tensor_;  // owns nothing where the tensor is only referred to
};

}  // namespace plexaura
