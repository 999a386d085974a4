#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/exchange/courier.h"
#include "core/exchange/dealer.h"
#include "core/exchange/exchange_record.h"
#include "core/exchange/weights_immigration.h"

// A Strategy says how ranks work together. It consists of parts, each an interface with one task. A run reads
// the parts once, when it is set up. A part that a strategy lacks costs nothing.

namespace plexaura {

// Sums gradients over ranks, bucket by bucket. The engine announces each bucket when it is final, and asks
// for its sum before it updates the bucket's parameters.
class PLEXAURA_API GradientSum {
 public:
  virtual ~GradientSum();

  // Provides memory for the arena of gradients, such as a window that ranks share. Null: the engine allocates
  // it. Called on all ranks at the same point, and only if the backend's memory is host memory. The store
  // keeps the object, perhaps for longer than the strategy lives. May call all ranks.
  virtual std::unique_ptr<Memory> gradient_memory(std::size_t bytes);

  // Called during backward for each bucket, in the order of the placement. The bucket is final when the event
  // has passed. Must not block. If the model itself calls all ranks in each step, this is called after
  // backward.
  virtual void gradients_ready(std::size_t bucket, Event& final) = 0;

  // Called before the update of each bucket, in the order of the placement unless StrategyParts::updates_late is
  // declared. The answer `skip` is legal for bucket 0 only, and a sum that may return it exchanges all buckets first.
  // Some ranks may skip an update that others make. May call all ranks.
  virtual UpdateAnswer before_update(std::size_t bucket) = 0;

  // Lets all ranks agree that the step is complete. Called once in a step, if StrategyParts::agrees is
  // declared: before_update has answered for all buckets, their events have passed, and no weight has
  // changed. If this or an earlier call of the step throws, weights, buffers and the optimizer's state stay
  // as they were before the step. After this call a step cannot be given up any more. May call all ranks.
  virtual void agree() {}
};

// Exchanges weights over ranks after updates, or provides other weights for validation and checkpoints than
// training uses. Its functions may call all ranks, except is_exchanging().
class PLEXAURA_API WeightExchange {
 public:
  virtual ~WeightExchange();

  // Called after the update of all buckets. May overwrite weights.
  virtual void after_update() {}

  // Called before validation, a checkpoint or the end of the run, if StrategyParts::shows_weights is
  // declared. May replace the weights by those to be validated and saved.
  virtual void show_weights() {}
  // Called after show_weights(), before the next step if there is one. Restores the weights of training.
  virtual void take_weights_back() {}

  // With local scope: returns true if an exchange is still running after the last step. Returns the same on
  // all ranks. The trainer delays its own sums meanwhile, up to a limit.
  virtual bool is_exchanging() const { return false; }
};

// A tensor of a strategy that a checkpoint keeps.
struct StrategyState {
  std::string name;  // see is_parameter_name() for valid names
  Tensor value;
  bool of_rank = false;  // true: each rank has its own tensor; false: all ranks get the tensor of rank 0
};

// State of a strategy that outlives the strategy: it is kept in checkpoints and, with local scope, on the
// ranks that remain when others are lost.
class PLEXAURA_API KeptState {
 public:
  virtual ~KeptState();

  // Returns the tensors that a checkpoint keeps beside weights and the optimizer's state. Called on all ranks
  // between steps. With local scope it is also called on the remaining ranks after others were lost in a
  // step. Must not call all ranks, because some may fail in it.
  virtual std::vector<StrategyState> state() const = 0;

  // Sets the tensors of the checkpoint from which the run was resumed. Called between begin() and the first
  // step. Tensors with `of_rank` are restored if there are as many ranks as before. With local scope they are
  // also restored if there are more. Otherwise they are dropped. With shows_weights the store holds the
  // weights of the checkpoint, which are those that were shown; take_weights_back() is not called before the
  // first step.
  virtual void take_state(std::vector<StrategyState> state) = 0;

  // With local scope, after ranks were lost: called once, after the remaining ranks have called begin() and
  // each has restored the whole state() of its former strategy. They may be at different points of an
  // exchange: here either all of them complete it, or none does. WeightsImmigration::place() is the last step
  // that any of them has made. May call all ranks.
  virtual void complete_exchange() {}
};

// The work of a rank that trains nothing.
class PLEXAURA_API Server {
 public:
  virtual ~Server();

  // Does the whole work of this rank, which has no share of the data and makes no step.
  virtual void serve(WeightsImmigration& border) = 0;
};

// The mean to which gradients, and changes of buffers, belong.
enum class GradientScope : std::uint8_t {
  // This rank's share of the mean over the whole batch of the step. The strategy sums all buckets, with the
  // tail.
  global,
  // The gradient is the mean over this rank's own samples; the trainer sums the tails, those of several steps
  // at once.
  local
};

// The parts of a strategy, which owns them, and its declarations about them. A null part is one that the
// strategy does not have.
struct StrategyParts {
  GradientSum* gradients = nullptr;
  WeightExchange* weights = nullptr;

  // Null: the ranks make each step together. Otherwise, with local scope, each rank makes its own steps, from
  // the parts of batches that the dealer hands out, and no step is agreed on or summed. When all parts are
  // handed out, all ranks call show_weights(), which sets the same weights on all of them. Then the number of
  // a step is its place in the run, and a rank may make several steps with the same number, or none.
  Dealer* dealer = nullptr;

  // Null: each rank reads its own samples. Otherwise rank 0 reads the samples of all ranks, each step in as
  // many parts as ranks train, and the courier brings them to the other ranks, which need no data set.
  Courier* courier = nullptr;

  KeptState* state = nullptr;

  // Null: this rank trains. Otherwise it serves: it gets no data and no programs.
  Server* server = nullptr;

  // Must be equal on all ranks.
  GradientScope scope = GradientScope::global;

  // True if all ranks get the weights of one rank from time to time. Then the ranks need not round alike.
  bool realigns_weights = false;

  // True if validation and checkpoints use other weights than training: those of show_weights().
  bool shows_weights = false;

  // True if GradientSum::agree() must be called, and no bucket is updated before all have been exchanged.
  bool agrees = false;

  // True if buckets may be updated as late as the next step needs them, while others are still exchanged.
  // Only legal if no answer skips the update. before_update is called for the last bucket at the end of the
  // step. For each other bucket it is called at the first instruction of the next step that reads its weights
  // or writes its gradients, or earlier: at the end of an epoch, and before the weights are validated, saved or
  // shown. The order is not that of the placement, and differs between ranks.
  bool updates_late = false;

  // True if buckets stay in device memory, where sum_on_device() of the border sums them: no copy is made,
  // and only this rank learns of a failure of its device. Has no effect if the backend's memory is host
  // memory.
  bool on_device = false;
};

// Throws UserError for a declaration about a part that is null, for a dealer without local scope, and for local scope
// without a part that exchanges weights.
PLEXAURA_API void check_strategy_parts(const StrategyParts& parts);

// Defines how ranks work together. Each rank has one object, which may itself be several of its parts. The
// thread that trains calls it and its parts, never concurrently. There is one exception: Overlapped has its
// own thread, which calls before_update() of the GradientSum that it wraps.
class PLEXAURA_API Strategy {
 public:
  virtual ~Strategy();

  // Returns the same parts in every call.
  virtual StrategyParts parts() = 0;

  // Prepares the strategy. Called once, before the first step, after everything is placed. May call all
  // ranks.
  virtual void begin(WeightsImmigration&) {}

  // Called after a step has thrown, or a rank was lost. This strategy makes no further step. When this
  // returns, none of its threads uses the border or calls other ranks.
  virtual void give_up() noexcept {}

  // Ends the strategy. Called once, after the last step of a run that ends without an error. Must not change
  // weights. A client reports its end to its server here. May call all ranks.
  virtual void end() {}

  // Returns what this rank has exchanged since the last call. Called between steps. Empty if the strategy
  // does not count it, or if nothing was exchanged.
  virtual std::optional<ExchangeRecord> take_exchange_record() { return std::nullopt; }

  // Returns a summary of this rank's work as lines of text, which are printed at the end of a run. If it is
  // empty, nothing is printed.
  virtual std::string account() const { return {}; }

  // Called before begin(), on a strategy that was made after ranks were lost: continues the account of
  // `former`, this rank's previous strategy of the same kind. May call all ranks.
  virtual void continue_from(const Strategy& /*former*/) {}
};

// A strategy and its parts, which are read once. A null strategy has no parts and stands for a program that
// runs alone.
struct PLEXAURA_API StrategyInUse {
  explicit StrategyInUse(Strategy* given);

  Strategy* strategy;
  StrategyParts parts;
};

// Returns the strategy itself or, for null, a strategy without parts, which stands for a program that runs
// alone.
PLEXAURA_API Strategy& strategy_or_none(Strategy* strategy);

// A strategy with the parts of another one. A derived class replaces some of them in parts(). All other calls
// are forwarded to the other strategy.
class PLEXAURA_API StrategyDecorator : public Strategy {
 public:
  // `inner` must outlive the decorator.
  explicit StrategyDecorator(Strategy& inner) : inner_(inner) {}

  StrategyParts parts() override { return inner_.parts(); }
  void begin(WeightsImmigration& border) override { inner_.begin(border); }
  void give_up() noexcept override { inner_.give_up(); }
  void end() override { inner_.end(); }
  std::optional<ExchangeRecord> take_exchange_record() override { return inner_.take_exchange_record(); }
  std::string account() const override { return inner_.account(); }
  // Passes `former` on to the inner strategy. If `former` is a decorator, passes its inner strategy.
  void continue_from(const Strategy& former) override;

 private:
  Strategy& inner_;
};

}  // namespace plexaura
