#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/base/export.h"
#include "core/compile/bind_kernels.h"
#include "core/params/placement.h"

namespace plexaura {

// An instruction in a program that computes some values twice.
struct ScheduledStep {
  std::size_t step;    // index in Lowered::steps
  bool again = false;  // true: the instruction is run a second time
  // The index of the first instruction that needs the second run; equal to `step` for the first run.
  std::size_t time = 0;
};

// For each step of the program, true if its instruction runs once: its values stay in memory until the last use. The
// values of the others are freed once, and computed again: between those two uses in sequence that are furthest apart and
// of which the second one is in the backward pass.
using KeptSteps = std::vector<bool>;

// The instructions of a program and the memory that they use, in a form in which thousands of choices of
// KeptSteps are compared in a short time.
class PLEXAURA_API RecomputeSchedule {
 public:
  // `homes` gives the values that live outside the arena, as for assign_memory().
  RecomputeSchedule(const Lowered& lowered, const std::map<Value, Place>& homes);

  std::size_t steps() const { return steps_.size(); }
  // True if the instruction may run twice. The others are kept in each choice: instructions of the backward
  // pass and of the prologue, sums over ranks, ops that the host computes, those that write outside the arena or
  // whose values are read after the run, and those that read a buffer which the program changes.
  bool may_repeat(std::size_t step) const { return steps_[step].may_repeat; }
  double seconds(std::size_t step) const { return steps_[step].seconds; }  // as the backend estimates them
  // Returns the bytes of the instruction's outputs that the backward pass reads.
  std::size_t bytes_held(std::size_t step) const { return steps_[step].bytes_held; }
  // Returns the index of the first instruction of the backward pass; steps() if there is none.
  std::size_t backward() const { return backward_; }
  // Returns the instructions whose values cross one of the cuts: the forward pass computes them until the
  // instruction with this index, and reads them after it. The cuts rise.
  std::vector<std::size_t> crossing(const std::vector<std::size_t>& cuts) const;
  // Returns the number of bytes that cross a cut after each instruction.
  std::vector<std::size_t> crossing_bytes() const;

  // Returns the instructions in the order in which they run. Each runs at most twice. The second run comes
  // just before the first instruction that needs it.
  std::vector<ScheduledStep> order(const KeptSteps& kept) const;
  // Returns the largest number of bytes that are in use at one instruction. No plan of memory can need less.
  std::size_t peak(const std::vector<ScheduledStep>& order, const KeptSteps& kept) const;
  double seconds_again(const std::vector<ScheduledStep>& order) const;

  // Returns true if an instruction at `time` reads the second copy of an output of an instruction. `value` is
  // the value that owns the memory.
  bool reads_again(Value value, std::size_t time, const KeptSteps& kept) const;

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  // A value in the arena.
  struct StoredValue {
    std::size_t bytes;        // in whole granules
    std::size_t exact_bytes;  // an output may take the memory of an input that has as many
    std::size_t writer;
    // The last instruction that reads the first copy of the value, if there is a second one.
    std::size_t last_early;
    std::size_t last_forward;  // the last instruction that reads the value before the backward pass does
    bool pinned = false;       // read after the program has run
    bool is_held = false;      // the backward pass reads the value
  };
  struct Step {
    std::vector<std::size_t> reads;   // indices of stored values; `nowhere` for an input outside the arena
    std::vector<std::size_t> writes;  // likewise for outputs
    std::vector<std::pair<std::size_t, std::size_t>> in_place;
    std::size_t workspace = 0;
    double seconds = 0;
    bool is_backward = false;
    bool may_repeat = false;
    std::size_t bytes_held = 0;
  };
  struct Lifetimes;

  void find_steps(const Lowered& lowered, const std::map<Value, Place>& homes);
  void find_uses();
  void find_repeatable(const Lowered& lowered);
  bool is_again(std::size_t value, std::size_t time, const KeptSteps& kept) const {
    return !kept[values_[value].writer] && time > values_[value].last_early;
  }
  void run_again(std::size_t step, std::size_t time, const KeptSteps& kept, std::vector<bool>& made,
                 std::vector<ScheduledStep>& order) const;

  std::vector<Step> steps_;
  std::vector<StoredValue> values_;
  std::map<Value, std::size_t> index_;
  std::size_t backward_ = 0;
};

}  // namespace plexaura
