#pragma once

#include <cstdint>
#include <vector>

#include "core/device/backend.h"
#include "core/params/parameter_store.h"
#include "models/zoo/model.h"
#include "training/data/sample_source.h"

namespace plexaura {

// A sample, and the prediction of a trained classifier for it.
struct JudgedSample {
  std::int64_t index = 0;
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  double probability = 0;  // probability of the predicted class, from 0 to 1
  double loss = 0;         // cross-entropy, without label smoothing and class weights
};

struct Judgement {
  std::vector<JudgedSample> worst;  // the samples with the highest loss, from the highest on
  std::vector<std::int64_t>
      // [classes, classes], row-major: how often samples of each class (row) were predicted as each class
      // (column).
      confusion;
  std::int64_t samples = 0;     // number of samples that were judged
  std::int64_t unreadable = 0;  // number of samples that were left out, because they cannot be read
};

// True if judge_samples() can judge the samples: a classification by softmax_cross_entropy with one label for
// each sample.
bool can_judge(const SampleSource& source, const Model& model);

// Predicts the first `most` samples with the weights of the store. Keeps the `worst` samples with the highest
// loss. Samples that cannot be read are left out. Throws what Predictor throws.
Judgement judge_samples(const SampleSource& source, const Model& model, ParameterStore& store,
                        Backend& backend, std::int64_t most, std::size_t worst);

}  // namespace plexaura
