// Your own strategy, which defines how ranks work together, in a few lines against core/exchange/strategy.h.
// It trains a small network on Iris.
// Run it from the project's folder, alone or as several ranks:
//   build/examples/own_strategy
//   mpirun -n 2 build/examples/own_strategy

#include <cstdio>
#include <plexaura/plexaura.h>
#include <plexaura/ranks.h>

#include "models/zoo/mlp.h"

using namespace plexaura;

// Adds up the gradients of all ranks before each update, and every k steps sends the weights of rank 0 to all
// ranks. On equal processors the weights are the same bits anyway; on different ones they drift apart by
// rounding.
class SumAndRealign : public Strategy, public GradientSum, public WeightExchange {
 public:
  SumAndRealign(Communicator& communicator, std::int64_t every) : ranks(communicator), k(every) {}

  // The engine calls only the parts that are listed here. `realigns_weights` says that the weights of ranks
  // may drift apart until they are realigned, so that a difference is not an error.
  StrategyParts parts() override { return {.gradients = this, .weights = this, .realigns_weights = true}; }

  void begin(WeightsImmigration& engine) override {
    border = &engine;
    ready.resize(engine.buckets().size());
  }

  // Called during the backward pass, so it must not wait: it only keeps the event.
  void gradients_ready(std::size_t bucket, Event& final) override { ready[bucket] = &final; }

  // The last bucket also carries the losses and the flags that a rank wants to stop or has failed, so all
  // buckets have to be summed. The sum needs no division, because each rank weighs its gradients by its
  // number of samples.
  UpdateAnswer before_update(std::size_t bucket) override {
    ready[bucket]->wait();
    const Bucket& slice = border->buckets()[bucket];
    ranks.sum(slice.dtype, border->gradients(bucket).data(), slice.count,
              at("the gradients", border->step()));
    return {};
  }

  void after_update() override {
    if (border->step() % k != 0) return;
    for (const WeightsImmigration::Entry& entry : border->entries()) {
      Tensor value = border->emigrate(entry.name);
      ranks.broadcast(value.data(), value.bytes(), 0, at(entry.name, border->step()));
      border->immigrate(entry.name, value);
    }
  }

 private:
  // Returns the description of a call, which the error of a rank names if it waits too long.
  static std::string at(const std::string& what, std::int64_t step) {
    return what + " of step " + std::to_string(step);
  }

  Communicator& ranks;
  std::int64_t k;
  WeightsImmigration* border = nullptr;
  std::vector<Event*> ready;
};

struct Report : TrainingObserver {
  explicit Report(bool speaks_here) : speaks(speaks_here) {}
  void epoch(const EpochRecord& record) override {
    if (speaks && record.epoch % 10 == 0)
      std::printf("epoch %2d  loss %.4f  held-out accuracy %.2f\n", static_cast<int>(record.epoch),
                  record.train_loss, value_of("accuracy", record.val_metrics));
  }
  bool speaks;
};

int train(Communicator& ranks) {
  const auto flowers = std::make_shared<CsvDataset>("models/iris.csv");
  const auto parts = stratified_split(labels_of(*flowers), std::vector{0.8, 0.2}, 1);
  const auto train_rows = std::make_shared<SubsetDataset>(flowers, parts[0]);
  const auto held_out_rows = std::make_shared<SubsetDataset>(flowers, parts[1]);
  const Standardisation measured = measure_standardisation(*train_rows);

  Mlp model({.sample_shape = Shape{4}, .classes = 3}, {.hidden = {16}});
  ParameterStore store = make_store(model, DType::float32, 1);
  const auto backend = open_backend("cpu");
  SumAndRealign strategy(ranks, 10);
  const auto build = [&](const ModelInputs& inputs) {
    return build_loss(model, model(inputs["samples"]), inputs["labels"]);
  };
  Trainer trainer({.model = build,
                   .store = store,
                   .backend = *backend,
                   .train = std::make_shared<StandardisedDataset>(train_rows, measured),
                   .validation = std::make_shared<StandardisedDataset>(held_out_rows, measured),
                   .collective = &ranks,
                   .strategy = &strategy},
                  {.batch_size = 10, .epochs = 40, .optimizer = {.momentum = 0.9}, .learning_rate = 0.05});
  check_agreement(ranks, trainer.facts());
  Report report(ranks.rank() == 0);
  const TrainingResult result = trainer.run(report);
  return value_of("accuracy", result.last_epoch->val_metrics) >= 0.9 ? 0 : 1;
}

int main() { return run_ranks({}, train); }
