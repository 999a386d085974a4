#include "core/compile/link.h"

#include <algorithm>
#include <mutex>

#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/compile/memory_plan.h"
#include "core/compile/rebuild.h"
#include "core/ops/binary.h"

namespace plexaura {

namespace {

void check(const Program& first, const Program& second) {
  for (const Program* program : {&first, &second})
    if (!program->prologue.empty() || !program->outputs.empty() || !program->kept.empty())
      throw InternalError("link: a program has a prologue, or outputs to be read");
  if (!second.feeds.empty()) throw InternalError("link: the second program has inputs");
  if (first.placement != second.placement || first.backend != second.backend)
    throw InternalError("link: the programs were compiled for different placements or backends");
}

// Changes an instruction of the second program so that it refers to the nodes and constants of the linked
// program.
class Relocation {
 public:
  explicit Relocation(const Program& first)
      : nodes_(first.graph->size()),
        constants_(static_cast<std::int64_t>(whole_granules(first.constants.size()))) {}

  Instruction operator()(Instruction instruction) const {
    for (NodeId& node : instruction.nodes) node = new_id(node);
    for (auto* slots : {&instruction.inputs, &instruction.outputs})
      for (std::optional<Slot>& slot : *slots)
        if (slot) relocate(*slot);
    if (auto* loop = std::get_if<LoopWork>(&instruction.work)) relocate(loop->constants);
    return instruction;
  }

  NodeId new_id(NodeId node) const { return static_cast<NodeId>(node + nodes_); }

 private:
  void relocate(Slot& slot) const {
    slot.value.node = new_id(slot.value.node);
    relocate(slot.place);
  }
  void relocate(Place& place) const {
    if (place.space == Place::Space::constant) place.offset += constants_;
  }

  std::size_t nodes_;
  std::int64_t constants_;
};

std::unique_ptr<const Graph> both(const Graph& first, const Graph& second, const Relocation& relocate) {
  PassGraph linked = copy(first, {}, false);
  for (NodeId id = 0; id < second.size(); ++id) {
    const NodeRecord& record = second.record(id);
    std::vector<Value> inputs = record.inputs;
    for (Value& input : inputs) input.node = relocate.new_id(input.node);
    append_with_origin(*linked.graph, record.op, inputs, record.origin);
  }
  return std::move(linked.graph);
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Returns a program that adds the addends to the gradients, with one instruction for each bucket.
std::shared_ptr<const Program> sum_of(const Placement& placement, std::span<const Bucket> buckets,
                                      Backend& backend, bool strict) {
  Graph graph;
  for (const Bucket& bucket : buckets) {
    const auto slice = [&](ArenaKind arena) {
      return graph.arena_slice({arena, 0, bucket.offset, bucket.count}, bucket.dtype);
    };
    const Node gradient = slice(ArenaKind::gradient);
    graph.update(gradient, gradient + slice(ArenaKind::addend));
  }
  return compile(graph, {}, backend, {.placement = &placement, .strict = strict});
}

void move_to_addends(std::span<Instruction> instructions) {
  for (Instruction& instruction : instructions)
    for (auto* slots : {&instruction.inputs, &instruction.outputs})
      for (std::optional<Slot>& slot : *slots)
        if (slot && slot->place.space == Place::Space::gradient) slot->place.space = Place::Space::addend;
}

ProgramEstimates sum_of(const ProgramEstimates& first, const ProgramEstimates& second) {
  return {.arena_lower_bound = std::max(first.arena_lower_bound, second.arena_lower_bound),
          .unlimited_arena_bytes = std::max(first.unlimited_arena_bytes, second.unlimited_arena_bytes),
          .seconds = first.seconds + second.seconds,
          .seconds_again = first.seconds_again + second.seconds_again};
}

std::shared_ptr<Program> join(const Program& first, const Program& second) {
  check(first, second);
  const Relocation relocate(first);
  auto linked = std::make_shared<Program>();
  linked->graph = both(*first.graph, *second.graph, relocate);
  linked->passes = first.passes;
  append(linked->passes, second.passes);
  linked->instructions = first.instructions;
  std::ranges::transform(second.instructions, std::back_inserter(linked->instructions), relocate);
  linked->feeds = first.feeds;
  linked->unread_inputs = first.unread_inputs;
  linked->constants = first.constants;
  linked->constants.resize(whole_granules(first.constants.size()));
  append(linked->constants, second.constants);
  linked->feed_bytes = std::max(first.feed_bytes, second.feed_bytes);
  linked->arena_bytes = std::max(first.arena_bytes, second.arena_bytes);
  linked->placement = first.placement;
  linked->reorders = first.reorders + second.reorders;
  linked->backend = first.backend;
  linked->estimates = sum_of(first.estimates, second.estimates);
  return linked;
}

}  // namespace

std::shared_ptr<const Program> link(const Program& first, const Program& second) {
  return join(first, second);
}

std::shared_ptr<const Program> add_to_gradients(const Program& gradients, std::span<const Bucket> buckets,
                                                Backend& backend, bool strict) {
  const std::lock_guard turn(backend.turn());
  const auto sum = sum_of(gradients.placement, buckets, backend, strict);
  const auto program = join(gradients, *sum);
  std::vector<Instruction>& all = program->instructions;
  auto next = all.begin() + static_cast<std::ptrdiff_t>(gradients.instructions.size());
  move_to_addends({all.begin(), next});
  // A sum that needs no memory in the arena may run between instructions that use the arena.
  for (std::size_t bucket = 0; bucket < buckets.size() && sum->arena_bytes == 0; ++bucket, ++next) {
    const std::int64_t end = buckets[bucket].offset + buckets[bucket].count;
    const auto ready =
        all.begin() + static_cast<std::ptrdiff_t>(gradients.gradients_ready_after(end) + bucket);
    std::rotate(ready, next, next + 1);
  }
  return program;
}

}  // namespace plexaura
