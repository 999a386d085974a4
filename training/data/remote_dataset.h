#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/data/dataset.h"

namespace plexaura {

// A dataset whose samples another rank reads: this rank knows its size, types and classes only.
class RemoteDataset final : public Dataset {
 public:
  RemoteDataset(std::int64_t size, TensorType sample, std::vector<std::string> class_names)
      : size_(size), sample_(std::move(sample)), class_names_(std::move(class_names)) {}

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return sample_.shape; }
  DType sample_dtype() const override { return sample_.dtype; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t) const override { refuse(); }
  void read_sample(std::int64_t, const SampleContext&, std::span<std::byte>, std::int64_t&) const override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw InternalError("a sample was read on a rank that has none"); }

  std::int64_t size_;
  TensorType sample_;
  std::vector<std::string> class_names_;
};

}  // namespace plexaura
