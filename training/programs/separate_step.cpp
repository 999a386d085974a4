#include "training/programs/separate_step.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "core/exchange/collective.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "training/programs/optimizer_parts.h"

namespace plexaura {

namespace {

Node as(DType dtype, const Node& node) { return node.dtype() == dtype ? node : cast(node, dtype); }

Node slice(Graph& graph, ArenaKind arena, const Bucket& bucket) {
  return graph.arena_slice({arena, 0, bucket.offset, bucket.count}, bucket.dtype);
}

// The name of the input of a program that limits gradients.
constexpr const char* limit_name = "limit";

Node limit(Graph& graph) { return graph.input(limit_name, {DType::float64, {}}); }

// Returns a node that is 0 if all gradients are finite, and NaN otherwise.
Node zero_if_finite(Graph& graph, std::span<const Bucket> buckets) {
  Node zero;
  for (const Bucket& bucket : buckets) {
    const Node part = as(DType::float64, sum(slice(graph, ArenaKind::gradient, bucket) * 0));
    zero = zero.is_empty() ? part : zero + part;
  }
  return zero;
}

// Replaces each gradient by next(gradient).
void replace_gradients(Graph& graph, std::span<const Bucket> buckets, const auto& next) {
  for (const Bucket& bucket : buckets) {
    const Node gradient = slice(graph, ArenaKind::gradient, bucket);
    graph.update(gradient, as(bucket.dtype, next(gradient, bucket)));
  }
}

void keep_gradients(Graph& graph, std::span<const Bucket> buckets, bool adds) {
  for (const Bucket& bucket : buckets) {
    const Node kept = slice(graph, ArenaKind::addend, bucket);
    const Node gradient = slice(graph, ArenaKind::gradient, bucket);
    graph.update(kept, adds ? kept + gradient : gradient);
  }
}

// Replaces each gradient by the mean over the batches: adds the gradients of earlier batches, and multiplies
// by StepScalar::share.
void take_means(Graph& graph, std::span<const Bucket> buckets) {
  replace_gradients(graph, buckets, [&](const Node& gradient, const Bucket& bucket) {
    const Node sum = slice(graph, ArenaKind::addend, bucket) + gradient;
    return sum * graph.step_scalar(StepScalar::share, bucket.dtype);
  });
}

// Scales the gradients to a limit of their norm, and returns the norm. It is computed in float64, in which no
// square of a float32 number is infinite or 0.
Node limit_norms(Graph& graph, std::span<const Bucket> buckets) {
  Node squares;
  for (const Bucket& bucket : buckets) {
    const Node part = sum(square(as(DType::float64, slice(graph, ArenaKind::gradient, bucket))));
    squares = squares.is_empty() ? part : squares + part;
  }
  const Node norm = sqrt(squares);
  const Node most = limit(graph);
  const Node factor = where(gt(norm, most), most / norm, 1);
  replace_gradients(graph, buckets, [&](const Node& gradient, const Bucket& bucket) {
    return gradient * as(bucket.dtype, factor);
  });
  return norm;
}

Node limit_magnitudes(Graph& graph, std::span<const Bucket> buckets) {
  Node largest;
  for (const Bucket& bucket : buckets) {
    const Node part = as(DType::float64, max(abs(slice(graph, ArenaKind::gradient, bucket))));
    largest = largest.is_empty() ? part : maximum(largest, part);
  }
  const Node most = limit(graph);
  replace_gradients(graph, buckets, [&](const Node& gradient, const Bucket& bucket) {
    return minimum(maximum(gradient, as(bucket.dtype, -most)), as(bucket.dtype, most));
  });
  return largest;
}

}  // namespace

void PendingBatches::check_not_limited() const {
  if (has_mean && batches > 0)
    throw UserError(
        "Optimizer::gradients: the gradients of this step were limited; add all batches before the limit, "
        "and call update() before those of the next step");
}

void PendingBatches::check_same(Collective& ranks) const {
  const std::string what = "the calls of an Optimizer since the last update";
  const auto all = ranks.gather_all(fmt::format("{} of gradients(){}", batches, limits), what);
  together(ranks, what, [&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw UserError(
            fmt::format("Optimizer::update: the calls since the last update are {} on rank {}, and {} on "
                        "rank 0; make the same calls on all ranks",
                        all[rank], rank, all[0]));
  });
}

SeparateStep::SeparateStep(const LossOutputs& model, std::vector<ProgramOutput> outputs,
                           const ParameterStore& store, Backend& backend, std::vector<Bucket> trained,
                           const OptimizerSpec& optimizer, Collective& ranks,
                           std::shared_ptr<PendingBatches> pending, bool watch)
    : model_(model),
      outputs_(std::move(outputs)),
      store_(store.share()),
      backend_(backend),
      trained_(std::move(trained)),
      optimizer_(optimizer),
      ranks_(ranks),
      watch_(watch),
      vms_(static_cast<std::size_t>(Task::count)),
      pending_(std::move(pending)) {}

// Compiles the program of gradients. The loss and the metrics are outputs to be read, after the outputs for
// the arena.
std::shared_ptr<const Program> SeparateStep::compile_gradients() const {
  std::vector<ProgramOutput> outputs = outputs_;
  outputs.push_back({.node = model_.loss});
  for (const Metric& metric : model_.metrics)
    outputs.push_back({.node = metric.mean.is_empty() ? metric.sum : metric.mean});
  return compile(model_.loss.graph(), outputs, backend_,
                 {.placement = &store_.placement(), .types = store_.types(), .apply_updates = false});
}

std::shared_ptr<const Program> SeparateStep::compile_for(Task task) const {
  if (task == Task::gradients) return compile_gradients();
  Graph graph;
  std::vector<ProgramOutput> outputs;
  const std::span<const Bucket> own = std::span(trained_).first(trained_.size() - 1);
  if (task == Task::check) outputs = {{.node = zero_if_finite(graph, own)}};
  if (task == Task::buffers)
    build_buffer_update(
        graph, store_.placement(),
        {.replaced = replaced_buffers(model_.loss.graph()), .updated = updated_buffers(model_.loss.graph())});
  if (task == Task::keep || task == Task::add) keep_gradients(graph, own, task == Task::add);
  if (task == Task::mean) take_means(graph, own);
  if (task == Task::norm) outputs = {{.node = limit_norms(graph, own)}};
  if (task == Task::values) outputs = {{.node = limit_magnitudes(graph, own)}};
  if (task == Task::update)
    build_update(graph, optimizer_, store_.placement(), trained_, {.updated = std::set<std::string>{}});
  return compile(graph, outputs, backend_, {.placement = &store_.placement()});
}

VM& SeparateStep::vm(Task task) {
  std::unique_ptr<VM>& made = vms_[static_cast<std::size_t>(task)];
  if (!made)
    made = std::make_unique<VM>(compile_for(task), backend_,
                                VmOptions{.store = &store_, .collective = &ranks_, .watch = watch_});
  return *made;
}

void SeparateStep::keep_batches() {
  if (pending_->batches > 0) vm(pending_->batches == 1 ? Task::keep : Task::add).run({}, StepBlock{});
}

bool SeparateStep::count_batch(double loss, std::int64_t samples) {
  vm(Task::check).run({}, StepBlock{});
  pending_->has_mean = false;
  if (!std::isfinite(loss) || vm(Task::check).output().to_doubles()[0] != 0) {
    drop();
    return false;
  }
  if (!updated_buffers(model_.loss.graph()).empty()) vm(Task::buffers).run({}, StepBlock{});
  ++pending_->batches;
  pending_->samples += samples;
  return true;
}

StepMetrics SeparateStep::run(std::span<const Feed> feeds, const StepBlock& block) {
  VM& gradients = vm(Task::gradients);
  gradients.run(feeds, block);
  StepMetrics metrics{.loss = gradients.output(0).to_doubles()[0], .samples = 1};
  for (std::size_t i = 0; i < model_.metrics.size(); ++i)
    metrics.sums[i] = gradients.output(i + 1).to_doubles()[0];
  return metrics;
}

bool SeparateStep::take_mean() {
  if (std::exchange(pending_->has_mean, true) || pending_->batches == 1) return true;
  vm(Task::mean).run({}, {.share = 1 / static_cast<double>(pending_->batches)});
  vm(Task::check).run({}, StepBlock{});
  return vm(Task::check).output().to_doubles()[0] == 0;
}

double SeparateStep::run_limit(Task task, double most) {
  vm(task).run({{limit_name, Tensor::scalar(most)}}, StepBlock{});
  return vm(task).output().to_doubles()[0];
}

double SeparateStep::limit_norm(double most) { return run_limit(Task::norm, most); }
double SeparateStep::limit_values(double most) { return run_limit(Task::values, most); }

void SeparateStep::update(const StepBlock& block) {
  vm(Task::update).run({}, block);
  vm(Task::update).wait();
  drop();
}

}  // namespace plexaura
