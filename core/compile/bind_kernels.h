#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/compile/compile.h"
#include "core/compile/passes.h"
#include "core/device/backend.h"

namespace plexaura {

// A value's home outside the arena, and the layout it must have there. Exactly one of the first three is set.
struct Target {
  std::string gradient_of;                 // the gradient arena, at this parameter or buffer
  std::optional<TailSlot> tail;            // the gradient arena, behind all parameters
  std::optional<Value> updated_leaf = {};  // where this buffer or arena slice lies
  Layout layout = {};
};

// An instruction before it has addresses.
struct BoundInstruction {
  Region region;
  Candidate candidate;
  InstructionWork work;
  std::vector<Value> inputs;
  std::vector<bool> wanted;  // per output
  bool prologue = false;

  bool reads(std::size_t input) const { return candidate.reads.empty() || candidate.reads[input]; }
  // Returns the bytes of scratch memory on the device.
  std::size_t workspace() const {
    const auto* kernel_work = std::get_if<KernelWork>(&work);
    return kernel_work == nullptr ? 0 : kernel_work->kernel->workspace();
  }
};

// A graph in which every value has a layout and every region an instruction.
struct Lowered {
  std::unique_ptr<Graph> graph;         // reorders were appended
  std::vector<Value> roots;             // as asked for
  std::vector<BoundInstruction> steps;  // in order; those of the prologue are marked
  std::map<Value, Layout> layouts;
  std::map<Value, Value> alias_of;                  // a view -> what it is a view of
  std::map<Value, Value> shadows;                   // a cast that the shadow holds -> the parameter
  std::map<Value, Target> targets;                  // values written straight to their home
  std::map<std::string, Value> stored;              // parameters and buffers in use
  std::map<std::string, Layout> parameter_layouts;  // theirs
  std::size_t reorders = 0;

  Value storage_of(Value value) const;  // the value whose memory this one lies in, views followed
};

struct BindRequest {
  PassGraph graph;
  std::vector<std::pair<Value, Target>> gradient_targets;  // layouts are filled in by the binding
  const Placement* placement;
  bool fuse;
  bool prologue;                     // steps that depend on parameters alone may be taken out of the program
  Tuner* tuner;                      // null: estimates
  bool strict = false;               // throws UserError for an op that the host would compute
  std::optional<DType> shadow = {};  // in which the store has a copy of the parameters
};

// The forward walk: for each region the cheapest candidate plus the reorders that it needs. Estimates choose
// the layouts of what a region gives, and the tuner the kernel among those that give these layouts.
Lowered bind_kernels(BindRequest request, Backend& backend);

}  // namespace plexaura
