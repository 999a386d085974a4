#include "tests/distributed/programs/training/small_run.h"

#include "backends/registry.h"
#include "distributed/communicator/handshake.h"
#include "tests/distributed/programs/training/small_data.h"
#include "tests/distributed/programs/training/small_model.h"
#include "training/data/remote_samples.h"

namespace plexaura::testing {
namespace {

class CallingObserver final : public TrainingObserver {
 public:
  explicit CallingObserver(const SmallRunOptions& options) : options_(options) {}
  void step(const StepRecord& record, std::int64_t) override {
    if (options_.after_step) options_.after_step(record.step);
  }

 private:
  const SmallRunOptions& options_;
};

// Returns the data of a rank. It has no samples if rank 0 sends them.
std::shared_ptr<const SampleSource> data_of(const Collective& ranks, Strategy* strategy,
                                            const std::shared_ptr<const Dataset>& whole) {
  if (strategy_or_none(strategy).parts().courier == nullptr || ranks.rank() == 0) return whole;
  return std::make_shared<RemoteSamples>(whole->size(), whole->fields());
}

TrainerOptions trainer_options(const SmallRunOptions& options) {
  TrainerOptions made;
  made.batch_size = 7;
  made.micro_batches = options.micro_batches;
  made.epochs = options.steps;  // more epochs than needed
  made.steps = options.steps;
  made.learning_rate = 0.02;
  made.seed = options.seed;
  made.shuffle = options.shuffle;
  made.output = options.output;
  made.optimizer = {.momentum = 0.9};
  made.bucket_bytes = options.bucket_bytes;
  made.report_seconds = 0;  // makes the observer be called after each step
  return made;
}

}  // namespace

ParameterStore make_small_store(const SmallRunOptions& options) {
  const auto data = make_small_data(1);
  const auto classes = static_cast<std::int64_t>(data->class_names().size());
  return ParameterStore(make_small_model(options.model, data->sample_shape(), classes, options.dtype).specs,
                        1);
}

SmallRunResult run_small(Collective& ranks, Strategy* strategy, const SmallRunOptions& options) {
  const std::unique_ptr<Backend> backend = open_backend(options.backend);
  const auto whole = make_small_data(44, options.broken_sample);
  const auto train = data_of(ranks, strategy, whole);
  const auto validation = data_of(ranks, strategy, make_small_data(5));
  const auto classes = static_cast<std::int64_t>(whole->class_names().size());
  const SmallModel model = make_small_model(options.model, whole->sample_shape(), classes, options.dtype);
  ParameterStore store(model.specs, 1);
  if (options.change_weights) options.change_weights(store);
  Trainer trainer({model.build, store, *backend, train, validation, &ranks, strategy},
                  trainer_options(options));
  if (options.resume && !trainer.resume()) throw UserError("there is nothing to resume");
  check_agreement(ranks, trainer.facts());
  if (options.before_training) options.before_training(store);
  CallingObserver observer(options);
  SmallRunResult result;
  try {
    result.training = trainer.run(observer);
  } catch (const RankLost& loss) {
    if (!options.regroup) throw;
    const auto [left, sum] = options.regroup(loss);
    trainer.regroup(*left, sum);
    check_agreement(*left, trainer.facts());
    result.training = trainer.run(observer);
  }
  for (const ParameterSpec& spec : store.specs()) result.weights.emplace(spec.name, store.read(spec.name));
  return result;
}

}  // namespace plexaura::testing
