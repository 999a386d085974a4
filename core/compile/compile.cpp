#include "core/compile/compile.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/compile/assign_memory.h"
#include "core/compile/bind_kernels.h"
#include "core/compile/feed_layout.h"
#include "core/compile/memory_plan.h"
#include "core/compile/rebuild.h"
#include "core/compile/recompute.h"
#include "core/compile/step_block.h"
#include "core/graph/print.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

constexpr std::size_t instructions_side_by_side = 4;

class Compiler {
 public:
  Compiler(const Graph& graph, std::span<const ProgramOutput> outputs, Backend& backend,
           const CompileOptions& options)
      : source_(graph),
        outputs_(outputs),
        backend_(backend),
        options_(options),
        placement_(options.placement == nullptr || options.placement->entries.empty() ? nullptr
                                                                                      : options.placement),
        program_(std::make_shared<Program>()) {
    program_->backend = backend.info().name;
    if (options.memory_limit && !optimise())
      throw UserError(
          "CompileOptions::memory_limit needs a program that is optimised, and keeps only its outputs; leave "
          "out the limit, or optimise = false and keep_all");
    for (NodeId id = 0; id < source_.size(); ++id)
      if (const Leaf* leaf = as_leaf(*source_.record(id).op);
          leaf != nullptr && (leaf->kind() == LeafKind::parameter || leaf->kind() == LeafKind::buffer))
        if (stored_leaves_.emplace(leaf->label(), leaf).second && first_stored_ == nullptr)
          first_stored_ = leaf;
  }

  std::shared_ptr<const Program> run() {
    lowered_ = bind_kernels(run_passes(), backend_);
    log_binding();
    program_->placement = placement_ != nullptr ? *placement_ : make_placement();
    for (const Placement::Entry& entry : program_->placement.entries) entries_.emplace(entry.name, &entry);
    program_->reorders = lowered_.reorders;
    find_homes();
    assignment_ = assigned(lowered_);
    program_->estimates.unlimited_arena_bytes = assignment_.arena_bytes;
    if (options_.memory_limit && assignment_.arena_bytes > *options_.memory_limit) limit_memory();
    program_->arena_bytes = assignment_.arena_bytes;
    program_->estimates.arena_lower_bound = assignment_.arena_lower_bound;
    program_->prologue_bytes = assignment_.prologue_bytes;
    log_plan();
    emit_instructions();
    emit_outputs();
    program_->graph = std::move(lowered_.graph);
    return program_;
  }

 private:
  bool optimise() const { return options_.optimise && !options_.keep_all; }

  Assignment assigned(const Lowered& lowered) const {
    // A device with its own memory may run instructions at the same time if they use different memory.
    return assign_memory(lowered, homes_, optimise(),
                         backend_.info().host_memory ? 0 : instructions_side_by_side);
  }

  void limit_memory() {
    const auto assign = [&](const Lowered& lowered) { return assigned(lowered); };
    Recomputed result = recompute(lowered_, homes_, assign, assignment_.arena_bytes, *options_.memory_limit);
    lowered_ = std::move(result.lowered);
    assignment_ = std::move(result.assignment);
    program_->passes.push_back(fmt::format("recompute: {} kernels again, instead of an arena of {} bytes",
                                           std::ranges::count_if(lowered_.steps, &BoundInstruction::is_again),
                                           program_->estimates.unlimited_arena_bytes));
  }

  BindRequest run_passes() {
    verify(source_);
    verify_outputs(source_, outputs_);
    std::vector<Value> roots;
    for (const ProgramOutput& output : outputs_) roots.push_back(output.node.value());
    log("verify", source_);
    if (options_.keep_all) {
      kept_ = needed(source_, roots, options_.apply_updates);
      roots.insert(roots.end(), kept_.begin(), kept_.end());
    }
    PassGraph graph = prune(source_, roots, options_.apply_updates);
    log("prune", *graph.graph);
    if (options_.same_operands.empty()) verify_no_operands(*graph.graph);
    if (optimise()) {
      graph = merge(graph);
      log("merge", *graph.graph);
      graph = fold(graph, backend_);
      log("fold", *graph.graph);
      if (std::optional<PassGraph> repeated = repeat(graph, backend_)) {
        graph = std::move(*repeated);
        log("repeat", *graph.graph);
      }
    }
    cast_targets(graph);
    BindRequest request{std::move(graph), {}, placement_, optimise(), false, options_.tuner, options_.strict};
    request.prologue = optimise() && request.graph.graph->updates().empty();
    if (request.graph.graph->updates().empty()) request.shadow = types().shadow;
    request.same_operands = options_.same_operands;
    request.steps = options_.loop_steps;
    split_outputs(request);
    return request;
  }

  ArenaTypes types() const {
    if (options_.placement != nullptr) return options_.placement->types;
    if (options_.types) return *options_.types;
    return first_stored_ == nullptr ? ArenaTypes{} : ArenaTypes::all(first_stored_->type().dtype);
  }

  // Casts outputs that go to the gradient arena to the dtype of that arena.
  void cast_targets(PassGraph& graph) const {
    const ArenaTypes arenas = types();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::string& name = outputs_[i].gradient_of;
      if (name.empty() && !outputs_[i].tail) continue;
      const bool is_gradient =
          !name.empty() && stored_leaves_.find(name)->second->kind() == LeafKind::parameter;
      graph.roots[i] = as_dtype(*graph.graph, graph.roots[i], is_gradient ? arenas.gradients : arenas.values);
    }
  }

  // Returns the value as `dtype`. If the value is a wider cast of a value that has this dtype, returns that
  // value.
  static Value as_dtype(Graph& graph, Value value, DType dtype) {
    if (graph.type(value).dtype == dtype) return value;
    const NodeRecord& record = graph.record(value.node);
    if (record.op->name() == "cast" && graph.type(record.inputs[0]).dtype == dtype &&
        size_of(dtype) < size_of(graph.type(value).dtype))
      return record.inputs[0];
    return append_with_origin(graph, std::make_shared<Cast>(CastOptions{dtype}), {value}, record.origin)[0];
  }

  void log(const char* pass, const Graph& graph) {
    program_->passes.push_back(fmt::format("{}: {} nodes", pass, graph.size()));
    if (options_.after_pass) options_.after_pass(pass, graph);
  }

  void log_binding() {
    program_->passes.push_back(
        fmt::format("bind: {} kernels, {} of them reorders, {} in the prologue", count_work<KernelWork>(),
                    lowered_.reorders, std::ranges::count_if(lowered_.steps, &BoundInstruction::prologue)));
    if (const auto on_host = count_work<HostWork>(); on_host > 0)
      program_->passes.back() += fmt::format(", {} ops on the host", on_host);
  }

  template <class Work>
  std::ptrdiff_t count_work() const {
    return std::ranges::count_if(
        lowered_.steps, [](const BoundInstruction& step) { return std::holds_alternative<Work>(step.work); });
  }

  void log_plan() {
    program_->passes.push_back(fmt::format("plan memory: arena {} bytes (lower bound {}), prologue {} bytes",
                                           assignment_.arena_bytes, assignment_.arena_lower_bound,
                                           assignment_.prologue_bytes));
  }

  // Outputs that are read, and kept values, stay roots. Others go to the gradient arena or to an output of a loop.
  void split_outputs(BindRequest& request) {
    std::vector<Value> readable;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const ProgramOutput& output = outputs_[i];
      const Value value = request.graph.roots[i];
      if (output.output) {
        const Layout layout = Layout::row_major(output.node.shape().rank());
        request.gradient_targets.emplace_back(
            value, Target{.gradient_of = {}, .tail = {}, .output = output.output, .layout = layout});
        continue;
      }
      if (output.gradient_of.empty() && !output.tail) {
        readable.push_back(value);
        continue;
      }
      request.prologue = false;
      request.gradient_targets.emplace_back(value, Target{output.gradient_of, output.tail});
    }
    readable_ = readable.size();
    const auto kept = request.graph.roots.begin() + static_cast<std::ptrdiff_t>(outputs_.size());
    readable.insert(readable.end(), kept, request.graph.roots.end());
    request.graph.roots = std::move(readable);
  }

  // Places trainables in the order in which this program finishes their gradients, then buffers, then
  // parameters that are only read.
  Placement make_placement() const {
    std::map<std::string, std::size_t> finished;
    for (std::size_t index = 0; index < lowered_.steps.size(); ++index)
      for (const Value output : lowered_.steps[index].region.outputs)
        if (const auto target = lowered_.targets.find(output);
            target != lowered_.targets.end() && !target->second.gradient_of.empty())
          finished[target->second.gradient_of] = index;
    std::map<ParameterRole, std::vector<const Leaf*>> by_role;
    for (NodeId id = 0; id < source_.size(); ++id) {
      const Leaf* leaf = as_leaf(*source_.record(id).op);
      if (leaf == nullptr || !(lowered_.stored.contains(leaf->label()) || finished.contains(leaf->label())))
        continue;
      if (leaf->kind() == LeafKind::buffer)
        by_role[ParameterRole::buffer].push_back(leaf);
      else if (leaf->kind() == LeafKind::parameter)
        by_role[finished.contains(leaf->label()) ? ParameterRole::trainable : ParameterRole::frozen]
            .push_back(leaf);
    }
    std::ranges::stable_sort(by_role[ParameterRole::trainable], {},
                             [&](const Leaf* leaf) { return finished.at(leaf->label()); });
    Placement placement;
    placement.types = types();
    for (const auto& [role, leaves] : by_role)
      for (const Leaf* leaf : leaves) {
        const auto layout = lowered_.parameter_layouts.find(leaf->label());
        placement.append(leaf->label(), leaf->type(), role,
                         layout != lowered_.parameter_layouts.end()
                             ? layout->second
                             : Layout::row_major(leaf->type().shape.rank()));
      }
    return placement;
  }

  void find_homes() {
    lay_out_feeds();
    for (NodeId id = 0; id < lowered_.graph->size(); ++id)
      if (const Leaf* leaf = as_leaf(*lowered_.graph->record(id).op)) homes_[{id, 0}] = home_of(*leaf);
    for (const auto& [name, offset] : feed_offsets_)
      if (std::ranges::find(program_->feeds, name, &Program::Feed::name) == program_->feeds.end())
        program_->unread_inputs.push_back(name);
    for (const auto& [copy, parameter] : lowered_.shadows) {
      const std::string& name = as_leaf(*lowered_.graph->record(parameter.node).op)->label();
      homes_[copy] = home_in(ArenaKind::shadow, entry_of(name).offset);
    }
    for (const auto& [value, target] : lowered_.targets) homes_[value] = home_of(target);
  }

  // Inputs that nothing reads have an offset too, so that offsets depend only on the user's graph.
  void lay_out_feeds() {
    FeedLayout layout;
    for (NodeId id = 0; id < source_.size(); ++id)
      if (const Leaf* leaf = as_leaf(*source_.record(id).op);
          leaf != nullptr && leaf->kind() == LeafKind::input)
        feed_offsets_[leaf->label()] = layout.append(leaf->type());
    program_->feed_bytes = layout.bytes();
  }

  Place home_of(const Leaf& leaf) {
    switch (leaf.kind()) {
      case LeafKind::input: {
        const std::int64_t offset = feed_offsets_.at(leaf.label());
        program_->feeds.push_back({leaf.label(), leaf.type(), offset});
        return {.space = Place::Space::feed, .offset = offset};
      }
      case LeafKind::step_scalar:
        return {.space = Place::Space::feed,
                .offset = static_cast<std::int64_t>(step_block_offset(leaf.scalar(), leaf.type().dtype))};
      case LeafKind::constant:
        return {.space = Place::Space::constant, .offset = add_constant(*leaf.value())};
      case LeafKind::arena_slice:
        return home_of(leaf.slice(), leaf.type());
      case LeafKind::operand:
        return {.space = Place::Space::input, .index = static_cast<std::int64_t>(leaf.operand())};
      default:
        return home_in(ArenaKind::value, entry_of(leaf.label()).offset);
    }
  }

  Place home_in(ArenaKind arena, std::int64_t element, std::int64_t state = 0) const {
    return {space_of(arena), state, program_->placement.bytes_before(arena, element)};
  }

  Place home_of(const ArenaSlice& slice, const TensorType& type) const {
    const Place home = home_in(slice.arena, slice.offset, slice.state);
    if (home_in(slice.arena, slice.offset + slice.count).offset != home.offset + type.bytes())
      throw InternalError(fmt::format("a slice of an arena is read as {}, and the arenas hold {}",
                                      name_of(type.dtype), to_text(program_->placement.types)));
    return home;
  }

  Place home_of(const Target& target) const {
    if (target.updated_leaf) return homes_.at(*target.updated_leaf);
    if (target.output)
      return {.space = Place::Space::output, .index = static_cast<std::int64_t>(*target.output)};
    if (target.tail)
      return home_in(ArenaKind::gradient,
                     program_->placement.tail_offset() + static_cast<std::int64_t>(*target.tail));
    const Placement::Entry& entry = entry_of(target.gradient_of);
    if (entry.role == ParameterRole::frozen)
      throw UserError(fmt::format(
          "the program computes the gradient of '{}', which the placement holds as frozen", entry.name));
    return home_in(ArenaKind::gradient, entry.offset);
  }

  const Placement::Entry& entry_of(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw InternalError(fmt::format("the placement lacks '{}'", name));
    return *found->second;
  }

  std::int64_t add_constant(const Tensor& tensor) { return add_constants({tensor.data(), tensor.bytes()}); }

  std::int64_t add_constants(std::span<const std::byte> more) {
    auto& bytes = program_->constants;
    const std::size_t offset = whole_granules(bytes.size());
    bytes.resize(offset);
    bytes.insert(bytes.end(), more.begin(), more.end());
    return static_cast<std::int64_t>(offset);
  }

  Slot slot(Value value) const {
    return {value, lowered_.graph->type(value), lowered_.layouts.at(value), assignment_.places.at(value)};
  }

  void emit_instructions() {
    for (std::size_t index = 0; index < lowered_.steps.size(); ++index) {
      BoundInstruction& step = lowered_.steps[index];
      Instruction instruction{name_of(*lowered_.graph, step.region.nodes.back()),
                              step.candidate.implementation,
                              step.region.nodes,
                              step.work,
                              {},
                              {},
                              step.workspace(),
                              assignment_.workspaces[index],
                              step.is_again};
      const double seconds = std::isfinite(step.candidate.seconds) ? step.candidate.seconds : 0;
      if (!step.prologue) program_->estimates.seconds += seconds;
      if (step.is_again) program_->estimates.seconds_again += seconds;
      if (auto* loop = std::get_if<LoopWork>(&instruction.work))
        loop->constants = {.space = Place::Space::constant, .offset = add_constants(loop->body->constants)};
      if (step.region.nodes.size() > 1)
        instruction.name = fmt::format("{} ({})", instruction.name, step.region.kind);
      if (step.is_again) instruction.name += " again";
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        instruction.inputs.push_back(step.reads(i) ? std::optional(slot(step.inputs[i])) : std::nullopt);
      for (std::size_t i = 0; i < step.region.outputs.size(); ++i)
        instruction.outputs.push_back(step.wanted[i] ? std::optional(slot(step.region.outputs[i]))
                                                     : std::nullopt);
      (step.prologue ? program_->prologue : program_->instructions).push_back(std::move(instruction));
    }
  }

  void emit_outputs() {
    for (std::size_t i = 0; i < readable_; ++i) program_->outputs.push_back(slot(lowered_.roots[i]));
    for (std::size_t i = readable_; i < lowered_.roots.size(); ++i)
      program_->kept.emplace(kept_[i - readable_], slot(lowered_.roots[i]));
  }

  const Graph& source_;
  std::span<const ProgramOutput> outputs_;
  Backend& backend_;
  const CompileOptions& options_;
  const Placement* placement_;  // null: the program makes the placement
  std::shared_ptr<Program> program_;
  const Leaf* first_stored_ = nullptr;  // the first parameter or buffer of the user's graph
  // Parameters and buffers of the user's graph, by name.
  std::map<std::string_view, const Leaf*> stored_leaves_;
  std::unordered_map<std::string_view, const Placement::Entry*> entries_;
  Lowered lowered_;
  std::map<std::string, std::int64_t> feed_offsets_;
  std::map<Value, Place> homes_;
  Assignment assignment_;
  // Values of the user's graph that keep_all keeps; they follow the outputs in the roots.
  std::vector<Value> kept_;
  std::size_t readable_ = 0;
};

}  // namespace

MemoryLimitError::MemoryLimitError(std::size_t least_bytes, std::size_t limit)
    : UserError(
          fmt::format("the intermediate values of the program need {} bytes or more, also if values are "
                      "computed again, and CompileOptions::memory_limit is {} bytes; raise it, or use a "
                      "smaller batch",
                      least_bytes, limit)),
      least_bytes_(least_bytes) {}

std::shared_ptr<const Program> compile(const Graph& graph, std::span<const ProgramOutput> outputs,
                                       Backend& backend, const CompileOptions& options) {
  const std::lock_guard turn(backend.turn());
  return Compiler(graph, outputs, backend, options).run();
}

}  // namespace plexaura
