#include "training/loop/overfit.h"

#include <fmt/format.h>
#include <utility>

#include "training/loop/trainer.h"

namespace plexaura {

namespace {

// Ends the run when the loss has reached the goal.
class Overfitting final : public TrainingObserver {
 public:
  Overfitting(Trainer& trainer, double share, OverfitResult& result)
      : trainer_(trainer), share_(share), result_(result) {}

  void step(const StepRecord& record, std::int64_t) override {
    if (!record.dead_gradients.empty()) result_.dead_gradients = record.dead_gradients;
  }

  void epoch(const EpochRecord& record) override {
    result_.loss = record.val_loss;
    result_.is_learned = record.val_loss <= share_ * result_.first_loss;
    if (result_.is_learned) trainer_.end_early();
  }

 private:
  Trainer& trainer_;
  double share_;
  OverfitResult& result_;
};

void check_goal(const OverfitGoal& goal) {
  if (!(goal.share > 0 && goal.share < 1) || goal.steps < 1)
    throw UserError(
        fmt::format("samples are to be learned in {} steps until the loss is {} of the first one; give a "
                    "step or more, and a "
                    "share above 0 and below 1",
                    goal.steps, goal.share));
}

}  // namespace

OverfitResult overfit(TrainerParts parts, TrainerOptions options, const OverfitGoal& goal) {
  check_goal(goal);
  if (parts.stream)
    throw UserError(
        "a few samples are to be learned by heart, and a stream has each sample once; set "
        "TrainerParts::train instead of stream");
  parts.validation = parts.train;
  options.epochs = options.steps.emplace(goal.steps);  // an epoch has at least one step
  options.learning_rate = options.learning_rate.peak();
  options.optimizer.ema.reset();
  options.goal.reset();
  options.save_every.reset();
  options.output.clear();
  Trainer trainer(std::move(parts), std::move(options));
  OverfitResult result;
  result.first_loss = result.loss = trainer.validate().loss;
  Overfitting observer(trainer, goal.share, result);
  const TrainingResult run = trainer.run(observer);
  result.steps = run.steps;
  result.signal = run.signal;
  return result;
}

}  // namespace plexaura
