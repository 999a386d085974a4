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
constexpr std::size_t most_refined = 4;  // the number of choices for which single values are tried
constexpr int most_plans = 8;
// The number of instructions that all trials of a search visit together. It limits the time of compile() for
// long programs.
constexpr std::size_t most_visits = 6'000'000;

// A choice of the instructions whose values stay in memory.
struct KeptChoice {
  KeptSteps kept;
  std::size_t peak = 0;
  double seconds_again = 0;
};

// Chooses the instructions whose values stay in memory.
class Search {
 public:
  explicit Search(const RecomputeSchedule& schedule)
      : schedule_(schedule), trials_left_(most_visits / (schedule.steps() + 1)) {
    std::size_t held = 0;
    for (std::size_t step = 0; step < schedule.steps(); ++step) {
      fixed_.push_back(!schedule.may_repeat(step));
      if (schedule.may_repeat(step)) held += schedule.bytes_held(step);
    }
    crossing_bytes_ = schedule.crossing_bytes();
    KeptSteps last;
    double budget = static_cast<double>(held);
    for (int i = 0; i < most_budgets && held > 0; ++i, budget *= next_budget) {
      KeptSteps kept = segments_of(static_cast<std::size_t>(budget));
      if (kept == last) continue;
      last = kept;
      starts_.push_back(measured(std::move(kept)));
    }
    std::ranges::stable_sort(starts_, {}, &KeptChoice::seconds_again);
  }

  // Returns the choice with the smallest peak; nothing if the program has no backward pass.
  std::optional<KeptChoice> least() const {
    if (starts_.empty()) return std::nullopt;
    return *std::ranges::min_element(starts_, {}, &KeptChoice::peak);
  }

  // Returns, of the choices it tries with a peak of at most `limit`, the one that takes the fewest seconds, or nothing.
  // Uses half of the trials that are left. A choice for which none is left stays as it was found.
  std::optional<KeptChoice> cheapest(std::size_t limit) {
    const std::size_t reserve = trials_left_ / 2;
    std::vector<KeptChoice> fitting;
    for (const KeptChoice& start : starts_)
      if (start.peak <= limit) fitting.push_back(start);
    if (fitting.empty()) return std::nullopt;
    for (KeptChoice& choice : fitting)
      if (trials_left_ > reserve + reserve / 2) keep_many(choice, limit);
    std::ranges::stable_sort(fitting, {}, &KeptChoice::seconds_again);
    fitting.resize(std::min(fitting.size(), most_refined));
    for (KeptChoice& choice : fitting) keep_single(choice, limit, reserve);
    return *std::ranges::min_element(fitting, {}, &KeptChoice::seconds_again);
  }

 private:
  KeptChoice measured(KeptSteps kept) const {
    const std::vector<ScheduledStep> order = schedule_.order(kept);
    const std::size_t peak = schedule_.peak(order, kept);
    return {std::move(kept), peak, schedule_.seconds_again(order)};
  }

  // Takes the choice of `kept` if its peak is at most `limit`. Returns true if it was taken.
  bool take_if_fits(KeptChoice& choice, KeptSteps kept, std::size_t limit) {
    trials_left_ -= std::min<std::size_t>(trials_left_, 1);
    KeptChoice tried = measured(std::move(kept));
    if (tried.peak > limit) return false;
    choice = std::move(tried);
    return true;
  }

  // Cuts the forward pass into segments whose values for the backward pass have about `budget` bytes. A cut
  // lies where the fewest bytes cross it, in the second half of a segment. These bytes are kept.
  KeptSteps segments_of(std::size_t budget) const {
    std::vector<std::size_t> cuts;
    bool has_best = false;
    std::size_t best = 0, held = 0, held_at_best = 0;
    for (std::size_t step = 0; step < schedule_.backward(); ++step) {
      held += schedule_.bytes_held(step);
      if (2 * held < budget) continue;
      if (!has_best || crossing_bytes_[step] <= crossing_bytes_[best]) {
        has_best = true;
        best = step;
        held_at_best = held;
      }
      if (held < budget) continue;
      cuts.push_back(best);
      held -= held_at_best;
      has_best = false;
    }
    KeptSteps kept = fixed_;
    for (const std::size_t writer : schedule_.crossing(cuts)) kept[writer] = true;
    return kept;
  }

  // Returns the instructions that run again, those that are the most expensive for each byte first.
  std::vector<std::size_t> repeated(const KeptSteps& kept) const {
    std::vector<std::size_t> again;
    for (const ScheduledStep& step : schedule_.order(kept))
      if (step.again) again.push_back(step.step);
    std::ranges::stable_sort(again, std::ranges::greater{}, [&](std::size_t step) { return worth(step); });
    return again;
  }

  // Keeps as many of the most expensive values as the limit allows.
  void keep_many(KeptChoice& choice, std::size_t limit) {
    const KeptSteps start = choice.kept;
    const std::vector<std::size_t> again = repeated(start);
    std::size_t fits = 0, exceeds = again.size() + 1;
    while (exceeds - fits > 1) {
      const std::size_t middle = (fits + exceeds) / 2;
      KeptSteps more = start;
      for (std::size_t i = 0; i < middle; ++i) more[again[i]] = true;
      (take_if_fits(choice, std::move(more), limit) ? fits : exceeds) = middle;
    }
  }

  // Keeps more values, one after the other, until `reserve` trials are left.
  void keep_single(KeptChoice& choice, std::size_t limit, std::size_t reserve) {
    const std::vector<std::size_t> again = repeated(choice.kept);
    for (std::size_t i = 0; i < std::min(again.size(), most_single_trials) && trials_left_ > reserve; ++i) {
      KeptSteps more = choice.kept;
      more[again[i]] = true;
      take_if_fits(choice, std::move(more), limit);
    }
  }

  // Returns the seconds that a byte of kept memory saves.
  double worth(std::size_t step) const {
    return schedule_.seconds(step) / static_cast<double>(schedule_.bytes_held(step) + 1);
  }

  const RecomputeSchedule& schedule_;
  KeptSteps fixed_;
  std::vector<std::size_t> crossing_bytes_;
  std::vector<KeptChoice> starts_;
  std::size_t trials_left_;  // the number of choices that may still be measured
};

// Writes a program in which instructions run twice. The second run has nodes of its own.
class Rewriting {
 public:
  Rewriting(const Lowered& source, const RecomputeSchedule& schedule, const KeptSteps& kept)
      : source_(source), schedule_(schedule), kept_(kept), result_(source.copy()) {
    result_.steps.clear();
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
                     const std::function<Assignment(const Lowered&)>& assign, std::size_t unlimited,
                     std::size_t limit) {
  const RecomputeSchedule schedule(lowered, homes);
  Search search(schedule);
  std::size_t least = unlimited;
  const auto planned = [&](const KeptSteps& kept) {
    Recomputed made{Rewriting(lowered, schedule, kept).run(), {}};
    made.assignment = assign(made.lowered);
    least = std::min(least, made.assignment.arena_bytes);
    return made;
  };
  // A plan may need a few more bytes than are in use at one instruction. Each round excludes the choice of
  // the round before.
  std::size_t aim = limit;
  for (int i = 0; i < most_plans; ++i) {
    const std::optional<KeptChoice> choice = search.cheapest(aim);
    if (!choice) break;
    Recomputed made = planned(choice->kept);
    if (made.assignment.arena_bytes <= limit) return made;
    const double excess = static_cast<double>(made.assignment.arena_bytes) / static_cast<double>(limit);
    aim = std::min(static_cast<std::size_t>(static_cast<double>(aim) / excess),
                   choice->peak - std::min<std::size_t>(choice->peak, 1));
  }
  if (const std::optional<KeptChoice> smallest = search.least()) {
    Recomputed made = planned(smallest->kept);
    if (made.assignment.arena_bytes <= limit) return made;
  }
  throw MemoryLimitError(least, limit);
}

}  // namespace plexaura
