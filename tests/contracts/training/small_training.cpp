#include "tests/contracts/training/small_training.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/compile/link.h"
#include "testing/values.h"
#include "training/programs/bucket_updates.h"

namespace plexaura::testing {

namespace {

Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> extents = tensor.shape().extents();
  const std::size_t row = extents[0] == 0 ? 0 : tensor.bytes() / static_cast<std::size_t>(extents[0]);
  extents[0] = count;
  Tensor result(TensorType{tensor.dtype(), Shape(std::move(extents))});
  if (count > 0)
    std::copy_n(tensor.data() + static_cast<std::size_t>(first) * row, result.bytes(), result.data());
  return result;
}

}  // namespace

Batch part(const Batch& batch, std::int64_t first, std::int64_t count) {
  return {rows(batch.x, first, count), rows(batch.t, first, count)};
}

SmallTraining::SmallTraining(Backend& backend, std::vector<ParameterSpec> specs, Model model,
                             const Batch& like, Options options)
    : backend_(backend),
      store_(std::move(specs), static_cast<std::uint64_t>(options.seed)),
      model_(std::move(model)),
      x_(like.x.type()),
      t_(like.t.type()),
      options_(std::move(options)),
      strategy_(options_.strategy) {
  if (options_.types) store_.set_types(*options_.types);
  const Placement placement = options_.placement != nullptr
                                  ? *options_.placement
                                  : compile_gradients(options_.sizes[0], nullptr)->placement;
  store_.place(placement, backend_, options_.gradient_memory);
  store_.require_states(state_count(options_.optimizer));
  step_ = std::make_unique<TrainingStep>(backend_, store_, strategy_, options_.bucket_bytes, options_.watch);
  compile_gradients(options_.sizes[0], &store_.placement());  // to know which buffers it replaces
  Graph graph;
  build_update(graph, options_.optimizer, store_.placement(), step_->border().buckets(),
               {.replaced = replaced_, .is_weighted = is_weighted_});
  update_ = compile(graph, {}, backend_, {.placement = &store_.placement()});
  if (strategy_.parts.updates_late)
    step_->update_late(compile_bucket_updates(options_.optimizer, store_.placement(),
                                              step_->border().buckets(), replaced_, backend_, nullptr));
  std::size_t bytes = update_->arena_bytes;
  std::map<std::int64_t, std::shared_ptr<const Program>> adding;
  for (const std::int64_t samples : options_.sizes) {
    programs_[samples] = compile_gradients(samples, &store_.placement());
    bytes = std::max(bytes, programs_[samples]->arena_bytes);
    if (!options_.micro_batches) continue;
    adding[samples] = add_to_gradients(*programs_[samples], step_->border().buckets(), backend_);
    bytes = std::max(bytes, adding[samples]->arena_bytes);
  }
  const auto workspace = std::make_shared<Workspace>(backend, bytes);
  const auto add = [&](std::int64_t samples, bool is_first, const Program* update) {
    step_->add_program(samples, is_first, is_first ? programs_[samples] : adding[samples], update, workspace,
                       options_.collective);
  };
  for (const std::int64_t samples : options_.sizes) {
    add(samples, true, update_.get());
    for (const Program* update : {update_.get(), static_cast<const Program*>(nullptr)})
      if (options_.micro_batches) add(samples, false, update);
    if (options_.micro_batches) add(samples, true, nullptr);
  }
}

std::shared_ptr<const Program> SmallTraining::compile_gradients(std::int64_t samples,
                                                                const Placement* placement) {
  const auto with_samples = [&](const TensorType& type) {
    std::vector<std::int64_t> extents = type.shape.extents();
    extents[0] = samples;
    return TensorType{type.dtype, Shape(std::move(extents))};
  };
  Graph graph;
  const Node x = graph.input("x", with_samples(x_));
  const Node t = graph.input("t", with_samples(t_));
  const LossOutputs model = model_(graph, x, t);
  is_weighted_ = !model.weight.is_empty();
  const auto outputs = training_outputs(graph, model, store_, samples);
  replaced_ = replaced_buffers(graph);
  return compile(graph, outputs, backend_,
                 {.placement = placement, .types = store_.types(), .apply_updates = false});
}

StepTicket SmallTraining::launch(std::span<const Batch> micro_batches, double learning_rate,
                                 std::int64_t global_samples, std::int64_t first_sample) {
  StepInputs inputs;
  std::vector<std::vector<Feed>> feeds;
  std::vector<MicroBatchInputs> batches;
  std::int64_t samples = 0;
  for (const Batch& batch : micro_batches) {
    feeds.push_back({Feed{"x", batch.x}, Feed{"t", batch.t}});
    batches.push_back({feeds.back(), batch.samples(), first_sample + samples});
    samples += batch.samples();
  }
  inputs.micro_batches = batches;
  inputs.global_samples = global_samples < 0 ? samples : global_samples;
  inputs.step = ++steps_done_;
  inputs.learning_rate = learning_rate;
  inputs.seed = options_.seed;
  inputs.loss_scale = options_.loss_scale;
  return last_ = step_->run(inputs);
}

StepMetrics SmallTraining::step(const Batch& batch, double learning_rate) {
  launch(std::span(&batch, 1), learning_rate);
  return metrics();
}

Tensor whole_numbers(const TensorType& type, std::uint64_t seed, std::int64_t largest) {
  Random random(seed);
  return make(type, whole(-largest, largest + 1), random);
}

void check_same_values(const ParameterStore& a, const ParameterStore& b) {
  for (const ParameterSpec& spec : a.specs()) {
    CAPTURE(spec.name);
    CHECK(a.read(spec.name) == b.read(spec.name));
  }
}

}  // namespace plexaura::testing
