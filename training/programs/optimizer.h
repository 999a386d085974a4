#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/step/training_step.h"
#include "training/optimizers/optimizer_spec.h"
#include "training/optimizers/schedule.h"
#include "training/programs/optimizer_shape.h"

namespace plexaura {

struct PartBesideOthers;

struct OptimizerOptions {
  // Patterns of the parameters that this Optimizer trains, as those of freeze(). Empty: all trainable ones.
  std::vector<std::string> parameters = {};
  OptimizerSpec optimizer = {};
  Schedule learning_rate = 0.01;  // a number, or a Schedule
  std::int64_t seed = 0;          // seed of random ops such as dropout
  // The ranks that make each step together, and the strategy by which they sum gradients, such as one of make_strategy()
  // (distributed/strategies/strategies.h). Both must outlive the Optimizer. A single rank needs no strategy. Null: one rank.
  Collective* ranks = nullptr;
  Strategy* strategy = nullptr;
  bool watch = false;  // throws an error that names the op with the first NaN or infinite number
  // For an Optimizer that is made from a function: the number of shapes of batches whose programs are kept, those used
  // last. At least 1.
  std::int64_t kept_shapes = 16;
};

// For a training loop of one's own: computes the gradients of a loss and updates its parameters, with programs that are
// compiled once for each shape. The loss may be any scalar and need not be a mean over samples. The Optimizer shares the
// store, which may be moved or destroyed. It also shares a backend that a std::shared_ptr owns; another backend must outlive
// it.
//
// On several ranks each feeds its own batch, of equal size, and the step is that of the mean of all losses: with a loss
// that is a mean over samples, the step of one rank with all of these samples. All ranks make the same calls of step(), its
// parts, save(), resume() and observe(). If step(), gradients(), save() or resume() fails on one rank because of its
// data or its machine, it throws on all. Without OptimizerOptions::ranks this rank is the only one, also for a model
// that sums over all ranks.
//
// Several Optimizers may train a store, each with a loss, a rule and parameters of its own (OptimizerOptions::parameters),
// of which no two have one in common. For each of them the parameters of the others are constants. They share the
// buffers, which each changes as its own loss does. An Optimizer ends another one whose parameters are all among its own.
// The Optimizers of a store serve one thread at a time: making one, and each call that changes one or saves it, throw
// UserError while another thread is in such a call.
class Optimizer {
 public:
  // Copies the graph of the loss, and places the store: VMs that were made with the store before must be made
  // again, and other Optimizers of the store compile again in their next step. Training begins with the store's
  // weights and a reset state of this optimizer. Throws UserError for a parameter that is to be trained and
  // that the loss does not use, for a store whose parameters are all frozen, for a pattern that fits no
  // trainable parameter, for some of the parameters of another Optimizer, for OptimizerSpec::ema, for a second
  // Optimizer with another seed, in float16 or on several ranks, for several ranks in float16, for batch
  // normalisation over one element per channel, for a strategy that does not sum gradients over all ranks
  // before each update, and for stores whose weights differ between ranks.
  Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
            const OptimizerOptions& options = {});

  // Calls the function for the graph of each shape of batches, so that shorter batches and other lengths of sequences are
  // trained, too: `[=](const ModelInputs& in) { return LossOutputs{.loss = mse((*model)(in["x"]), in["y"])}; }`. `batch` is
  // any batch, whose shapes are compiled first. Programs are kept for OptimizerOptions::kept_shapes shapes. They share
  // the parameters and the state, and those of step() the memory of intermediate values; those of gradients() have memory of
  // their own for each shape. What the function refers to must live as long as the Optimizer. Throws as the other constructor
  // does, which is for one shape. On several ranks all batches have the shape of `batch`.
  Optimizer(ModelBuilder model, std::span<const Feed> batch, ParameterStore& store, Backend& backend,
            const OptimizerOptions& options = {});
  Optimizer(ModelBuilder model, std::initializer_list<Feed> batch, ParameterStore& store, Backend& backend,
            const OptimizerOptions& options = {});

  // Feeds the inputs, updates the parameters, and returns the loss before the update. For feeds see VM::run(). Throws
  // UserError for a label that is not a class of softmax_cross_entropy(), and for a loss or a gradient that is not finite;
  // then parameters, buffers, state and steps() are as before the call. In float16 a step whose loss or gradients are
  // not finite is skipped, but counted in steps(): see LossScale; it throws only for such a loss.
  double step(std::span<const Feed> feeds);
  double step(std::initializer_list<Feed> feeds);

  // The parts of step() as separate calls, for example to accumulate the gradients of several batches:
  //
  //   for (const Batch& batch : batches) train.gradients({{"x", batch.x}});
  //   train.clip_by_norm(1);
  //   train.update();
  //
  // gradients() computes the gradients of one batch and returns its loss; buffers are updated at once. The gradients of a
  // step are the mean over the batches since the last update. Each batch draws the random numbers that its samples would
  // have in one batch of all of them; the samples of a batch are the longest first axis of its inputs. Throws what step()
  // throws, also for a loss or a gradient that is not finite; then the gradients of all batches of the step are dropped, and
  // weights, buffers and state are as before the call. Throws UserError for a loss with a weight and in float16, whose
  // scale decides on whole steps, and after a limit on the gradients of the same step. On several ranks each call sums the
  // gradients, and returns the mean loss of the batches of all ranks.
  double gradients(std::span<const Feed> feeds);
  double gradients(std::initializer_list<Feed> feeds);
  // If the gradients of all parameters, as one vector, have a larger Euclidean norm than this, scales them down to it.
  // Returns the norm before. As torch.nn.utils.clip_grad_norm_, without its 1e-6 in the denominator.
  double clip_by_norm(double most);
  // Limits each gradient to [-most, most], as torch.nn.utils.clip_grad_value_. Returns the largest magnitude before.
  double clip_by_value(double most);
  // Updates the parameters by the gradients. Also applies OptimizerSpec::max_gradient_norm. Throws UserError without
  // gradients, for a mean that is not finite, whose step is dropped, and on ranks whose calls since the last update differ.
  void update();
  // Drops the gradients since the last update.
  void drop_gradients();

  // Returns a metric of the last step or the last batch of gradients(), a mean or a sum as the model defines it. Throws
  // UserError for an unknown name, and before the first step.
  double metric(std::string_view name) const;
  // The number of steps of this Optimizer, including those before resume().
  std::int64_t steps() const { return part_->updates; }

  // Has the Plateau of the schedule observe a metric that your loop has computed, after each validation for example. During
  // the warm-up it observes nothing. On several ranks it observes the mean of their values. Throws UserError if the
  // schedule is another one, and for a value that is not finite.
  void observe(double metric);
  // Returns the learning rate of the next step.
  double learning_rate() const;
  // Replaces the schedule: the following steps have this learning rate, until the next call or resume(). A checkpoint does
  // not keep it. On several ranks all call this with the same rate; if the rates differ, it throws on all. Throws UserError
  // for a rate that is negative or not finite, and if the schedule has a Plateau, which changes the rate itself.
  void set_learning_rate(double rate);

  // Writes a checkpoint with save_checkpoint(), and throws its errors. Only one process may write into a folder. The
  // checkpoint holds the whole store, with the state and the steps of all its Optimizers, and the state of the strategy.
  void save(const std::filesystem::path& directory, int keep = 1) const;
  // Loads the newest checkpoint in the folder, for all Optimizers of the store; returns false if there is none. With the
  // same feeds, the following steps give the same bits as in a run that was never stopped. With another number of ranks
  // the strategy drops the state of single ranks, such as the gradients that a compression has not sent yet. Throws what
  // load_checkpoint() throws, and UserError if the checkpoint was made with another seed, by other kinds of optimizers, or
  // with other patterns of parameters, and if the ranks find checkpoints of different steps, because they have folders of
  // their own.
  bool resume(const std::filesystem::path& directory);

 private:
  PlateauState plateau() const;
  void begin(Backend& backend, const std::function<OptimizerShape()>& make_shape);
  OptimizerShape built_for(std::span<const Feed> batch) const;
  OptimizerShape prepared(const LossOutputs& outputs, FeedTypes batch) const;
  OptimizerShape& shape_for(std::span<const Feed> batch);
  OptimizerShape& ready_shape();
  void reserve(const OptimizerShape& shape);
  PartBesideOthers take_part(const std::function<OptimizerShape()>& make_shape);
  void place(Backend& backend, PartBesideOthers placed);
  std::shared_ptr<const Program> compile_gradients(const OptimizerShape& shape,
                                                   const Placement* placement) const;
  void make_step(OptimizerShape& shape);
  bool must_compile_again() const;
  bool has_ranks() const { return options_.strategy != nullptr; }
  Collective& ranks() const;
  void check_ranks(std::span<const TrainedParts::Part> others) const;
  void place_on_ranks(Backend& backend, TrainedPart part);
  double step_on_ranks(std::span<const Feed> feeds);
  StepMetrics run_on_ranks(std::span<const Feed> feeds, bool updates_weights);
  SeparateStep& separate_step();
  SeparateStep& pending_step(std::string_view call);
  void check_nothing_pending(std::string_view call) const;
  // Throws the error for a loss or gradient that is not finite. `rest` is the end of its text.
  [[noreturn]] void throw_diverged(std::int64_t step, double loss, std::string_view rest = {}) const;

  OptimizerOptions options_;
  BackendUse backend_;
  ParameterStore store_;
  std::set<std::string> parameters_;  // names of the parameters that this Optimizer trains
  std::optional<double> rate_;        // learning rate that set_learning_rate() has set
  TrainedParts::Part part_;
  StrategyInUse strategy_;
  ModelBuilder build_;                    // empty: the only shape was made from a graph
  std::shared_ptr<Workspace> workspace_;  // memory of intermediate values that step() uses for all shapes
  std::list<OptimizerShape> shapes_;      // the one used last comes first; at least one
  std::shared_ptr<PendingBatches> pending_ = std::make_shared<PendingBatches>();
  std::uint64_t placed_times_ = 0;      // ParameterStore::placed_times() when the programs were made
  std::optional<StepMetrics> metrics_;  // metrics of the last step, or of the last batch of gradients()
};

}  // namespace plexaura
