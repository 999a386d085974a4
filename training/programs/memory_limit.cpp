#include "training/programs/memory_limit.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>

#include "core/compile/feed_layout.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

// True if the model computes something from all samples of a micro-batch that enters its result, or a buffer:
// the moments of batch norm.
bool takes_batch_statistics(const Graph& graph) {
  if (!graph.updates().empty()) return true;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == "moments") return true;
  return false;
}

// Tries numbers of micro-batches.
class MicroBatchSearch {
 public:
  MicroBatchSearch(const ModelBuilder& model, std::span<const Field> fields, const ParameterStore& store,
                   Backend& backend, const BatchPlan& plan, const ProgramOptions& options)
      : model_(model), fields_(fields), store_(store), backend_(backend), plan_(plan), options_(options) {}

  std::int64_t run() {
    const std::int64_t most = std::max(plan_.rank_share(0, 0).count, plan_.micro_batches);
    BatchPlan plan = plan_;
    std::optional<UserError> first;
    std::optional<UserError> last;
    for (; plan.micro_batches <= most; plan.micro_batches *= 2) {
      last = try_plan(plan);
      if (!last) break;
      if (!first) first = last;
    }
    if (last) throw UserError(*last);
    if (first && takes_statistics_)
      throw UserError(fmt::format(
          "{}; it fits with training.micro_batches {}, with which batch norm takes its statistics over {} "
          "samples at a time: set that, if it may, or raise training.memory",
          without_advice(*first), plan.micro_batches, plan.micro_batch(0, 0, 0).count));
    return plan.micro_batches;
  }

 private:
  // Returns why a step with this plan does not fit; nothing if it fits.
  std::optional<UserError> try_plan(const BatchPlan& plan) {
    const std::int64_t samples = plan.micro_batch(0, 0, 0).count;
    const BuiltModel built = build_model(model_, fields_, samples, store_, Mode::train);
    takes_statistics_ = takes_statistics_ || takes_batch_statistics(*built.graph);
    const std::size_t inputs = input_bytes(*built.graph);
    const auto outputs = training_outputs(*built.graph, built.outputs, store_, samples);
    CompileOptions options{
        .types = store_.types(), .apply_updates = false, .tuner = options_.tuner, .strict = options_.strict};
    const auto program = compile(*built.graph, outputs, backend_, options);
    const std::size_t others =
        inputs + parameter_bytes(program->placement, state_count(options_.optimizer), plan.micro_batches > 1);
    const std::size_t limit = arena_limit(*options_.memory, others);
    if (program->arena_bytes <= limit) return std::nullopt;
    options.placement = &program->placement;
    options.memory_limit = limit;
    try {
      compile(*built.graph, outputs, backend_, options);
    } catch (const MemoryLimitError& error) {
      return exceeds_memory(error, others, plan, *options_.memory);
    }
    return std::nullopt;
  }

  static std::string without_advice(const UserError& error) {
    const std::string text = error.what();
    return text.substr(0, text.rfind(';'));
  }

  const ModelBuilder& model_;
  std::span<const Field> fields_;
  const ParameterStore& store_;
  Backend& backend_;
  const BatchPlan& plan_;
  const ProgramOptions& options_;
  bool takes_statistics_ = false;
};

}  // namespace

std::size_t parameter_bytes(const Placement& placement, std::int64_t states, bool adds) {
  std::size_t bytes = placement.bytes(ArenaKind::value) + placement.bytes(ArenaKind::gradient) +
                      static_cast<std::size_t>(states) * placement.bytes(ArenaKind::state);
  if (placement.types.shadow) bytes += placement.bytes(ArenaKind::shadow);
  if (adds) bytes += placement.bytes(ArenaKind::addend);
  return bytes;
}

std::size_t input_bytes(const Graph& model) {
  FeedLayout layout;
  for (NodeId id = 0; id < model.size(); ++id)
    if (const Leaf* leaf = as_leaf(*model.record(id).op); leaf != nullptr && leaf->kind() == LeafKind::input)
      layout.append(leaf->type());
  return 2 * layout.bytes();
}

std::size_t arena_limit(std::int64_t memory, std::size_t others) {
  const auto bytes = static_cast<std::size_t>(std::max(memory, std::int64_t{0}));
  return bytes > others ? bytes - others : 0;
}

UserError exceeds_memory(const MemoryLimitError& error, std::size_t others, const BatchPlan& plan,
                         std::int64_t memory) {
  return UserError(
      fmt::format("training.memory is {} bytes, and a step with training.micro_batches {} needs at least {} "
                  "({} of them for "
                  "parameters, gradients, the optimizer's state and inputs), also if values are computed "
                  "again; raise it, "
                  "or lower training.batch_size",
                  memory, plan.micro_batches, error.least_bytes() + others, others));
}

std::int64_t micro_batches_within_memory(const ModelBuilder& model, std::span<const Field> fields,
                                         const ParameterStore& store, Backend& backend,
                                         Collective& collective, const BatchPlan& plan,
                                         const ProgramOptions& options) {
  std::int64_t chosen = plan.micro_batches;
  on_rank_0(collective, "fitting a step into training.memory",
            [&] { chosen = MicroBatchSearch(model, fields, store, backend, plan, options).run(); });
  collective.broadcast(reinterpret_cast<std::byte*>(&chosen), sizeof chosen, 0,
                       "the number of micro-batches");
  return chosen;
}

}  // namespace plexaura
