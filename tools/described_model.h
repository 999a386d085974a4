#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/zoo/model.h"
#include "training/checkpoints/weights.h"

namespace plexaura {

// The arguments of a tool that define the model: a YAML file, or parts of it.
struct ModelSource {
  std::string file;
  std::vector<std::string> set;
  std::vector<std::int64_t> sample;
  std::int64_t classes = 0;
};

// Adds these arguments to a command line.
void declare(CLI::App& app, ModelSource& source);

struct DescribedModel {
  std::unique_ptr<Model> model;
  std::optional<DType> samples = {};  // dtype of samples; empty: the dtype of the parameters
  Settings settings = {};   // settings of the section `model`, in the form that files of weights contain
  std::string output = {};  // value of output.dir; empty if there is none

  DType sample_dtype(const ParameterStore& store) const { return samples.value_or(store.dtype()); }
  // Returns the shape of a batch of samples.
  Shape batch(std::int64_t samples) const;
};

// Reads the YAML file, and the data that it describes unless the shape of a sample and the number of classes are given.
// Throws UserError for these arguments, for a wrong file, and for a key that is misspelt or has no effect.
DescribedModel read_model(const ModelSource& source);

}  // namespace plexaura
