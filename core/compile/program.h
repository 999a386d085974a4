#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/graph/graph.h"
#include "core/params/placement.h"

namespace plexaura {

// The address of a value. `offset` is in bytes from the beginning of its space.
struct Place {
  enum class Space : std::uint8_t {
    arena,     // intermediate values, at planned offsets
    feed,      // step block and inputs, in the feed slot of the run
    constant,  // constants, which are copied to the device once
    // Values that the prologue computes from parameters, buffers and constants, again after the store has
    // changed.
    prologue,
    value,  // arenas of the parameter store: `value` to `scaling`
    gradient,
    state,
    shadow,
    addend,
    scaling,
    input,  // in the body of a loop: an operand of the loop's instruction
    output
  };
  Space space = Space::arena;
  std::int64_t index = 0;  // number of the state arena, the input or the output
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

Place::Space space_of(ArenaKind arena);

struct Program;

// An operand of an instruction: what it is and where it lies.
struct Slot {
  Value value;
  TensorType type;
  Layout layout;
  Place place;
};

// A kernel of the backend, which the device runs.
struct KernelWork {
  std::shared_ptr<const Kernel> kernel;
};

// A sum over ranks. The host computes it on a copy of the value.
struct CollectiveWork {};

// An op for which the backend has no kernel. The host runs the op's reference kernel on row-major copies of
// the operands.
struct HostWork {
  std::shared_ptr<const Kernel> kernel;  // the reference kernel, which reads and writes host addresses
};

// An operand of a loop.
struct LoopOperand {
  bool is_stacked = false;  // true if each step uses one element along axis 0
  bool is_used = false;     // false if the body neither reads nor writes the operand
  std::size_t bytes = 0;    // number of bytes that a step uses
};

// A program that runs in each step of a loop: the loop's body. The body reads and writes the operands of the
// loop's instruction. The memory of the body lies in the workspace of that instruction: see LoopMemory. The
// prologue of the body runs once, before the first step.
struct LoopWork {
  std::shared_ptr<const Program> body;
  std::int64_t steps = 0;
  bool reverse = false;
  std::size_t carries = 0;  // number of the first inputs and outputs that are carried from step to step
  std::vector<LoopOperand> inputs = {};
  std::vector<LoopOperand> outputs = {};
  Place constants = {};  // place of the body's constants
};

// The work of an instruction: a kernel, a sum over ranks, an op that the host computes, or a loop.
using InstructionWork = std::variant<KernelWork, CollectiveWork, HostWork, LoopWork>;

struct Instruction {
  std::string name;            // such as "conv2d %7 of models/resnet50.yaml:3:3 (conv1)"
  std::string implementation;  // Candidate::implementation of the kernel
  std::vector<NodeId> nodes;   // the node, or the nodes of a region
  InstructionWork work;
  std::vector<std::optional<Slot>> inputs;   // empty for an input that the kernel does not read
  std::vector<std::optional<Slot>> outputs;  // empty for an output that nothing reads
  std::size_t workspace_bytes = 0;
  Place workspace;
  bool is_again = false;  // true: an earlier instruction computes the same, and its values were freed
};

// Returns true for a sum over ranks and for an op that the host computes.
bool is_on_host(const Instruction& instruction);

// The cost of a program.
struct ProgramEstimates {
  std::size_t arena_lower_bound = 0;  // the least arena that any plan of these instructions needs
  // The size that the arena would have without CompileOptions::memory_limit.
  std::size_t unlimited_arena_bytes = 0;
  double seconds = 0;        // estimated seconds of all instructions of a run; the prologue does not count
  double seconds_again = 0;  // estimated seconds of the instructions with Instruction::is_again
};

// The result of compile(): immutable, shared by any number of VMs in any threads. The backend that it was
// compiled for must outlive it.
struct PLEXAURA_API Program {
  struct Feed {
    std::string name;
    TensorType type;
    std::int64_t offset;  // offset in the feed slot, in bytes
  };

  std::unique_ptr<const Graph> graph;  // the graph after all passes, with reorders
  std::vector<std::string> passes;     // one line for each pass, in order
  std::vector<Instruction> prologue;   // instructions that run again only if the store's version has changed
  std::vector<Instruction> instructions;
  std::vector<Feed> feeds;
  // The inputs of the graph that no output needs. A run may be given them or not.
  std::vector<std::string> unread_inputs;
  std::vector<Slot> outputs;  // outputs that VM::output reads, in the order of ProgramOutputs without a place
  // All computed values of the user's graph, with their places; only with keep_all.
  std::map<Value, Slot> kept;
  std::vector<std::byte> constants;
  std::size_t feed_bytes = 0;
  std::size_t arena_bytes = 0;  // size of the arena
  std::size_t prologue_bytes = 0;
  Placement placement;  // the placement that compile() was given or has made
  std::size_t reorders = 0;
  std::string backend;
  ProgramEstimates estimates;

  // Returns 1 + the index of the last instruction that reads or writes the gradient arena below element
  // `offset_end`; 0 if there is none.
  std::size_t gradients_ready_after(std::int64_t offset_end) const;
  // Returns the index of the first instruction that reads this range of elements of the value arena or of its
  // shadow; instructions.size() if there is none.
  std::size_t first_use(std::int64_t offset, std::int64_t offset_end) const;
  // Returns the index of the first instruction that reads values of this range, as first_use() does, or that reads or
  // writes the gradients of this range.
  std::size_t first_touch(std::int64_t offset, std::int64_t offset_end) const;
  // Returns the index of the first instruction that reads the gradient arena at or after element `offset`;
  // instructions.size() if there is none.
  std::size_t first_gradient_use(std::int64_t offset) const;

  // Returns the names of the ops that the host computes because the backend has no kernel for them.
  std::set<std::string> ops_on_host() const;

  // Returns the passes and all instructions as text: op, source line, kernel, shapes, layouts and addresses.
  std::string to_text() const;
  // Returns a hash of the placement, and of each instruction's ops, output types, layouts and kernel, in
  // order. It is equal on all ranks that compute the same. Instructions that run again do not count.
  std::uint64_t plan_hash() const;
};

}  // namespace plexaura
