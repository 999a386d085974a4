// The shapes for which an Optimizer has compiled programs.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ops/batch_norm.h"
#include "training/programs/optimizer.h"
#include "training/programs/optimizer_parts.h"

namespace plexaura {

namespace {

std::string shapes_text(const FeedTypes& batch) {
  std::vector<std::string> inputs;
  for (const auto& [name, type] : batch) inputs.push_back(fmt::format("{} {}", name, to_string(type)));
  return fmt::format("{}", fmt::join(inputs, ", "));
}

}  // namespace

FeedTypes types_of(std::span<const Feed> feeds) {
  FeedTypes types;
  for (const Feed& feed : feeds) types.emplace_back(feed.name(), feed.type());
  std::ranges::sort(types, {}, &FeedTypes::value_type::first);
  return types;
}

// Builds the model for a batch.
OptimizerShape Optimizer::built_for(std::span<const Feed> batch) const {
  Graph graph;
  const LossOutputs outputs = build_(ModelInputs(graph, batch));
  check_loss_is_given(outputs);
  if (&outputs.loss.graph() != &graph)
    throw UserError(
        "the loss that the function of an Optimizer returned belongs to another graph than its inputs; build "
        "it "
        "from the inputs in each call");
  return prepared(outputs, types_of(batch));
}

OptimizerShape Optimizer::prepared(const LossOutputs& outputs, FeedTypes batch) const {
  const Graph& graph = outputs.loss.graph();
  check_batch_norms(graph, "build the graph for two samples or more");
  check_model(graph, outputs, store_);
  OptimizerShape shape{
      .batch = std::move(batch),
      .model = store_.types().is_mixed() ? narrowed(graph, outputs, store_) : copied(outputs),
      .labels = label_inputs(graph),
      .outputs = {}};
  shape.outputs =
      training_outputs(*shape.model.graph, shape.model.outputs, store_, samples_of_loss, &parameters_);
  return shape;
}

// Returns the shape of a batch, which becomes the first one. Builds the model if there is none.
OptimizerShape& Optimizer::shape_for(std::span<const Feed> batch) {
  if (!build_) return shapes_.front();
  const FeedTypes types = types_of(batch);
  const auto found = std::ranges::find(shapes_, types, &OptimizerShape::batch);
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  if (has_ranks())
    throw UserError(fmt::format(
        "an Optimizer of several ranks was made for the batch ({}) and was fed ({}); feed batches of one "
        "shape",
        shapes_text(shapes_.front().batch), shapes_text(types)));
  OptimizerShape shape = built_for(batch);
  while (std::ssize(shapes_) >= options_.kept_shapes) shapes_.pop_back();
  shapes_.push_front(std::move(shape));
  return shapes_.front();
}

// Compiles the programs of the first shape, and gives them memory, if they have none for the present placement.
OptimizerShape& Optimizer::ready_shape() {
  if (has_ranks() && placed_times_ != store_.placed_times())
    throw UserError(
        "the store was placed anew since this Optimizer of several ranks was made; make it anew, too");
  if (must_compile_again()) {
    *pending_ = {};
    for (OptimizerShape& shape : shapes_) shape.forget_programs();
  }
  if (!shapes_.front().step) make_step(shapes_.front());
  return shapes_.front();
}

// One workspace serves all shapes, which run one after the other. Where it becomes too small, a larger one takes its place,
// and the other shapes get their memory again when they are used.
void Optimizer::reserve(const OptimizerShape& shape) {
  const std::size_t bytes = std::max(shape.gradients->arena_bytes, shape.update->arena_bytes);
  if (workspace_ && workspace_->bytes() >= bytes) return;
  std::size_t feed_bytes = 0;
  for (OptimizerShape& other : shapes_) {
    other.step.reset();
    if (other.gradients) feed_bytes = std::max(feed_bytes, other.gradients->feed_bytes);
  }
  workspace_.reset();
  workspace_ = std::make_shared<Workspace>(backend_.get(), bytes, feed_bytes);
}

void Optimizer::make_step(OptimizerShape& shape) {
  Backend& backend = backend_.get();
  if (!shape.gradients) shape.gradients = compile_gradients(shape, &store_.placement());
  // A single rank has nothing to exchange, and so has one bucket.
  const std::int64_t bucket_bytes =
      has_ranks() ? 25 << 20 : static_cast<std::int64_t>(store_.placement().bytes(ArenaKind::gradient));
  auto step = std::make_unique<TrainingStep>(backend, store_, strategy_, bucket_bytes, options_.watch);
  if (!shape.update) {
    std::vector<Bucket> buckets = buckets_of(store_.placement(), parameters_);
    if (has_ranks()) buckets.assign(step->border().buckets().begin(), step->border().buckets().end());
    Graph update;
    // This update leaves the buffers of other Optimizers alone: they have already added the changes in the gradient arena.
    build_update(update, options_.optimizer, store_.placement(), buckets,
                 {.replaced = replaced_buffers(*shape.model.graph),
                  .updated = updated_buffers(*shape.model.graph),
                  .is_weighted = !shape.model.outputs.weight.is_empty(),
                  .is_guarded = true});
    // Uses the placement of the gradients, and not the store's, which may also contain frozen parameters: linked programs
    // must have the same placement.
    shape.update = compile(update, {}, backend, {.placement = &shape.gradients->placement});
  }
  reserve(shape);
  step->add_program(samples_of_loss, true, shape.gradients, shape.update.get(), workspace_, &ranks());
  shape.step = std::move(step);
  placed_times_ = store_.placed_times();
}

std::shared_ptr<const Program> Optimizer::compile_gradients(const OptimizerShape& shape,
                                                            const Placement* placement) const {
  return compile(*shape.model.graph, shape.outputs, backend_.get(),
                 {.placement = placement, .types = store_.types(), .apply_updates = false});
}

}  // namespace plexaura
