#include "core/compile/recompute_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/compile/memory_plan.h"

namespace plexaura {

namespace {

bool has_gradient_node(const Lowered& lowered, const BoundInstruction& step) {
  return std::ranges::any_of(step.region.nodes,
                             [&](NodeId id) { return lowered.graph->record(id).origin.is_gradient; });
}

bool is_device_work(const BoundInstruction& step) {
  return std::holds_alternative<KernelWork>(step.work) || std::holds_alternative<LoopWork>(step.work);
}

}  // namespace

RecomputeSchedule::RecomputeSchedule(const Lowered& lowered, const std::map<Value, Place>& homes)
    : backward_(lowered.steps.size()) {
  find_steps(lowered, homes);
  for (const Value root : lowered.roots)
    if (const auto found = index_.find(lowered.storage_of(root)); found != index_.end())
      values_[found->second].pinned = true;
  find_uses();
  find_repeatable(lowered);
}

void RecomputeSchedule::find_steps(const Lowered& lowered, const std::map<Value, Place>& homes) {
  for (std::size_t index = 0; index < lowered.steps.size(); ++index) {
    const BoundInstruction& bound = lowered.steps[index];
    Step step;
    step.in_place = bound.candidate.in_place;
    step.workspace = whole_granules(bound.workspace());
    step.seconds = std::isfinite(bound.candidate.seconds) ? bound.candidate.seconds : 0;
    step.is_backward = has_gradient_node(lowered, bound);
    for (std::size_t i = 0; i < bound.inputs.size(); ++i) {
      const auto found = index_.find(lowered.storage_of(bound.inputs[i]));
      step.reads.push_back(found == index_.end() || !bound.reads(i) ? nowhere : found->second);
    }
    for (std::size_t i = 0; i < bound.region.outputs.size(); ++i) {
      const Value value = bound.region.outputs[i];
      const bool is_stored = bound.wanted[i] && !bound.prologue && !homes.contains(value);
      step.writes.push_back(is_stored ? values_.size() : nowhere);
      if (!is_stored) continue;
      index_[value] = values_.size();
      const auto bytes =
          static_cast<std::size_t>(lowered.layouts.at(value).bytes(lowered.graph->type(value)));
      values_.push_back({.bytes = whole_granules(bytes),
                         .exact_bytes = bytes,
                         .writer = index,
                         .last_early = index,
                         .last_forward = index});
    }
    if (step.is_backward) backward_ = std::min(backward_, index);
    steps_.push_back(std::move(step));
  }
}

// Finds the longest time between two uses of each value, of which the second one belongs to a backward pass:
// the instruction computes gradients, or follows the first one that does, and the value was computed before
// that one. A graph with derivatives of gradients has several backward passes.
void RecomputeSchedule::find_uses() {
  std::vector<std::size_t> last(values_.size());
  std::vector<std::size_t> longest(values_.size(), 0);
  for (std::size_t i = 0; i < values_.size(); ++i) last[i] = values_[i].writer;
  for (std::size_t index = 0; index < steps_.size(); ++index)
    for (const std::size_t read : steps_[index].reads) {
      if (read == nowhere) continue;
      StoredValue& value = values_[read];
      const bool is_late = steps_[index].is_backward || (value.writer < backward_ && index >= backward_);
      if (is_late && index - last[read] > longest[read]) {
        longest[read] = index - last[read];
        value.last_early = last[read];
      }
      value.is_held = value.is_held || is_late;
      last[read] = index;
      if (!value.is_held) value.last_early = value.last_forward = index;
    }
  for (const StoredValue& value : values_)
    if (value.is_held) steps_[value.writer].bytes_held += value.bytes;
}

void RecomputeSchedule::find_repeatable(const Lowered& lowered) {
  std::set<Value> changed;
  for (const Update& update : lowered.graph->updates()) changed.insert(update.buffer);
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    const BoundInstruction& bound = lowered.steps[index];
    Step& step = steps_[index];
    step.may_repeat = !step.is_backward && !bound.prologue && is_device_work(bound);
    for (const NodeId id : bound.region.nodes)
      if (lowered.graph->record(id).op->traits().collective) step.may_repeat = false;
    for (std::size_t i = 0; i < step.writes.size(); ++i)
      if (bound.wanted[i] && (step.writes[i] == nowhere || values_[step.writes[i]].pinned))
        step.may_repeat = false;
    for (const Value input : bound.inputs)
      if (changed.contains(lowered.storage_of(input))) step.may_repeat = false;
  }
}

std::vector<std::size_t> RecomputeSchedule::crossing(const std::vector<std::size_t>& cuts) const {
  std::vector<std::size_t> writers;
  for (const StoredValue& value : values_)
    if (const auto cut = std::ranges::lower_bound(cuts, value.writer);
        cut != cuts.end() && *cut < value.last_forward)
      writers.push_back(value.writer);
  return writers;
}

std::vector<std::size_t> RecomputeSchedule::crossing_bytes() const {
  std::vector<std::size_t> bytes(steps_.size(), 0);
  for (const StoredValue& value : values_) {  // first the difference to the instruction before
    if (value.last_forward <= value.writer) continue;
    bytes[value.writer] += value.bytes;
    bytes[value.last_forward] -= value.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

std::vector<ScheduledStep> RecomputeSchedule::order(const KeptSteps& kept) const {
  std::vector<ScheduledStep> order;
  std::vector<bool> made(steps_.size(), false);
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    for (const std::size_t read : steps_[index].reads)
      if (read != nowhere && is_again(read, index, kept))
        run_again(values_[read].writer, index, kept, made, order);
    order.push_back({.step = index, .time = index});
  }
  return order;
}

// Appends the second run of an instruction, after those that it needs. Their number is limited by the length
// of the program, and the instructions wait on a stack of their own.
void RecomputeSchedule::run_again(std::size_t step, std::size_t time, const KeptSteps& kept,
                                  std::vector<bool>& made, std::vector<ScheduledStep>& order) const {
  std::vector<std::size_t> open{step};
  while (!open.empty()) {
    const std::size_t next = open.back();
    const std::size_t waiting = open.size();
    if (!made[next])
      for (const std::size_t read : steps_[next].reads)
        if (read != nowhere && is_again(read, time, kept) && !made[values_[read].writer])
          open.push_back(values_[read].writer);
    if (open.size() > waiting) continue;
    open.pop_back();
    if (made[next]) continue;
    made[next] = true;
    order.push_back({.step = next, .again = true, .time = time});
  }
}

// The lifetimes of both copies of all values, in positions of an order. Copy 0 of value v has index 2 v.
struct RecomputeSchedule::Lifetimes {
  struct Lifetime {
    std::size_t first = nowhere;
    std::size_t last = 0;
    bool pinned = false;
  };
  std::vector<Lifetime> all;
  std::vector<std::size_t> memory_of;  // the copy whose memory a copy uses

  std::size_t root(std::size_t copy) const {
    while (memory_of[copy] != copy) copy = memory_of[copy];
    return copy;
  }
};

std::size_t RecomputeSchedule::peak(const std::vector<ScheduledStep>& order, const KeptSteps& kept) const {
  Lifetimes lives{std::vector<Lifetimes::Lifetime>(2 * values_.size()), {}};
  for (std::size_t copy = 0; copy < lives.all.size(); ++copy) lives.memory_of.push_back(copy);
  const auto read_copy = [&](std::size_t value, const ScheduledStep& at) {
    return 2 * value + (is_again(value, at.time, kept) ? 1 : 0);
  };
  for (std::size_t position = 0; position < order.size(); ++position) {
    const Step& step = steps_[order[position].step];
    for (const std::size_t read : step.reads)
      if (read != nowhere) lives.all[read_copy(read, order[position])].last = position;
    for (const std::size_t write : step.writes) {
      if (write == nowhere) continue;
      const bool pinned = values_[write].pinned;
      lives.all[2 * write + (order[position].again ? 1 : 0)] = {position, pinned ? order.size() : position,
                                                                pinned};
    }
  }
  for (std::size_t position = 0; position < order.size(); ++position) {
    const ScheduledStep& at = order[position];
    const Step& step = steps_[at.step];
    const auto source_of = [&](std::size_t input) { return lives.root(read_copy(step.reads[input], at)); };
    for (const auto& [output, input] : step.in_place) {
      if (step.writes[output] == nowhere || step.reads[input] == nowhere) continue;
      const std::size_t target = 2 * step.writes[output] + (at.again ? 1 : 0);
      const std::size_t source = source_of(input);
      bool is_free = lives.memory_of[target] == target && lives.all[source].last == position &&
                     !lives.all[source].pinned &&
                     values_[target / 2].exact_bytes == values_[source / 2].exact_bytes;
      for (std::size_t other = 0; other < step.reads.size() && is_free; ++other)
        is_free = other == input || step.reads[other] == nowhere || source_of(other) != source;
      if (!is_free) continue;
      lives.all[source].last = lives.all[target].last;
      lives.all[source].pinned = lives.all[target].pinned;
      lives.memory_of[target] = source;
    }
  }
  std::vector<std::ptrdiff_t> change(order.size() + 2, 0);
  for (std::size_t copy = 0; copy < lives.all.size(); ++copy) {
    if (lives.all[copy].first == nowhere || lives.memory_of[copy] != copy) continue;
    change[lives.all[copy].first] += static_cast<std::ptrdiff_t>(values_[copy / 2].bytes);
    change[lives.all[copy].last + 1] -= static_cast<std::ptrdiff_t>(values_[copy / 2].bytes);
  }
  std::size_t peak = 0;
  std::ptrdiff_t used = 0;
  for (std::size_t position = 0; position < order.size(); ++position) {
    used += change[position];
    peak = std::max(peak, static_cast<std::size_t>(used) + steps_[order[position].step].workspace);
  }
  return peak;
}

double RecomputeSchedule::seconds_again(const std::vector<ScheduledStep>& order) const {
  double seconds = 0;
  for (const ScheduledStep& step : order)
    if (step.again) seconds += steps_[step.step].seconds;
  return seconds;
}

bool RecomputeSchedule::reads_again(Value value, std::size_t time, const KeptSteps& kept) const {
  const auto found = index_.find(value);
  return found != index_.end() && is_again(found->second, time, kept);
}

}  // namespace plexaura
