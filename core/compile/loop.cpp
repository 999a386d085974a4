#include "core/compile/loop.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/compile/passes.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

// True if the body must compute this output. Carries are always computed, for the next step.
bool is_computed(const Scan& scan, const RegionQuery& query, std::size_t output) {
  return output < scan.form().carries || query.wanted[output];
}

std::shared_ptr<const Program> compile_body(const Scan& scan, const RegionQuery& query, Backend& backend,
                                            CompileOptions options) {
  const Subgraph& body = scan.body();
  const PassGraph graph = copy(body.graph(), body.outputs());
  std::vector<ProgramOutput> outputs;
  for (std::size_t i = 0; i < scan.outputs(); ++i)
    if (is_computed(scan, query, i))
      outputs.push_back({.node = Node(*graph.graph, graph.roots[i]), .output = i});
  for (std::size_t i = 0; i < body.operands(); ++i)
    options.same_operands.push_back(i >= scan.form().carries && !scan.is_stacked(i));
  options.loop_steps = scan.form().steps;
  return compile(*graph.graph, outputs, backend, options);
}

void check_has_kernels(const Program& body, const std::string& name) {
  for (const std::vector<Instruction>* instructions : {&body.prologue, &body.instructions})
    for (const Instruction& instruction : *instructions)
      if (std::holds_alternative<HostWork>(instruction.work))
        throw UserError(
            fmt::format("{}: the backend '{}' has no kernel for {} in the body, and the host takes no part "
                        "in a loop; compose it of "
                        "other ops, or use the backend 'cpu'",
                        name, body.backend, instruction.name));
}

bool reads_input(const Program& body, std::size_t input) {
  const auto is_input = [&](const std::optional<Slot>& slot) {
    return slot && slot->place.space == Place::Space::input &&
           slot->place.index == static_cast<std::int64_t>(input);
  };
  for (const std::vector<Instruction>* instructions : {&body.prologue, &body.instructions})
    for (const Instruction& instruction : *instructions)
      if (std::ranges::any_of(instruction.inputs, is_input)) return true;
  return false;
}

}  // namespace

LoopWork compile_loop(const Scan& scan, const RegionQuery& query, Backend& backend,
                      const CompileOptions& options) {
  const ScanForm& form = scan.form();
  const Subgraph& graph = scan.body();
  LoopWork loop{.body = compile_body(scan, query, backend, options),
                .steps = form.steps,
                .reverse = form.reverse,
                .carries = form.carries};
  check_has_kernels(*loop.body, name_of(query.graph, query.region.nodes[0]));
  for (std::size_t i = 0; i < graph.operands(); ++i)
    loop.inputs.push_back({.is_stacked = scan.is_stacked(i),
                           .is_used = i < form.carries || reads_input(*loop.body, i),
                           .bytes = static_cast<std::size_t>(graph.operand_type(i).bytes())});
  for (std::size_t i = 0; i < scan.outputs(); ++i)
    loop.outputs.push_back({.is_stacked = i >= form.carries,
                            .is_used = is_computed(scan, query, i),
                            .bytes = static_cast<std::size_t>(graph.output_type(i).bytes())});
  return loop;
}

Candidate candidate_of(const LoopWork& loop, const RegionQuery& query) {
  const auto row_major = [&](Value value) { return Layout::row_major(query.type(value).shape.rank()); };
  Candidate candidate;
  candidate.seconds = static_cast<double>(loop.steps) * loop.body->estimates.seconds;
  candidate.implementation = fmt::format("{} times {} kernels, plan {:016x}", loop.steps,
                                         loop.body->instructions.size(), loop.body->plan_hash());
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    candidate.inputs.push_back(row_major(query.region.inputs[i]));
    candidate.reads.push_back(loop.inputs[i].is_used);
  }
  for (const Value output : query.region.outputs) candidate.outputs.push_back(row_major(output));
  return candidate;
}

}  // namespace plexaura
