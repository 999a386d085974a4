#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "tests/support/backend.h"
#include "training/data/dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing {

// Rows of features, all of them a hundredth of the row's index, with labels 0, 1 and 2 in turn. For tests
// whose trainer needs some data.
class CountingRows final : public DatasetOf<float> {
 public:
  explicit CountingRows(std::int64_t rows, std::int64_t features = 4) : rows_(rows), features_(features) {}

  std::int64_t size() const override { return rows_; }
  Shape sample_shape() const override { return Shape{features_}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 3; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label) const override {
    label = index % 3;
    std::ranges::fill(sample, 0.01F * static_cast<float>(index));
  }

 private:
  std::int64_t rows_;
  std::int64_t features_;
  std::vector<std::string> names_{"a", "b", "c"};
};

// The objects that a rank needs to train the smallest model of CountingRows with four features: one
// parameter, "weight".
struct RowsRun {
  static inline const TensorType weight{DType::float32, {4, 3}};

  static LossOutputs model(const ModelInputs& inputs) {
    return {softmax_cross_entropy(matmul(inputs["samples"], inputs.graph().parameter("weight", weight)),
                                  inputs["labels"])};
  }
  TrainerParts parts(std::shared_ptr<const SampleSource> train, Collective& ranks, Strategy* strategy) {
    return {.model = model,
            .store = store,
            .backend = *backend,
            .train = std::move(train),
            .collective = &ranks,
            .strategy = strategy};
  }
  TrainerParts parts(std::int64_t rows, Collective& ranks, Strategy* strategy) {
    return parts(std::make_shared<const CountingRows>(rows), ranks, strategy);
  }

  std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
  ParameterStore store{{{"weight", weight, ParameterRole::trainable, Initialiser::he_normal()}}, 3};
};

}  // namespace plexaura::testing
