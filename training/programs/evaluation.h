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

// Sums over the samples that were evaluated.
struct Evaluation {
  double loss = 0;
  double weight = 0;  // sum of LossOutputs::weight; 0 if the model has none
  // The sums in the order of Evaluator::metric_names(), followed by the elements of ValidationSums::sums.
  std::vector<double> metrics = {};
  double samples = 0;
};

// Computes loss and metrics of a model in inference mode, with one program for each size of a batch. The store, the
// backend, the collective, the profile and the tuner must outlive it. Only one thread may use it at a time.
class Evaluator {
 public:
  Evaluator(ModelBuilder model, std::vector<Field> fields, ParameterStore& store, Backend& backend,
            Collective& collective, bool watch = false, Profile* profile = nullptr, Tuner* tuner = nullptr,
            bool strict = false);

  // Determine the metrics that the model reports, on a rank that may get no samples. The first function takes
  // them from the model. The second builds a graph for one sample, unless the metrics are already known.
  void know_metrics(const LossOutputs& model);
  void know_metrics();
  const std::vector<std::string>& metric_names() const { return reported_.names; }
  // True if the model has a LossOutputs::weight.
  bool is_weighted() const { return reported_.is_weighted; }
  // Returns the number of sums in Evaluation::metrics.
  std::size_t sum_count() const { return reported_.names.size() + reported_.sums; }
  // Returns the metrics as means, followed by the numbers of ValidationSums. `sums` has the order of
  // Evaluation::metrics.
  std::vector<MetricValue> values_of(std::span<const double> sums, double samples) const;
  Profile* profile() const { return profile_; }

  // Compiles the program for batches of `samples` samples, unless that was done before. Throws UserError if the collective
  // has several ranks and the model calls them in inference mode.
  void compile_for(std::int64_t samples);
  // Removes the programs for all other sizes.
  void keep_sizes(const std::set<std::int64_t>& sizes);
  // Return the largest workspace and the largest Program::feed_bytes of the programs that were compiled so far.
  std::size_t arena_bytes() const;
  std::size_t feed_bytes() const;
  // Returns the ops that the host computes in these programs: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;
  // Makes the VMs that run these programs, in a workspace of at least arena_bytes().
  void make_machines(std::shared_ptr<Workspace> workspace);

  // Compiles missing programs and makes VMs for batches of these sizes, which are in ascending order. If there is no
  // workspace yet, makes one.
  void prepare(std::span<const std::int64_t> sizes);

  // Returns the memory in which batches should be created: programs read them from there without a copy. Null until
  // make_machines(), prepare() or evaluate() has got a workspace.
  std::shared_ptr<FeedMemory> feed_memory() const;

  // Evaluates one batch; `fields` are its fields, each of shape [samples, ...]. Compiles a program first if the size is new.
  // Random ops draw as in step 0 with seed 0, for the samples from index `first_sample` on, so they draw the same in each
  // call.
  Evaluation evaluate(const std::vector<Tensor>& fields, std::int64_t samples, std::int64_t first_sample = 0);

 private:
  // The numbers that a model reports besides its loss.
  struct Reported {
    std::vector<std::string> names = {};
    std::vector<bool> is_mean = {};  // for each name: true if the number is a mean, false if it is a sum
    std::size_t sums = 0;            // number of elements of ValidationSums::sums
    decltype(ValidationSums::values) values = {};
    bool is_weighted = false;  // true if the model has a LossOutputs::weight
    bool is_known = false;
  };

  BuiltModel build(std::int64_t samples) const;
  VM& machine_for(std::int64_t samples);

  ModelBuilder model_;
  std::vector<Field> fields_;
  ParameterStore& store_;
  Backend& backend_;
  Collective& collective_;
  SingleProcess alone_;  // collective for programs that must not call other ranks: see compile_for()
  bool watch_;
  Profile* profile_;
  Tuner* tuner_;
  bool strict_;  // see CompileOptions::strict
  Reported reported_;
  std::map<std::int64_t, std::shared_ptr<const Program>> programs_;  // the program for each number of samples
  std::shared_ptr<Workspace> workspace_;
  std::map<std::int64_t, std::unique_ptr<VM>> machines_;
};

// Throws UserError if the program calls all ranks. Its text is "the model calls all ranks <where>, by <op of
// line>: <why>".
void check_calls_nobody(const Program& program, std::string_view where, std::string_view why);

// Loss and metrics of the model over the validation data. Samples that could not be read are left out.
struct Validation {
  double loss = 0;
  std::vector<MetricValue> metrics = {};  // see Evaluator::values_of()
  std::vector<double> totals = {};        // sums over all samples: the elements of ValidationSums::sums
  Skipped skipped = {};
};

// Evaluates each sample once, divided among the ranks. All ranks call it together. The numbers that random
// ops draw for a sample depend only on its index in the data. Uses from `reading` the size of batches, their
// division, the workers, and what happens to samples that cannot be read. Throws UserError if there are no
// samples, if none of them can be read, and if all labels are ignored or have the weight 0.
Validation validate(Evaluator& evaluator, const std::shared_ptr<const SampleSource>& samples,
                    Collective& ranks, const LoaderOptions& reading, Courier* courier = nullptr);

// Divides the sums of metrics by the number of samples. Returns the means with their names.
std::vector<MetricValue> means_of(const std::vector<std::string>& names, std::span<const double> sums,
                                  double samples);

}  // namespace plexaura
