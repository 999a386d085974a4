#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/compile/loop_memory.h"
#include "core/compile/program.h"
#include "core/device/backend.h"

namespace plexaura {

using AddressOf = std::function<Address(const Slot&)>;

// Functions that observe the instructions of a loop's body. Both are empty if nothing observes them.
struct LoopObserver {
  std::function<double()> now;  // returns the time in microseconds of the profile
  // Called after each instruction of `body`. The instruction began at `start`.
  std::function<void(const Program& body, const Instruction& instruction, double start,
                     const AddressOf& address)>
      observe;
};

// A loop whose instructions are bound to addresses. An instruction of the body is bound once if its operands have the
// same addresses in each step, twice if it uses carries, and for each step if it uses stacked operands without a copy.
class LoopLaunch final : public Launch {
 public:
  // The loop, the binding's name and the backend must outlive this object. `constants` is the address of the body's
  // constants.
  LoopLaunch(const LoopWork& loop, Binding binding, Address constants, Backend& backend,
             LoopObserver observer);

  // Throws what a launch of the body throws. A UserError or DeviceError of a step names the element that the step uses.
  void run() override;

 private:
  // The operands that an instruction uses decide how often it is bound: once, for even and odd steps if it
  // uses carries, or for each step if it uses stacked operands without a copy.
  enum class Use : std::uint8_t { same, carries, stacked };
  struct Bound {
    const Instruction* instruction;
    Use use;
    // One launch for all steps; or one for even and one for odd steps; or one for each step.
    std::vector<std::unique_ptr<Launch>> launches;
  };

  std::vector<Bound> bind_all(const std::vector<Instruction>& instructions);
  Use use_of(const Instruction& instruction) const;
  Use use_of(const Place& place) const;
  std::unique_ptr<Launch> bind(const Instruction& instruction, std::int64_t step) const;
  Address address(const Place& place, std::int64_t step) const;
  Address copy_address(const std::vector<LoopMemory::Copy>& copies, std::size_t operand) const;
  // Returns the index of the stacked operands' element in this step. `step` counts from the first step that
  // runs, which has the last element if the loop is reversed.
  std::int64_t element(std::int64_t step) const { return loop_.reverse ? loop_.steps - 1 - step : step; }
  Address element_address(const std::vector<Address>& operands, const std::vector<LoopOperand>& sizes,
                          std::size_t operand, std::int64_t step) const;
  Address carry_address(std::size_t carry, bool second) const;
  void run_step(std::int64_t step);
  void run_all(std::vector<Bound>& instructions, std::int64_t step);
  void copy(Address to, Address from, std::size_t bytes);

  const LoopWork& loop_;
  const LoopMemory memory_;
  const Binding binding_;
  const Address constants_;
  Backend& backend_;
  const LoopObserver observer_;
  std::vector<Bound> prologue_;
  std::vector<Bound> body_;
};

}  // namespace plexaura
