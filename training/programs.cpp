#include "training/programs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "core/did_you_mean.h"
#include "core/fnv.h"
#include "core/graph/structure.h"

namespace plexaura {

namespace {

Shape batch_shape(const Shape& sample, std::int64_t samples) {
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(std::move(extents));
}

std::string broadcast_text(Collective& collective, std::string text, std::string_view what) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  collective.broadcast(reinterpret_cast<std::byte*>(&size), sizeof size, 0, what);
  text.resize(static_cast<std::size_t>(size));
  collective.broadcast(reinterpret_cast<std::byte*>(text.data()), text.size(), 0, what);
  return text;
}

// The dtype in which a field reaches the graph.
DType fed_dtype(DType of_field, DType of_store) { return is_floating(of_field) ? of_store : of_field; }

}  // namespace

ModelInputs::ModelInputs(Graph& graph, std::span<const Field> fields, std::int64_t samples, DType dtype)
    : graph_(graph), samples_(samples) {
  for (const Field& field : fields)
    nodes_.emplace_back(field.name, graph.input(field.name, {fed_dtype(field.type.dtype, dtype),
                                                             batch_shape(field.type.shape, samples)}));
}

Node ModelInputs::operator[](std::string_view field) const {
  std::vector<std::string> known;
  for (const auto& [name, node] : nodes_) {
    if (name == field) return node;
    known.push_back(name);
  }
  throw UserError(fmt::format("the model asks for '{}', and the data has {}{}", field, fmt::join(known, ", "),
                              did_you_mean(field, known)));
}

TrainingPrograms::TrainingPrograms(ModelBuilder model, std::vector<Field> fields, ParameterStore& store,
                                   Backend& backend, Collective& collective, Strategy* strategy,
                                   const BatchPlan& train, const BatchPlan& validation,
                                   const ProgramOptions& options)
    : model_(std::move(model)),
      fields_(std::move(fields)),
      store_(store),
      backend_(backend),
      collective_(collective),
      options_(options) {
  const std::int64_t rank = collective.rank();
  const std::int64_t first = train.micro_batch(0, 0, 0).count;
  place(collective, strategy, first);
  together(collective, "compiling", [&] {
    compile_all(train, validation, rank);
    make_machines(strategy);
    plan_hash_ = hash_of_plan(first);
    kernels_hash_ = hash_of_kernels(train);
  });
}

LossOutputs TrainingPrograms::build(Graph& graph, std::int64_t samples) {
  LossOutputs outputs = model_(ModelInputs(graph, fields_, samples, store_.dtype()));
  metric_names_.clear();
  metric_is_mean_.clear();
  for (const Metric& metric : outputs.metrics) {
    metric_names_.push_back(metric.name);
    metric_is_mean_.push_back(static_cast<bool>(metric.mean));
  }
  return outputs;
}

std::shared_ptr<const Program> TrainingPrograms::compile_gradients(std::int64_t samples, bool accumulate,
                                                                   const Placement* placement) {
  Graph graph(Mode::train);
  const LossOutputs model = build(graph, samples);
  const std::vector<ProgramOutput> outputs = training_outputs(graph, model, store_, samples);
  return compile(graph, outputs, backend_,
                 {.placement = placement, .accumulate = accumulate, .apply_updates = false});
}

std::shared_ptr<const Program> TrainingPrograms::compile_evaluation(std::int64_t samples) {
  Graph graph(Mode::inference);
  const LossOutputs model = build(graph, samples);
  std::vector<ProgramOutput> outputs{{.node = model.loss}};
  for (const Metric& metric : model.metrics)
    outputs.push_back({.node = metric.mean ? metric.mean : metric.sum});
  return compile(graph, outputs, backend_, {.placement = &store_.placement()});
}

// The lowest rank has samples in every step; its placement is everyone's.
void TrainingPrograms::place(Collective& collective, Strategy* strategy, std::int64_t samples) {
  std::string placement;
  together(collective, "placing the parameters", [&] {
    if (collective.rank() == 0) placement = to_text(compile_gradients(samples, false, nullptr)->placement);
  });
  placement = broadcast_text(collective, std::move(placement), "the placement of the parameters");
  MemoryProvider shared;
  if (strategy != nullptr && backend_.info().host_memory)
    shared = [&](std::size_t bytes) {
      std::unique_ptr<Memory> memory = strategy->gradient_memory(bytes);
      return memory ? std::move(memory) : backend_.allocate(bytes, MemoryUse::device);
    };
  together(collective, "placing the parameters", [&] {
    store_.place(parse_placement(placement), backend_, shared);
    store_.require_states(state_count(options_.optimizer));
  });
}

void TrainingPrograms::compile_all(const BatchPlan& train, const BatchPlan& validation, std::int64_t rank) {
  for (const std::int64_t samples : train.micro_batch_sizes(rank))
    for (const bool accumulate : {false, true})
      if (!accumulate || train.micro_batches > 1)
        gradients_[{samples, accumulate}] = compile_gradients(samples, accumulate, &store_.placement());
  if (validation.samples == 0) return;
  for (const std::int64_t samples : validation.micro_batch_sizes(rank))
    if (samples > 0) evaluations_[samples] = compile_evaluation(samples);
}

void TrainingPrograms::make_machines(Strategy* strategy) {
  step_ = std::make_unique<TrainingStep>(backend_, store_, strategy, options_.bucket_bytes, options_.watch,
                                         options_.profile);
  Graph graph;
  build_update(graph, options_.optimizer, store_.placement(), step_->border().buckets());
  update_ = compile(graph, {}, backend_, {.placement = &store_.placement()});
  std::size_t bytes = update_->arena_bytes;
  for (const auto& [key, program] : gradients_) bytes = std::max(bytes, program->arena_bytes);
  for (const auto& [samples, program] : evaluations_) bytes = std::max(bytes, program->arena_bytes);
  workspace_ = std::make_shared<Workspace>(backend_, bytes);
  step_->set_update_program(update_, workspace_);
  for (const auto& [key, program] : gradients_)
    step_->add_gradient_program(key.first, key.second, program, workspace_, &collective_);
  for (const auto& [samples, program] : evaluations_) add_evaluator(samples);
}

void TrainingPrograms::add_evaluator(std::int64_t samples) {
  const std::shared_ptr<const Program>& program = evaluations_.at(samples);
  const bool fits = program->arena_bytes <= workspace_->bytes();
  evaluators_[samples] = std::make_unique<VM>(
      program, backend_,
      VmOptions{&store_, fits ? workspace_ : nullptr, &collective_, {}, options_.watch, options_.profile});
}

VM& TrainingPrograms::evaluator(std::int64_t samples) {
  if (!evaluators_.contains(samples)) {
    evaluations_[samples] = compile_evaluation(samples);
    add_evaluator(samples);
  }
  return *evaluators_.at(samples);
}

std::uint64_t TrainingPrograms::hash_of_kernels(const BatchPlan& train) const {
  std::set<std::int64_t> shared;
  for (const auto& [key, program] : gradients_) shared.insert(key.first);
  for (std::int64_t rank = 0; rank < train.ranks; ++rank) {
    const std::vector<std::int64_t> sizes = train.micro_batch_sizes(rank);
    std::erase_if(shared, [&](std::int64_t size) { return !std::ranges::binary_search(sizes, size); });
  }
  std::string text = fmt::format("{:x}", update_->plan_hash());
  for (const auto& [key, program] : gradients_)
    if (shared.contains(key.first)) text += fmt::format(" {:x}", program->plan_hash());
  return fnv(text);
}

std::vector<Feed> TrainingPrograms::feeds(const std::vector<Tensor>& values) const {
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const DType dtype = fed_dtype(values[i].dtype(), store_.dtype());
    if (values[i].dtype() == dtype)
      feeds.emplace_back(fields_[i].name, values[i]);
    else
      feeds.emplace_back(fields_[i].name, values[i].cast(dtype));
  }
  return feeds;
}

Evaluation TrainingPrograms::evaluate(std::span<const Feed> feeds, std::int64_t samples) {
  Evaluation sums{.metrics = std::vector<double>(metric_names_.size())};
  if (samples == 0) return sums;
  VM& vm = evaluator(samples);
  vm.run(feeds);
  const auto scalar = [&](std::size_t index) { return vm.output(index).to_doubles()[0]; };
  sums.samples = static_cast<double>(samples);
  sums.loss = scalar(0) * sums.samples;
  for (std::size_t i = 0; i < sums.metrics.size(); ++i)
    sums.metrics[i] = scalar(i + 1) * (metric_is_mean_[i] ? sums.samples : 1);
  return sums;
}

// Every rank builds the graph of rank 0's first micro-batch, whatever sizes it has itself.
std::uint64_t TrainingPrograms::hash_of_plan(std::int64_t samples) {
  const std::span<const Bucket> buckets = step_->border().buckets();
  Graph gradients(Mode::train);
  const auto outputs = training_outputs(gradients, build(gradients, samples), store_, samples);
  Graph update;
  build_update(update, options_.optimizer, store_.placement(), buckets);
  std::string text = to_text(store_.placement());
  for (const ProgramOutput& output : outputs)
    text += fmt::format("%{}.{} {} {}\n", output.node.value().node, output.node.value().output,
                        output.gradient_of, output.tail ? static_cast<int>(*output.tail) : -1);
  for (const Bucket& bucket : buckets) text += fmt::format("{} {}\n", bucket.offset, bucket.count);
  return fnv(fmt::format("{:x} {:x}", structure_hash(gradients), structure_hash(update)), fnv(text));
}

}  // namespace plexaura
