#include "core/vm/host_calls.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/compile/memory_plan.h"
#include "core/graph/origin.h"
#include "core/loops/denormals.h"
#include "core/vm/instruction_error.h"

namespace plexaura {

HostCalls::HostCalls(const Program& program, Backend& backend, Collective* collective, ProgramMemory& memory,
                     Profile* profile, Observer observer)
    : program_(program),
      backend_(backend),
      collective_(collective),
      memory_(memory),
      profile_(profile),
      observer_(std::move(observer)) {
  std::size_t bytes = 0;
  std::size_t sums = 0;
  for (std::size_t index = 0; index < program.instructions.size(); ++index) {
    const Instruction& instruction = program.instructions[index];
    if (!is_on_host(instruction)) continue;
    Call& call = calls_.emplace_back(index);
    bytes = std::max(bytes, lay_out(call));
    if (!std::holds_alternative<CollectiveWork>(instruction.work)) continue;
    if (collective == nullptr)
      throw UserError(fmt::format("VM: {} needs other ranks; give the VM a collective", instruction.name));
    // The name contains no node number, because ranks with other batch sizes have other node numbers.
    const NodeRecord& record = program.graph->record(instruction.nodes[0]);
    call.name = fmt::format("{} of {}, number {} of the program", record.op->name(), to_string(record.origin),
                            ++sums);
  }
  if (calls_.empty()) return;
  staging_ = backend.allocate(bytes, MemoryUse::staging);
  copied_ = backend.make_event();
  for (Call& call : calls_)
    if (const auto* op = std::get_if<HostWork>(&instruction_of(call).work)) bind(call, *op->kernel);
}

std::size_t HostCalls::lay_out(Call& call) const {
  const Instruction& instruction = instruction_of(call);
  if (const auto* op = std::get_if<HostWork>(&instruction.work))
    return lay_out_op(call, op->kernel->workspace());
  // A sum is computed in place.
  call.inputs.push_back({&*instruction.inputs[0], 0});
  if (instruction.outputs[0]) call.outputs.push_back({&*instruction.outputs[0], 0});
  return call.inputs[0].bytes();
}

// Sets the offsets for an op. The kernel's workspace comes after the operands.
std::size_t HostCalls::lay_out_op(Call& call, std::size_t workspace) const {
  const Instruction& instruction = instruction_of(call);
  std::size_t end = 0;
  const auto lay = [&](const std::vector<std::optional<Slot>>& slots, std::vector<StagedSlot>& staged) {
    for (const auto& slot : slots) {
      if (!slot) continue;
      staged.push_back({&*slot, end});
      end = whole_granules(end + staged.back().bytes());
    }
  };
  lay(instruction.inputs, call.inputs);
  lay(instruction.outputs, call.outputs);
  call.workspace = end;
  return end + workspace;
}

void HostCalls::bind(Call& call, const Kernel& kernel) const {
  const Instruction& instruction = instruction_of(call);
  const auto addresses = [&](const std::vector<std::optional<Slot>>& slots,
                             const std::vector<StagedSlot>& staged) {
    std::vector<Address> found;
    auto next = staged.begin();
    for (const auto& slot : slots) found.push_back(slot ? staging_->address() + (next++)->offset : nullptr);
    return found;
  };
  call.launch =
      kernel.bind({addresses(instruction.inputs, call.inputs), addresses(instruction.outputs, call.outputs),
                   staging_->address() + call.workspace, &instruction.name});
}

// Carries out a host call. The host waits for the copies of the operands, but not for those of the results:
// the next use of the staging memory comes later in the stream, or waits for its own operands.
void HostCalls::run(std::size_t index) {
  const Call& call = *std::ranges::find(calls_, index, &Call::index);
  const double start = profile_ != nullptr ? profile_->now() : 0;
  for (const StagedSlot& input : call.inputs)
    backend_.copy(Stream::compute, staging_->address() + input.offset, memory_.address(input.slot->place),
                  input.bytes());
  copied_->record(Stream::compute);
  copied_->wait();
  call.launch == nullptr ? sum(call) : run_op(call);
  for (const StagedSlot& output : call.outputs)
    backend_.copy(Stream::compute, memory_.address(output.slot->place), staging_->address() + output.offset,
                  output.bytes());
  observer_(instruction_of(call), start);
}

void HostCalls::sum(const Call& call) {
  const Slot& from = *call.inputs[0].slot;
  collective_->sum(from.type.dtype, staging_->address(), from.layout.elements(from.type.shape), call.name);
}

void HostCalls::run_op(const Call& call) {
  const DenormalScope of_kernel(Denormals::kept);
  try {
    call.launch->run();
  } catch (...) {
    rethrow_as_of(instruction_of(call));
  }
}

}  // namespace plexaura
