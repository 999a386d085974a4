#include "core/vm/loop_launch.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/vm/instruction_error.h"

namespace plexaura {

LoopLaunch::LoopLaunch(const LoopWork& loop, Binding binding, Address constants, Backend& backend,
                       LoopObserver observer)
    : loop_(loop),
      memory_(loop),
      binding_(std::move(binding)),
      constants_(constants),
      backend_(backend),
      observer_(std::move(observer)),
      prologue_(bind_all(loop.body->prologue)),
      body_(bind_all(loop.body->instructions)) {}

std::vector<LoopLaunch::Bound> LoopLaunch::bind_all(const std::vector<Instruction>& instructions) {
  std::vector<Bound> all;
  for (const Instruction& instruction : instructions) {
    Bound& bound = all.emplace_back(&instruction, use_of(instruction));
    const std::int64_t times = bound.use == Use::same ? 1 : bound.use == Use::carries ? 2 : loop_.steps;
    for (std::int64_t step = 0; step < times; ++step) bound.launches.push_back(bind(instruction, step));
  }
  return all;
}

LoopLaunch::Use LoopLaunch::use_of(const Instruction& instruction) const {
  Use use = Use::same;
  for (const auto* slots : {&instruction.inputs, &instruction.outputs})
    for (const auto& slot : *slots)
      if (slot) use = std::max(use, use_of(slot->place));
  return use;
}

LoopLaunch::Use LoopLaunch::use_of(const Place& place) const {
  const auto operand = static_cast<std::size_t>(place.index);
  const bool is_input = place.space == Place::Space::input;
  if (!is_input && place.space != Place::Space::output) return Use::same;
  if (operand < loop_.carries) return Use::carries;
  if (!(is_input ? loop_.inputs : loop_.outputs)[operand].is_stacked) return Use::same;
  const auto& copies = is_input ? memory_.input_copies() : memory_.output_copies();
  return copy_address(copies, operand) != nullptr ? Use::same : Use::stacked;
}

std::unique_ptr<Launch> LoopLaunch::bind(const Instruction& instruction, std::int64_t step) const {
  Binding binding;
  for (const auto& input : instruction.inputs)
    binding.inputs.push_back(input ? address(input->place, step) : nullptr);
  for (const auto& output : instruction.outputs)
    binding.outputs.push_back(output ? address(output->place, step) : nullptr);
  if (instruction.workspace_bytes > 0) binding.workspace = address(instruction.workspace, step);
  binding.name = &instruction.name;
  if (const auto* loop = std::get_if<LoopWork>(&instruction.work))
    return std::make_unique<LoopLaunch>(*loop, binding, address(loop->constants, step), backend_, observer_);
  return std::get<KernelWork>(instruction.work).kernel->bind(binding);
}

Address LoopLaunch::address(const Place& place, std::int64_t step) const {
  const auto operand = static_cast<std::size_t>(place.index);
  const bool is_odd = step % 2 != 0;
  switch (place.space) {
    case Place::Space::arena:
      return binding_.workspace + memory_.arena() + place.offset;
    case Place::Space::prologue:
      return binding_.workspace + memory_.prologue() + place.offset;
    case Place::Space::constant:
      return constants_ + place.offset;
    case Place::Space::input:
      if (operand < loop_.carries) return carry_address(operand, is_odd);
      if (!loop_.inputs[operand].is_stacked) return binding_.inputs[operand];
      if (const Address copy = copy_address(memory_.input_copies(), operand)) return copy;
      return element_address(binding_.inputs, loop_.inputs, operand, step);
    case Place::Space::output:
      if (operand < loop_.carries) return carry_address(operand, !is_odd);
      if (const Address copy = copy_address(memory_.output_copies(), operand)) return copy;
      return element_address(binding_.outputs, loop_.outputs, operand, step);
    default:
      throw InternalError("the body of a loop uses memory outside of the loop");
  }
}

// Returns the address of the copy of the operand; null if the steps use no copy of it.
Address LoopLaunch::copy_address(const std::vector<LoopMemory::Copy>& copies, std::size_t operand) const {
  const auto found = std::ranges::find(copies, operand, &LoopMemory::Copy::operand);
  return found == copies.end() ? nullptr : binding_.workspace + found->offset;
}

Address LoopLaunch::element_address(const std::vector<Address>& operands,
                                    const std::vector<LoopOperand>& sizes, std::size_t operand,
                                    std::int64_t step) const {
  return operands[operand] + static_cast<std::size_t>(element(step)) * sizes[operand].bytes;
}

Address LoopLaunch::carry_address(std::size_t carry, bool second) const {
  return binding_.workspace + memory_.carry(carry, second);
}

void LoopLaunch::run() {
  run_all(prologue_, 0);
  for (std::size_t carry = 0; carry < loop_.carries; ++carry)
    copy(carry_address(carry, false), binding_.inputs[carry], loop_.inputs[carry].bytes);
  for (std::int64_t step = 0; step < loop_.steps; ++step) run_step(step);
  for (std::size_t carry = 0; carry < loop_.carries; ++carry)
    if (binding_.outputs[carry] != nullptr)
      copy(binding_.outputs[carry], carry_address(carry, loop_.steps % 2 != 0), loop_.outputs[carry].bytes);
}

void LoopLaunch::run_step(std::int64_t step) {
  for (const auto& [operand, offset] : memory_.input_copies())
    copy(binding_.workspace + offset, element_address(binding_.inputs, loop_.inputs, operand, step),
         loop_.inputs[operand].bytes);
  try {
    run_all(body_, step);
  } catch (const UserError& error) {
    throw UserError(fmt::format("step {}: {}", element(step), error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("step {}: {}", element(step), error.what()));
  }
  for (const auto& [operand, offset] : memory_.output_copies())
    copy(element_address(binding_.outputs, loop_.outputs, operand, step), binding_.workspace + offset,
         loop_.outputs[operand].bytes);
}

void LoopLaunch::run_all(std::vector<Bound>& instructions, std::int64_t step) {
  for (Bound& bound : instructions) {
    const double start = observer_.now ? observer_.now() : 0;
    const std::size_t index = static_cast<std::size_t>(step) % bound.launches.size();
    try {
      bound.launches[index]->run();
    } catch (...) {
      rethrow_as_of(*bound.instruction);
    }
    if (observer_.observe)
      observer_.observe(*loop_.body, *bound.instruction, start,
                        [&](const Slot& slot) { return address(slot.place, step); });
  }
}

void LoopLaunch::copy(Address to, Address from, std::size_t bytes) {
  backend_.copy(Stream::compute, to, from, bytes);
}

}  // namespace plexaura
