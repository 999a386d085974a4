#include "core/compile/assign_memory.h"

#include <algorithm>

#include "core/compile/memory_plan.h"

namespace plexaura {

namespace {

class Assigner {
 public:
  Assigner(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse)
      : lowered_(lowered), homes_(homes), reuse_(reuse) {}

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
  struct Piece {
    std::size_t bytes = 0;
    std::size_t first = 0;
    std::size_t last = 0;
    bool pinned = false;    // read after the program
    bool prologue = false;  // outlives the run
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
      pieces_[value] = {bytes_of(value), index, index, false, step.prologue};
    }
    for (std::size_t input = 0; input < step.inputs.size(); ++input) {
      const auto piece = pieces_.find(lowered_.storage_of(step.inputs[input]));
      if (step.reads(input) && piece != pieces_.end()) piece->second.last = index;
    }
  }

  void pin_roots() {
    for (const Value root : lowered_.roots) {
      const auto piece = pieces_.find(lowered_.storage_of(root));
      if (piece == pieces_.end()) continue;
      piece->second.pinned = true;
      piece->second.last = lowered_.steps.size();
    }
    if (reuse_) return;
    for (auto& [value, piece] : pieces_) piece.last = lowered_.steps.size();
  }

  void work_in_place(std::size_t index) {
    const BoundInstruction& step = lowered_.steps[index];
    for (const auto& [output, input] : step.candidate.in_place) {
      const Value target = step.region.outputs[output];
      const Value source = storage(step.inputs[input]);
      const auto taken = pieces_.find(target);
      const auto given = pieces_.find(source);
      if (taken == pieces_.end() || given == pieces_.end() || in_place_of_.contains(target)) continue;
      if (!may_take(given->second, taken->second, index) || read_by_another(step, input, source)) continue;
      given->second.last = taken->second.last;
      given->second.pinned = given->second.pinned || taken->second.pinned;
      in_place_of_[target] = source;
      pieces_.erase(taken);
    }
  }

  static bool may_take(const Piece& given, const Piece& taken, std::size_t index) {
    return given.last == index && !given.pinned && given.prologue == taken.prologue &&
           given.bytes == taken.bytes;
  }

  bool read_by_another(const BoundInstruction& step, std::size_t input, Value source) const {
    for (std::size_t other = 0; other < step.inputs.size(); ++other)
      if (other != input && step.reads(other) && storage(step.inputs[other]) == source) return true;
    return false;
  }

  void plan() {
    std::vector<Lifetime> lifetimes;
    std::vector<Place*> waiting;
    for (const auto& [value, piece] : pieces_) {
      Place& place = planned_[value];
      if (piece.prologue) {
        place = {Place::Space::prologue, 0, static_cast<std::int64_t>(result_.prologue_bytes)};
        result_.prologue_bytes += whole_granules(piece.bytes);
      } else {
        lifetimes.push_back({piece.bytes, piece.first, piece.last});
        waiting.push_back(&place);
      }
    }
    result_.workspaces.resize(lowered_.steps.size());
    for (std::size_t index = 0; index < lowered_.steps.size(); ++index) {
      const std::size_t bytes = lowered_.steps[index].workspace();
      if (bytes == 0) continue;
      lifetimes.push_back({bytes, index, index});
      waiting.push_back(&result_.workspaces[index]);
    }
    const MemoryPlan memory = plan_memory(lifetimes);
    for (std::size_t i = 0; i < waiting.size(); ++i)
      *waiting[i] = {Place::Space::arena, 0, static_cast<std::int64_t>(memory.offsets[i])};
    result_.arena_bytes = memory.peak;
    result_.arena_lower_bound = memory.lower_bound;
  }

  Place place_of(Value value) const {
    const Value root = storage(value);
    if (const auto home = homes_.find(root); home != homes_.end()) return home->second;
    const auto planned = planned_.find(root);
    return planned == planned_.end() ? Place{} : planned->second;  // an output that nobody wants lies nowhere
  }

  const Lowered& lowered_;
  const std::map<Value, Place>& homes_;
  const bool reuse_;
  std::map<Value, Piece> pieces_;
  std::map<Value, Value> in_place_of_;
  std::map<Value, Place> planned_;
  Assignment result_;
};

}  // namespace

Assignment assign_memory(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse) {
  return Assigner(lowered, homes, reuse).run();
}

}  // namespace plexaura
