#include "core/compile/assign_memory.h"

#include <algorithm>

#include "core/compile/memory_plan.h"

namespace plexaura {

namespace {

// Plans one memory: collects lifetimes, and fills in their places in plan().
class MemoryPlanner {
 public:
  void add(Lifetime lifetime, Place& place) {
    lifetimes_.push_back(lifetime);
    places_.push_back(&place);
  }

  MemoryPlan plan(Place::Space space, std::size_t apart) const {
    MemoryPlan memory = plan_memory_apart(lifetimes_, apart);
    for (std::size_t i = 0; i < places_.size(); ++i)
      *places_[i] = {space, 0, static_cast<std::int64_t>(memory.offsets[i])};
    return memory;
  }

 private:
  std::vector<Lifetime> lifetimes_;
  std::vector<Place*> places_;
};

class Assigner {
 public:
  Assigner(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse, std::size_t apart)
      : lowered_(lowered), homes_(homes), reuse_(reuse), apart_(apart) {}

  Assignment run() && {
    for (std::size_t index = 0; index < lowered_.steps.size(); ++index) note_uses(index);
    pin_roots();
    if (reuse_)
      for (std::size_t index = 0; index < lowered_.steps.size(); ++index) work_in_place(index);
    plan();
    for (const auto& [value, layout] : lowered_.layouts) result_.places[value] = place_of(value);
    return std::move(result_);
  }

 private:
  // The memory of a value, from the instruction that writes it to the last one that reads it.
  struct Allocation {
    std::size_t bytes = 0;
    std::size_t first = 0;
    std::size_t last = 0;
    bool pinned = false;    // read after the program has run
    bool prologue = false;  // written by the prologue, which runs before all other instructions
  };

  Value storage(Value value) const {
    value = lowered_.storage_of(value);
    for (auto found = in_place_of_.find(value); found != in_place_of_.end(); found = in_place_of_.find(value))
      value = found->second;
    return value;
  }

  std::size_t bytes_of(Value value) const {
    return static_cast<std::size_t>(lowered_.layouts.at(value).bytes(lowered_.graph->type(value)));
  }

  void note_uses(std::size_t index) {
    const BoundInstruction& step = lowered_.steps[index];
    for (std::size_t output = 0; output < step.region.outputs.size(); ++output) {
      const Value value = step.region.outputs[output];
      if (!step.wanted[output] || homes_.contains(value)) continue;
      allocations_[value] = {bytes_of(value), index, index, false, step.prologue};
    }
    for (std::size_t input = 0; input < step.inputs.size(); ++input) {
      const auto allocation = allocations_.find(lowered_.storage_of(step.inputs[input]));
      if (step.reads(input) && allocation != allocations_.end())
        note_use(allocation->second, step.prologue, index);
    }
  }

  // Extends the lifetime of an allocation to the instruction `index`. A value that the prologue computes for
  // the program is read in every run, long after the last instruction of the prologue.
  void note_use(Allocation& allocation, bool by_prologue, std::size_t index) const {
    const bool stays = allocation.prologue && !by_prologue;
    allocation.last = std::max(allocation.last, stays ? lowered_.steps.size() : index);
  }

  void pin_roots() {
    for (const Value root : lowered_.roots) {
      const auto allocation = allocations_.find(lowered_.storage_of(root));
      if (allocation == allocations_.end()) continue;
      allocation->second.pinned = true;
      allocation->second.last = lowered_.steps.size();
    }
    if (reuse_) return;
    for (auto& [value, allocation] : allocations_) allocation.last = lowered_.steps.size();
  }

  void work_in_place(std::size_t index) {
    const BoundInstruction& step = lowered_.steps[index];
    for (const auto& [output, input] : step.candidate.in_place) {
      const Value target = step.region.outputs[output];
      const Value source = storage(step.inputs[input]);
      const auto taken = allocations_.find(target);
      const auto given = allocations_.find(source);
      if (taken == allocations_.end() || given == allocations_.end() || in_place_of_.contains(target))
        continue;
      if (!may_take(given->second, taken->second, index) || read_by_another(step, input, source)) continue;
      given->second.last = taken->second.last;
      given->second.pinned = given->second.pinned || taken->second.pinned;
      in_place_of_[target] = source;
      allocations_.erase(taken);
    }
  }

  static bool may_take(const Allocation& given, const Allocation& taken, std::size_t index) {
    return given.last == index && !given.pinned && given.prologue == taken.prologue &&
           given.bytes == taken.bytes;
  }

  bool read_by_another(const BoundInstruction& step, std::size_t input, Value source) const {
    for (std::size_t other = 0; other < step.inputs.size(); ++other)
      if (other != input && step.reads(other) && storage(step.inputs[other]) == source) return true;
    return false;
  }

  void plan() {
    MemoryPlanner arena;
    MemoryPlanner prologue;
    for (const auto& [value, allocation] : allocations_)
      (allocation.prologue ? prologue : arena)
          .add({allocation.bytes, allocation.first, allocation.last}, planned_[value]);
    result_.workspaces.resize(lowered_.steps.size());
    for (std::size_t index = 0; index < lowered_.steps.size(); ++index)
      if (const std::size_t bytes = lowered_.steps[index].workspace(); bytes > 0)
        arena.add({bytes, index, index}, result_.workspaces[index]);
    const MemoryPlan memory = arena.plan(Place::Space::arena, apart_);
    result_.arena_bytes = memory.peak;
    result_.arena_lower_bound = memory.lower_bound;
    result_.prologue_bytes = prologue.plan(Place::Space::prologue, 0).peak;
  }

  Place place_of(Value value) const {
    const Value root = storage(value);
    if (const auto home = homes_.find(root); home != homes_.end()) return home->second;
    const auto planned = planned_.find(root);
    return planned == planned_.end() ? Place{}
                                     : planned->second;  // an output that nothing reads gets no place
  }

  const Lowered& lowered_;
  const std::map<Value, Place>& homes_;
  const bool reuse_;
  const std::size_t apart_;
  std::map<Value, Allocation> allocations_;
  std::map<Value, Value> in_place_of_;
  std::map<Value, Place> planned_;
  Assignment result_;
};

}  // namespace

Assignment assign_memory(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse,
                         std::size_t apart) {
  return Assigner(lowered, homes, reuse, apart).run();
}

}  // namespace plexaura
