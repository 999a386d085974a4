#include "core/compile/recompute.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>

#include "core/compile/compile.h"
#include "core/compile/rebuild.h"
#include "core/compile/recompute_schedule.h"

namespace plexaura {

namespace {

constexpr double next_budget = 0.75;  // the size of a segment, relative to the one that was tried before
constexpr int most_budgets = 28;
constexpr std::size_t most_single_trials = 256;
constexpr int most_plans = 8;

// Chooses the instructions whose values stay in memory.
class Search {
 public:
  explicit Search(const RecomputeSchedule& schedule) : schedule_(schedule) {
    for (std::size_t step = 0; step < schedule.steps(); ++step) {
      fixed_.push_back(!schedule.may_repeat(step));
      crossing_bytes_.push_back(step < schedule.backward() ? schedule.crossing_bytes(step) : 0);
    }
    double held = 0;
    for (std::size_t step = 0; step < schedule.steps(); ++step)
      if (schedule.may_repeat(step)) held += static_cast<double>(schedule.bytes_held(step));
    for (int i = 0; i < most_budgets && held > 0; ++i, held *= next_budget) {
      KeptSteps kept = segments_of(static_cast<std::size_t>(held));
      if (starts_.empty() || starts_.back() != kept) starts_.push_back(std::move(kept));
    }
  }

  // Returns the choice with the smallest peak; nothing if the program has no backward pass.
  std::optional<KeptSteps> least() const {
    if (starts_.empty()) return std::nullopt;
    return *std::ranges::min_element(starts_, {}, [&](const KeptSteps& kept) { return peak(kept); });
  }

  // Returns, of the choices it tries with a peak of at most `limit`, the one that takes the fewest seconds, or nothing.
  std::optional<KeptSteps> cheapest(std::size_t limit) const {
    std::optional<KeptSteps> best;
    double least = std::numeric_limits<double>::infinity();
    for (KeptSteps kept : starts_) {
      if (peak(kept) > limit) continue;
      keep_more(kept, limit);
      const double seconds = schedule_.seconds_again(schedule_.order(kept));
      if (seconds >= least) continue;
      least = seconds;
      best = std::move(kept);
    }
    return best;
  }

 private:
  std::size_t peak(const KeptSteps& kept) const { return schedule_.peak(schedule_.order(kept), kept); }

  // Cuts the forward pass into segments whose values for the backward pass have about `budget` bytes. A cut
  // lies where the fewest bytes cross it, in the second half of a segment. These bytes are kept.
  KeptSteps segments_of(std::size_t budget) const {
    KeptSteps kept = fixed_;
    std::optional<std::size_t> best;
    std::size_t held = 0;
    for (std::size_t step = 0; step < schedule_.backward(); ++step) {
      held += schedule_.bytes_held(step);
      if (2 * held < budget) continue;
      if (!best || crossing_bytes_[step] <= crossing_bytes_[*best]) best = step;
      if (held < budget) continue;
      for (const std::size_t writer : schedule_.crossing(*best)) kept[writer] = true;
      held = 0;
      for (std::size_t after = *best + 1; after <= step; ++after) held += schedule_.bytes_held(after);
      best.reset();
    }
    return kept;
  }

  // Keeps more values while the peak allows it: as many of the most expensive ones as possible at once, then
  // one after the other.
  void keep_more(KeptSteps& kept, std::size_t limit) const {
    std::vector<std::size_t> again;
    for (const ScheduledStep& step : schedule_.order(kept))
      if (step.again) again.push_back(step.step);
    std::ranges::stable_sort(again, std::ranges::greater{}, [&](std::size_t step) { return worth(step); });
    const auto with = [&](std::size_t count) {
      KeptSteps more = kept;
      for (std::size_t i = 0; i < count; ++i) more[again[i]] = true;
      return more;
    };
    std::size_t fits = 0, exceeds = again.size() + 1;
    while (exceeds - fits > 1) {
      const std::size_t middle = (fits + exceeds) / 2;
      (peak(with(middle)) <= limit ? fits : exceeds) = middle;
    }
    kept = with(fits);
    for (std::size_t i = fits; i < std::min(again.size(), fits + most_single_trials); ++i) {
      kept[again[i]] = true;
      if (peak(kept) > limit) kept[again[i]] = false;
    }
  }

  // Returns the seconds that a byte of kept memory saves.
  double worth(std::size_t step) const {
    return schedule_.seconds(step) / static_cast<double>(schedule_.bytes_held(step) + 1);
  }

  const RecomputeSchedule& schedule_;
  KeptSteps fixed_;
  std::vector<std::size_t> crossing_bytes_;
  std::vector<KeptSteps> starts_;
};

// Writes a program in which instructions run twice. The second run has nodes of its own.
class Rewriting {
 public:
  Rewriting(const Lowered& source, const RecomputeSchedule& schedule, const KeptSteps& kept)
      : source_(source), schedule_(schedule), kept_(kept) {
    PassGraph graph = copy(*source.graph, source.roots);
    result_.graph = std::move(graph.graph);
    result_.roots = source.roots;
    result_.layouts = source.layouts;
    result_.alias_of = source.alias_of;
    result_.shadows = source.shadows;
    result_.targets = source.targets;
    result_.stored = source.stored;
    result_.parameter_layouts = source.parameter_layouts;
    result_.reorders = source.reorders;
  }

  Lowered run() && {
    for (const ScheduledStep& at : schedule_.order(kept_)) {
      BoundInstruction step = source_.steps[at.step];
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        if (step.reads(i)) step.inputs[i] = read_at(step.inputs[i], at.time);
      if (at.again) repeat(step);
      result_.steps.push_back(std::move(step));
    }
    return std::move(result_);
  }

 private:
  // Returns the copy of a value that an instruction at `time` reads.
  Value read_at(Value value, std::size_t time) {
    if (!schedule_.reads_again(source_.storage_of(value), time, kept_)) return value;
    if (const auto known = again_.find(value); known != again_.end()) return known->second;
    const Value viewed = read_at(source_.alias_of.at(value), time);
    const Value copy = append(value.node, {viewed})[0];
    result_.layouts[copy] = source_.layouts.at(value);
    result_.alias_of[copy] = viewed;
    return again_[value] = copy;
  }

  std::vector<Value> append(NodeId id, const std::vector<Value>& inputs) {
    const NodeRecord& record = source_.graph->record(id);
    return append_with_origin(*result_.graph, record.op, inputs, record.origin);
  }

  // Makes the instruction, which reads the right inputs already, the second run of its region.
  void repeat(BoundInstruction& step) {
    Region& region = step.region;
    std::map<Value, Value> inside;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) inside.emplace(region.inputs[i], step.inputs[i]);
    for (NodeId& id : region.nodes) {
      std::vector<Value> inputs;
      for (const Value input : source_.graph->record(id).inputs) {
        const auto known = inside.find(input);
        inputs.push_back(known == inside.end() ? input : known->second);
      }
      const std::vector<Value> outputs = append(id, inputs);
      for (std::uint32_t i = 0; i < outputs.size(); ++i) inside[{id, i}] = outputs[i];
      id = outputs[0].node;
    }
    for (Value& output : region.outputs) {
      const Value copy = inside.at(output);
      if (const auto layout = source_.layouts.find(output); layout != source_.layouts.end())
        result_.layouts[copy] = layout->second;
      again_[output] = copy;
      output = copy;
    }
    region.inputs = step.inputs;
    step.is_again = true;
  }

  const Lowered& source_;
  const RecomputeSchedule& schedule_;
  const KeptSteps& kept_;
  Lowered result_;
  std::map<Value, Value> again_;  // maps a value to its second copy
};

}  // namespace

Recomputed recompute(const Lowered& lowered, const std::map<Value, Place>& homes,
                     const std::function<Assignment(const Lowered&)>& assign, std::size_t limit) {
  const RecomputeSchedule schedule(lowered, homes);
  const Search search(schedule);
  const auto planned = [&](const KeptSteps& kept) {
    Recomputed made{Rewriting(lowered, schedule, kept).run(), {}};
    made.assignment = assign(made.lowered);
    return made;
  };
  // A plan may need a few more bytes than are in use at one instruction.
  double aim = static_cast<double>(limit);
  for (int i = 0; i < most_plans; ++i) {
    const std::optional<KeptSteps> kept = search.cheapest(static_cast<std::size_t>(aim));
    if (!kept) break;
    Recomputed made = planned(*kept);
    if (made.assignment.arena_bytes <= limit) return made;
    aim *= static_cast<double>(limit) / static_cast<double>(made.assignment.arena_bytes);
  }
  const std::optional<KeptSteps> least = search.least();
  if (!least) throw MemoryLimitError(assign(lowered).arena_bytes, limit);
  Recomputed made = planned(*least);
  if (made.assignment.arena_bytes <= limit) return made;
  throw MemoryLimitError(made.assignment.arena_bytes, limit);
}

}  // namespace plexaura
