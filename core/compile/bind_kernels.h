#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/compile/compile.h"
#include "core/compile/loop_memory.h"
#include "core/compile/passes.h"
#include "core/device/backend.h"

namespace plexaura {

// A value's home outside the arena, and the layout it must have there. Exactly one of the first four is set.
struct Target {
  // The value is written to the gradient arena, as the gradient of this parameter or buffer.
  std::string gradient_of;
  std::optional<TailSlot> tail;  // the value is written to this slot of the tail of the gradient arena
  // In the body of a loop: the output of the loop's instruction to which the value is written.
  std::optional<std::size_t> output = {};
  std::optional<Value> updated_leaf = {};  // the value is written to this buffer or arena slice
  Layout layout = {};
};

// An instruction without addresses. compile() adds the addresses after it has planned memory.
struct BoundInstruction {
  Region region;
  Candidate candidate;
  InstructionWork work;
  std::vector<Value> inputs;
  std::vector<bool> wanted;  // one for each output: true if a node or a root reads it
  bool prologue = false;
  bool is_again = false;  // true: an earlier instruction computes the same; see recompute.h

  bool reads(std::size_t input) const { return candidate.reads.empty() || candidate.reads[input]; }
  // Returns the bytes of scratch memory on the device. A host call needs none.
  std::size_t workspace() const {
    if (const auto* loop = std::get_if<LoopWork>(&work)) return LoopMemory(*loop).bytes();
    const auto* kernel_work = std::get_if<KernelWork>(&work);
    return kernel_work == nullptr ? 0 : kernel_work->kernel->workspace();
  }
};

// A graph in which every value has a layout and every region an instruction.
struct Lowered {
  std::unique_ptr<Graph> graph;  // the graph, with the reorders that were added
  std::vector<Value> roots;      // the values that the caller wants to read, in the order of the request
  // The instructions in the order in which they run. Instructions of the prologue have their flag set.
  std::vector<BoundInstruction> steps;
  std::map<Value, Layout> layouts;
  std::map<Value, Value> alias_of;  // maps a view to the value whose memory it reads
  // A cast of a parameter -> the parameter, if the store's shadow has the cast value.
  std::map<Value, Value> shadows;
  std::map<Value, Target> targets;                  // maps values that a kernel writes directly to their home
  std::map<std::string, Value> stored;              // parameters and buffers that the graph uses, by name
  std::map<std::string, Layout> parameter_layouts;  // layouts of parameters and buffers, by name
  std::size_t reorders = 0;

  Value storage_of(Value value) const;  // follows views to the value that owns the memory
  // Returns the same program with a graph of its own.
  Lowered copy() const {
    return {.graph = plexaura::copy(*graph, roots).graph,
            .roots = roots,
            .steps = steps,
            .layouts = layouts,
            .alias_of = alias_of,
            .shadows = shadows,
            .targets = targets,
            .stored = stored,
            .parameter_layouts = parameter_layouts,
            .reorders = reorders};
  }
};

struct BindRequest {
  PassGraph graph;
  std::vector<std::pair<Value, Target>> gradient_targets;  // bind_kernels() fills in the layouts
  const Placement* placement;
  bool fuse;
  bool prologue;                     // true if the prologue may compute values that depend on the store alone
  Tuner* tuner;                      // measures kernels; null: estimates choose the kernels
  bool strict = false;               // throws UserError for an op that the host would compute
  std::optional<DType> shadow = {};  // the dtype of the store's second copy of the parameters, if it has one
  // The operands of a loop's body that are the same in each step: see CompileOptions.
  std::vector<bool> same_operands = {};
  std::int64_t steps = 0;  // the number of steps of the loop, if the graph is a loop's body
};

// Visits the regions in order, and takes for each the candidate that is cheapest together with the reorders
// that it needs. Estimates choose the layouts of a region's outputs. Among the candidates with these layouts,
// the tuner's times choose the kernel.
Lowered bind_kernels(BindRequest request, Backend& backend);

}  // namespace plexaura
