#include "core/vm/feed.h"

#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

void check_not_moved_from(const std::string& name, const Tensor& tensor) {
  if (tensor.data() == nullptr)
    throw UserError(fmt::format("the input '{}' was fed a tensor that was moved from", name));
}

}  // namespace

Feed::Feed(std::string name, const Tensor& tensor)
    : name_(std::move(name)), type_(tensor.type()), memory_(tensor.memory()) {
  check_not_moved_from(name_, tensor);
}

Feed::Feed(std::string name, Tensor&& tensor)
    : name_(std::move(name)), type_(tensor.type()), kept_(tensor.memory()), memory_(kept_) {
  check_not_moved_from(name_, tensor);
  const Tensor emptied = std::move(tensor);
}

std::shared_ptr<std::byte> Feed::memory() const {
  std::shared_ptr<std::byte> memory = memory_.lock();
  if (!memory)
    throw UserError(fmt::format(
        "the tensor that the input '{}' was fed was destroyed or assigned to after the Feed was made; "
        "keep it as it is until the run, or make the Feed of std::move(tensor)",
        name_));
  return memory;
}

const std::byte* Feed::data() const { return memory().get(); }

Tensor Feed::tensor() const { return Tensor::in(memory(), type_); }

}  // namespace plexaura
