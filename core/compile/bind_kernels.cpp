#include "core/compile/bind_kernels.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/compile/cheapest.h"
#include "core/compile/loop.h"
#include "core/compile/rebuild.h"
#include "core/graph/print.h"
#include "core/host/host_candidate.h"
#include "core/ops/reorder.h"
#include "core/regions/select_regions.h"

namespace plexaura {

namespace {

bool is_unread_by_loop(const Op& op, std::size_t input) {
  const Scan* scan = as_scan(op);
  return scan != nullptr && input >= scan->form().carries && !scan->body().reads(input);
}

class Binder {
 public:
  Binder(BindRequest request, Backend& backend) : request_(std::move(request)), backend_(backend) {
    result_.graph = std::move(request_.graph.graph);
    result_.roots = std::move(request_.graph.roots);
    kept_.insert(result_.roots.begin(), result_.roots.end());
    for (std::size_t i = 0; i < request_.gradient_targets.size(); ++i) {
      kept_.insert(request_.gradient_targets[i].first);
      targets_of_value_[request_.gradient_targets[i].first].push_back(i);
    }
    if (request_.placement != nullptr)
      for (const Placement::Entry& entry : request_.placement->entries) entries_.emplace(entry.name, &entry);
    for (const Update& update : result_.graph->updates()) kept_.insert(update.next);
  }

  Lowered run() && {
    bind_leaves();
    const std::vector<Value> kept(kept_.begin(), kept_.end());
    const std::vector<Region> regions = select_regions(*result_.graph, kept, backend_, request_.fuse);
    find_wanted(regions);
    for (const auto& [value, target] : request_.gradient_targets)
      if (as_leaf(op(value.node)) != nullptr) copy_to_target(value, target);
    for (const Region& region : regions) {
      bind(region);
      copy_targets(region);
    }
    fix_unread();
    for (const auto& [copy, parameter] : result_.shadows) result_.layouts[copy] = *layout_of(parameter);
    save_old_values();
    bind_updates();
    return std::move(result_);
  }

 private:
  Graph& graph() const { return *result_.graph; }
  const Op& op(NodeId id) const { return *result_.graph->record(id).op; }
  const TensorType& type(Value value) const { return result_.graph->type(value); }

  void bind_leaves() {
    for (NodeId id = 0; id < graph().size(); ++id) {
      const Leaf* leaf = as_leaf(op(id));
      if (leaf == nullptr) continue;
      const Value value{id, 0};
      if (request_.prologue && depends_on_parameters_alone(*leaf)) from_parameters_.insert(value);
      if (leaf->kind() == LeafKind::parameter || leaf->kind() == LeafKind::buffer)
        bind_stored(*leaf, value);
      else
        result_.layouts[value] = Layout::row_major(leaf->type().shape.rank());
    }
  }

  bool depends_on_parameters_alone(const Leaf& leaf) const {
    if (leaf.kind() == LeafKind::operand) return request_.same_operands.at(leaf.operand());
    return leaf.kind() == LeafKind::parameter || leaf.kind() == LeafKind::buffer ||
           leaf.kind() == LeafKind::constant;
  }

  // Binds a parameter or buffer. Without a placement a buffer is row-major, and a parameter's first reader chooses.
  void bind_stored(const Leaf& leaf, Value value) {
    result_.stored[leaf.label()] = value;
    if (request_.placement != nullptr) {
      const Placement::Entry* entry = entry_of(leaf.label());
      if (entry == nullptr || entry->type != leaf.type())
        throw UserError(fmt::format(
            "{}: the placement that was given {}; give that of the store which make_store() made of this "
            "model",
            name_of(graph(), value.node),
            entry == nullptr ? fmt::format("lacks '{}'", leaf.label())
                             : fmt::format("holds '{}' as {}, and the graph uses it as {}", leaf.label(),
                                           to_string(entry->type), to_string(leaf.type()))));
      fix_layout(value, entry->layout);
    } else if (leaf.kind() == LeafKind::buffer) {
      fix_layout(value, Layout::row_major(leaf.type().shape.rank()));
    }
  }

  // Returns the entry of the given placement; null if it has none of this name.
  const Placement::Entry* entry_of(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
  }

  // Returns the parameter for the shadow of a parameter, and any other value itself. A parameter and its
  // shadow have the same layout.
  Value stored_of(Value value) const {
    const auto found = result_.shadows.find(value);
    return found == result_.shadows.end() ? value : found->second;
  }

  void fix_layout(Value value, const Layout& layout) {
    value = stored_of(value);
    result_.layouts[value] = layout;
    const Leaf* leaf = as_leaf(op(value.node));
    if (leaf != nullptr && !leaf->label().empty()) result_.parameter_layouts[leaf->label()] = layout;
  }

  std::optional<Layout> layout_of(Value value) const {
    const auto found = result_.layouts.find(stored_of(value));
    return found == result_.layouts.end() ? std::nullopt : std::optional(found->second);
  }

  void find_wanted(const std::vector<Region>& regions) {
    wanted_ = kept_;
    for (const Region& region : regions)
      for (std::size_t i = 0; i < region.inputs.size(); ++i)
        if (!is_unread_by_loop(op(region.nodes[0]), i)) wanted_.insert(region.inputs[i]);
  }

  void bind(const Region& region) {
    if (region.nodes.size() > 1 || !(bind_view(region) || bind_shadow(region))) bind_region(region);
  }

  // Binds the nodes of a region that the backend refuses once the layouts of its inputs are known.
  void bind_one_by_one(const Region& region) {
    std::vector<Region> nodes;
    for (const NodeId node : region.nodes) nodes.push_back(single(graph(), node));
    for (const Region& node : nodes) wanted_.insert(node.inputs.begin(), node.inputs.end());
    for (const Region& node : nodes) bind(node);
  }

  // Binds a view, which needs no kernel. Its source is reordered to the row-major layout if the shape
  // changes, since only in that layout the new shape means the same elements.
  bool bind_view(const Region& region) {
    const NodeId id = region.nodes[0];
    if (!op(id).traits().view) return false;
    Value source = region.inputs[0];
    const Value view{id, 0};
    if (!layout_of(source)) fix_layout(source, Layout::row_major(type(source).shape.rank()));
    if (type(source).shape != type(view).shape)
      source = reordered(source, Layout::row_major(type(source).shape.rank()));
    const bool same = type(source).shape == type(view).shape;
    result_.layouts[view] = same ? *layout_of(source) : Layout::row_major(type(view).shape.rank());
    result_.alias_of[view] = source;
    if (from_parameters_.contains(source)) from_parameters_.insert(view);
    return true;
  }

  // Returns true if the op is a cast of a parameter, and the store has the result already: its shadow.
  bool bind_shadow(const Region& region) {
    const NodeId id = region.nodes[0];
    if (!request_.shadow || op(id).name() != "cast" || type({id, 0}).dtype != *request_.shadow) return false;
    const Value parameter = region.inputs[0];
    const Leaf* leaf = as_leaf(op(parameter.node));
    if (leaf == nullptr || leaf->kind() != LeafKind::parameter) return false;
    result_.shadows[{id, 0}] = parameter;
    if (from_parameters_.contains(parameter)) from_parameters_.insert({id, 0});
    return true;
  }

  void bind_region(const Region& region) {
    const std::vector<Target*> targets = targets_of(region);
    RegionQuery query{graph(), region, {}, {}};
    for (const Value input : region.inputs) query.given.push_back(layout_of(input));
    for (const Value output : region.outputs) query.wanted.push_back(wanted_.contains(output));
    if (const Scan* scan = as_scan(op(region.nodes[0]))) return bind_loop(*scan, region, query, targets);
    const std::vector<Candidate> candidates = candidates_for(query);
    if (candidates.empty() && region.nodes.size() > 1) return bind_one_by_one(region);
    if (candidates.empty() && needs_ranks(region)) return bind_collective(region, query);
    if (candidates.empty()) return bind_on_host(region, query, targets);
    const auto reorders = [&](const Candidate& candidate) {
      return seconds_of_reorders(region, candidate, targets);
    };
    // One rank measures alone, so a kernel that sums over ranks would wait forever.
    Tuner* tuner = needs_ranks(region) ? nullptr : request_.tuner;
    Candidate best = cheapest(backend_, tuner, query, candidates, reorders);
    // A kernel that only a measurement can choose counts as the best one that has an estimate.
    if (!best.has_estimate()) best.seconds = std::ranges::min(candidates, {}, &Candidate::seconds).seconds;
    add_step(region, query, best, KernelWork{best.make()}, targets);
  }

  void bind_loop(const Scan& scan, const Region& region, const RegionQuery& query,
                 const std::vector<Target*>& targets) {
    LoopWork loop = compile_loop(scan, query, backend_, {.optimise = request_.fuse, .tuner = request_.tuner});
    const Candidate candidate = candidate_of(loop, query);
    add_step(region, query, candidate, std::move(loop), targets);
  }

  void bind_on_host(const Region& region, const RegionQuery& query, const std::vector<Target*>& targets) {
    const Candidate candidate = host_candidate(query, backend_, request_.strict);
    add_step(region, query, candidate, HostWork{candidate.make()}, targets);
  }

  bool needs_ranks(const Region& region) const {
    return std::ranges::any_of(region.nodes, [&](NodeId id) { return op(id).traits().collective; });
  }

  // Returns the candidates for a query; for a collective op only row-major ones. Returns an empty vector if no
  // candidate has an estimate: all would have to be measured first.
  std::vector<Candidate> candidates_for(const RegionQuery& query) const {
    std::vector<Candidate> candidates = backend_.propose(query);
    if (op(query.region.nodes.back()).traits().collective)
      std::erase_if(candidates,
                    [](const Candidate& candidate) { return !candidate.outputs[0].is_row_major(); });
    if (std::ranges::none_of(candidates, &Candidate::has_estimate)) candidates.clear();
    return candidates;
  }

  // Binds a collective op for which the backend has no kernel, so that the host computes it. The layout is
  // row-major, so that ranks add corresponding elements even if they chose other layouts, for another batch
  // size.
  void bind_collective(const Region& region, const RegionQuery& query) {
    Candidate candidate;
    candidate.implementation = "collective";
    for (const Value value : region.inputs) candidate.inputs.push_back(row_major(value));
    candidate.outputs = candidate.inputs;
    const std::vector<Target*> no_targets(region.outputs.size(), nullptr);
    add_step(region, query, candidate, CollectiveWork{}, no_targets);
  }

  Layout row_major(Value value) const { return Layout::row_major(type(value).shape.rank()); }

  // Returns the last target of each output, or null for an output without a target.
  std::vector<Target*> targets_of(const Region& region) {
    std::vector<Target*> targets(region.outputs.size(), nullptr);
    for (std::size_t i = 0; i < region.outputs.size(); ++i)
      if (const auto found = targets_of_value_.find(region.outputs[i]); found != targets_of_value_.end())
        targets[i] = &request_.gradient_targets[found->second.back()].second;
    return targets;
  }

  // Returns the layout of the target's parameter; nothing if no layout has been chosen yet. If the program
  // does not read the parameter, as for a loss that is linear in it, the placement has the layout.
  std::optional<Layout> home_layout(const Target& target) const {
    if (target.tail) return Layout();
    if (target.output) return target.layout;
    const auto found = result_.parameter_layouts.find(target.gradient_of);
    if (found != result_.parameter_layouts.end()) return found->second;
    if (request_.placement != nullptr)
      if (const Placement::Entry* entry = entry_of(target.gradient_of)) return entry->layout;
    return std::nullopt;
  }

  // Gives a parameter without a layout the layout of its gradient.
  void choose_home(Target& target, const Layout& layout) {
    target.layout = home_layout(target).value_or(layout);
    if (target.tail || target.output) return;
    const auto leaf = result_.stored.find(target.gradient_of);
    if (leaf != result_.stored.end() && !layout_of(leaf->second))
      fix_layout(leaf->second, target.layout);
    else
      result_.parameter_layouts.emplace(target.gradient_of, target.layout);
  }

  double seconds_of_reorders(const Region& region, const Candidate& candidate,
                             const std::vector<Target*>& targets) const {
    double seconds = 0;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const bool read = candidate.reads.empty() || candidate.reads[i];
      const auto given = layout_of(region.inputs[i]);
      if (!read || !given || *given == candidate.inputs[i]) continue;
      if (reorders_.contains({region.inputs[i], to_string(candidate.inputs[i])})) continue;
      seconds += reorder_seconds(region.inputs[i], candidate.inputs[i]) * share_of_runs(region.inputs[i]);
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i] != nullptr)
        if (const auto home = home_layout(*targets[i]); home && candidate.outputs[i] != *home)
          seconds += reorder_seconds(region.outputs[i], *home);
    return seconds;
  }

  // Returns the share of the runs in which a reorder of this value is run: once for all steps of a loop, if the value is
  // the same in each of them.
  double share_of_runs(Value value) const {
    return request_.steps > 1 && from_parameters_.contains(value) ? 1 / static_cast<double>(request_.steps)
                                                                  : 1;
  }

  double reorder_seconds(Value value, const Layout& layout) const {
    return 2 * static_cast<double>(layout.bytes(type(value))) / backend_.info().bytes_reordered_in_a_second;
  }

  void add_step(const Region& region, const RegionQuery& query, const Candidate& candidate,
                InstructionWork work, const std::vector<Target*>& targets) {
    for (std::size_t i = 0; i < region.inputs.size(); ++i)
      if ((candidate.reads.empty() || candidate.reads[i]) && !layout_of(region.inputs[i]))
        fix_layout(region.inputs[i], candidate.inputs[i]);
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i] != nullptr) choose_home(*targets[i], candidate.outputs[i]);
    BoundInstruction step{region, candidate, std::move(work), {}, query.wanted, false};
    step.candidate.make = nullptr;  // `make` refers to the graph, which may be destroyed
    const bool random = std::ranges::any_of(region.nodes, [&](NodeId id) { return op(id).traits().random; });
    const bool has_target =
        std::ranges::any_of(targets, [](const Target* target) { return target != nullptr; });
    bool parameters_alone = request_.prologue && std::holds_alternative<KernelWork>(step.work) && !random &&
                            !needs_ranks(region) && !region.inputs.empty() && !has_target;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      Value input = region.inputs[i];
      if (step.reads(i)) input = reordered(input, candidate.inputs[i]);
      parameters_alone = parameters_alone && from_parameters_.contains(input);
      step.inputs.push_back(input);
    }
    step.prologue = parameters_alone;
    for (std::size_t i = 0; i < region.outputs.size(); ++i) {
      result_.layouts[region.outputs[i]] = candidate.outputs[i];
      if (parameters_alone) from_parameters_.insert(region.outputs[i]);
      if (targets[i] != nullptr && candidate.outputs[i] == targets[i]->layout)
        result_.targets[region.outputs[i]] = *targets[i];
    }
    result_.steps.push_back(std::move(step));
  }

  // Returns the value in this layout: the value itself, a copy made earlier, or a new copy.
  Value reordered(Value value, const Layout& layout) {
    if (!layout_of(value)) fix_layout(value, layout);
    if (*layout_of(value) == layout) return value;
    const auto known = reorders_.find({value, to_string(layout)});
    if (known != reorders_.end()) return known->second;
    const Value copy = add_reorder(value, layout, nullptr);
    reorders_[{value, to_string(layout)}] = copy;
    return copy;
  }

  Value add_reorder(Value value, const Layout& layout, const Target* target) {
    const Origin origin = graph().record(value.node).origin;
    const Value copy = append_with_origin(graph(), std::make_shared<Reorder>(layout), {value}, origin)[0];
    const Region region = single(graph(), copy.node);
    const RegionQuery query{graph(), region, {*layout_of(value)}, {true}};
    const std::vector<Candidate> candidates = candidates_for(query);
    if (candidates.empty())
      throw UserError(fmt::format("{}: the backend '{}' cannot reorder {} to {}", name_of(graph(), copy.node),
                                  backend_.info().name, to_string(*layout_of(value)), to_string(layout)));
    const Candidate& best =
        cheapest(backend_, request_.tuner, query, candidates, [](const Candidate&) { return 0.0; });
    const bool from_parameters = target == nullptr && from_parameters_.contains(value);
    BoundInstruction step{region, best, KernelWork{best.make()}, {value}, {true}, from_parameters};
    step.candidate.make = nullptr;
    result_.steps.push_back(std::move(step));
    result_.layouts[copy] = layout;
    if (from_parameters) from_parameters_.insert(copy);
    if (target != nullptr) result_.targets[copy] = *target;
    if (target == nullptr) ++result_.reorders;
    return copy;
  }

  // Copies values to their homes as soon as they are computed, so that their memory is free again and their
  // buckets are final early.
  void copy_targets(const Region& region) {
    std::vector<std::size_t> ready;
    for (const Value output : region.outputs)
      if (const auto found = targets_of_value_.find(output); found != targets_of_value_.end())
        ready.insert(ready.end(), found->second.begin(), found->second.end());
    std::ranges::sort(ready);
    for (const std::size_t i : ready)
      copy_to_target(request_.gradient_targets[i].first, request_.gradient_targets[i].second);
  }

  // Copies the value to its home, unless a kernel has written it there.
  void copy_to_target(Value value, Target target) {
    const auto direct = result_.targets.find(value);
    if (direct != result_.targets.end() && direct->second.gradient_of == target.gradient_of &&
        direct->second.tail == target.tail && direct->second.output == target.output)
      return;
    choose_home(target, layout_of(value).value_or(row_major(value)));
    if (!layout_of(value)) value = reordered(value, target.layout);
    add_reorder(value, target.layout, &target);
  }

  // Chooses layouts for parameters and buffers that have none yet, because no kernel reads them and no gradient has fixed
  // their layouts. They become row-major, as the user sees them.
  void fix_unread() {
    for (const auto& [name, value] : result_.stored)
      if (!layout_of(value)) fix_layout(value, row_major(value));
  }

  // Outputs are read after the run. An output that lies in memory which an update overwrites is copied before
  // the update.
  void save_old_values() {
    for (Value& root : result_.roots)
      if (std::ranges::find(graph().updates(), result_.storage_of(root), &Update::buffer) !=
          graph().updates().end())
        root = add_reorder(root, *layout_of(root), nullptr);
  }

  // Binds the updates. All reads within a run see the old value of a buffer. A new value that would be
  // written before the last read is copied to the buffer at the end.
  void bind_updates() {
    std::vector<std::pair<Value, Value>> pending;
    for (const Update& update : graph().updates()) {
      Value next = reordered(update.next, *layout_of(update.buffer));
      if (as_leaf(op(result_.storage_of(next).node)) != nullptr)
        next = add_reorder(next, *layout_of(next), nullptr);
      pending.emplace_back(update.buffer, next);
    }
    const Steps steps = steps_of_values();
    std::vector<std::pair<Value, Value>> late;
    for (const auto& [buffer, next] : pending) {
      const Target home{.gradient_of = {}, .tail = {}, .updated_leaf = buffer, .layout = *layout_of(buffer)};
      if (can_write_early(buffer, next, steps))
        result_.targets[next] = home;
      else
        late.emplace_back(buffer, next);
    }
    for (const auto& [buffer, next] : late) {
      const Target home{.gradient_of = {}, .tail = {}, .updated_leaf = buffer, .layout = *layout_of(buffer)};
      add_reorder(next, home.layout, &home);
    }
  }

  // The index of the step that writes each value, and of the last step that reads its memory.
  struct Steps {
    std::map<Value, std::size_t> writer;
    std::map<Value, std::size_t> last_reader;
  };

  Steps steps_of_values() const {
    Steps steps;
    for (std::size_t index = 0; index < result_.steps.size(); ++index) {
      const BoundInstruction& step = result_.steps[index];
      for (const Value output : step.region.outputs) steps.writer.emplace(output, index);
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        if (step.reads(i)) steps.last_reader[result_.storage_of(step.inputs[i])] = index;
    }
    return steps;
  }

  bool can_write_early(Value buffer, Value next, const Steps& steps) const {
    if (result_.alias_of.contains(next) || result_.targets.contains(next)) return false;
    const auto writer = steps.writer.find(next);
    if (writer == steps.writer.end()) return false;
    const auto reader = steps.last_reader.find(buffer);
    if (reader != steps.last_reader.end() && reader->second > writer->second) return false;
    const BoundInstruction& step = result_.steps[writer->second];
    const auto output =
        static_cast<std::size_t>(std::ranges::find(step.region.outputs, next) - step.region.outputs.begin());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const bool in_place =
          std::ranges::find(step.candidate.in_place, std::pair(output, i)) != step.candidate.in_place.end();
      if (step.reads(i) && result_.storage_of(step.inputs[i]) == buffer && !in_place) return false;
    }
    return std::ranges::find(result_.roots, next) == result_.roots.end();
  }

  BindRequest request_;
  Backend& backend_;
  Lowered result_;
  std::set<Value> kept_;
  std::set<Value> wanted_;
  // The indices in gradient_targets for each value, ascending.
  std::map<Value, std::vector<std::size_t>> targets_of_value_;
  // The entries of the given placement, by name.
  std::unordered_map<std::string_view, const Placement::Entry*> entries_;
  std::set<Value> from_parameters_;
  std::map<std::pair<Value, std::string>, Value> reorders_;
};

}  // namespace

Value Lowered::storage_of(Value value) const {
  for (auto found = alias_of.find(value); found != alias_of.end(); found = alias_of.find(value))
    value = found->second;
  return value;
}

Lowered bind_kernels(BindRequest request, Backend& backend) {
  return Binder(std::move(request), backend).run();
}

}  // namespace plexaura
