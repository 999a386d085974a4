#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/collective.h"
#include "training/files/records.h"
#include "training/programs/model_inputs.h"
#include "training/ranks/skipped.h"

namespace plexaura {

struct LoaderOptions;
class Courier;
class Tuner;

// Sums over the samples that were looked at.
struct Evaluation {
  double loss = 0;
  std::vector<double> metrics = {};  // in the order of Evaluator::metric_names()
  double samples = 0;
};

// Loss and metrics of a model in inference mode: a program for each size of a batch. The store, the backend,
// the collective, the profile and the tuner must outlive it. One thread at a time.
class Evaluator {
 public:
  Evaluator(ModelBuilder model, std::vector<Field> fields, ParameterStore& store, Backend& backend,
            Collective& collective, bool watch = false, Profile* profile = nullptr, Tuner* tuner = nullptr,
            bool strict = false);

  // What the model reports: known once a program was compiled, or by one of these. A rank that gets no samples
  // has to know it, too; the second builds a graph for one sample unless it is known.
  void know_metrics(const std::vector<Metric>& metrics);
  void know_metrics();
  const std::vector<std::string>& metric_names() const { return metric_names_; }
  Profile* profile() const { return profile_; }

  // Compiles ahead, for batches of so many samples; once. UserError where the collective has several ranks and the
  // model calls them in inference mode.
  void compile_for(std::int64_t samples);
  // Forgets the programs of other sizes.
  void keep_sizes(const std::set<std::int64_t>& sizes);
  // The largest workspace that a program compiled so far needs, and the largest of their Program::feed_bytes.
  std::size_t arena_bytes() const;
  std::size_t feed_bytes() const;
  // The ops that the host computes in these programs: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;
  // Makes what runs these programs, in a workspace of at least arena_bytes().
  void make_machines(std::shared_ptr<Workspace> workspace);

  // The same for batches of these sizes, in ascending order, in a workspace of its own where there is none. What is not
  // compiled is compiled.
  void prepare(std::span<const std::int64_t> sizes);

  // Where batches lie best that are evaluated; null before there are machines.
  std::shared_ptr<FeedMemory> feed_memory() const;

  // Of one batch: its fields, [samples, ...] each. A size that is new is compiled first. Random ops draw as in a
  // step 0 of seed 0, for samples whose places are `first_sample` and those behind it: the same in every call.
  Evaluation evaluate(const std::vector<Tensor>& fields, std::int64_t samples, std::int64_t first_sample = 0);

 private:
  BuiltModel build(std::int64_t samples) const;
  VM& machine_for(std::int64_t samples);

  ModelBuilder model_;
  std::vector<Field> fields_;
  ParameterStore& store_;
  Backend& backend_;
  Collective& collective_;
  SingleProcess alone_;  // of programs: see compile_for()
  bool watch_;
  Profile* profile_;
  Tuner* tuner_;
  bool strict_;  // see CompileOptions
  std::vector<std::string> metric_names_;
  std::vector<bool> metric_is_mean_;
  bool knows_metrics_ = false;
  std::map<std::int64_t, std::shared_ptr<const Program>> programs_;  // by samples
  std::shared_ptr<Workspace> workspace_;
  std::map<std::int64_t, std::unique_ptr<VM>> machines_;
};

// UserError where the program calls all ranks: "the model calls all ranks <where>, by <op of line>: <why>".
void check_calls_nobody(const Program& program, std::string_view where, std::string_view why);

// The loss and the metrics of the model as means over the validation data, those left out that cannot be
// read.
struct Validation {
  double loss = 0;
  std::vector<MetricValue> metrics = {};
  Skipped skipped = {};
};

// Evaluates all samples, each once, divided among the ranks; what random ops draw for a sample depends on its place
// in the data alone. All ranks together. Of `reading`, the size of
// batches, their division, the workers and what happens to samples that cannot be read matter. UserError where
// there are no samples, or none of them can be read.
Validation validate(Evaluator& evaluator, const std::shared_ptr<const SampleSource>& samples,
                    Collective& ranks, const LoaderOptions& reading, Courier* courier = nullptr);

// Sums over samples as means, under the names of the metrics.
std::vector<MetricValue> means_of(const std::vector<std::string>& names, std::span<const double> sums,
                                  double samples);

}  // namespace plexaura
