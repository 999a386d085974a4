#include "core/vm/collective_calls.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::size_t bytes_of(const Slot& slot) { return static_cast<std::size_t>(slot.layout.bytes(slot.type)); }

}  // namespace

CollectiveCalls::CollectiveCalls(const Program& program, Backend& backend, Collective* collective,
                                 ProgramMemory& memory, Profile* profile)
    : program_(program), collective_(collective), memory_(memory), profile_(profile) {
  std::size_t most_bytes = 0;
  for (std::size_t index = 0; index < program.instructions.size(); ++index) {
    const Instruction& instruction = program.instructions[index];
    if (instruction.kernel) continue;
    if (collective == nullptr)
      throw UserError(fmt::format("VM: {} needs other ranks; give the VM a collective", instruction.name));
    most_bytes = std::max(most_bytes, bytes_of(*instruction.inputs[0]));
    // Without the number of the node: ranks whose batches differ in size have other ones.
    const NodeRecord& record = program.graph->record(instruction.nodes[0]);
    calls_.push_back({index, fmt::format("{} of {}, number {} of the program", record.op->name(),
                                         to_string(record.origin), calls_.size() + 1)});
  }
  if (!calls_.empty()) staging_.emplace(backend, most_bytes);
}

std::vector<HostPoint> CollectiveCalls::host_points() {
  std::vector<HostPoint> points;
  for (const Call& call : calls_)
    points.push_back({call.instruction + 1, [this, &call] {
                        run(call);
                        return true;
                      }});
  return points;
}

void CollectiveCalls::run(const Call& call) {
  const Instruction& instruction = program_.instructions[call.instruction];
  const Slot& from = *instruction.inputs[0];
  const ProfileSpan span(profile_, instruction.name, "communication");
  staging_->to_host(memory_.address(from.place), bytes_of(from));
  collective_->sum(from.type.dtype, staging_->host(), from.layout.elements(from.type.shape), call.what);
  if (instruction.outputs[0])
    staging_->to_device(memory_.address(instruction.outputs[0]->place), bytes_of(from));
}

}  // namespace plexaura
