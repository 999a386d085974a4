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

// Where a value lies. `offset` is in bytes from the base of its space.
struct Place {
  enum class Space : std::uint8_t {
    arena,     // intermediate values, planned
    feed,      // step block and inputs, in the slot that the run is fed from
    constant,  // uploaded once
    prologue,  // computed from parameters alone, kept until they change
    value,     // the store's arenas
    gradient,
    state,
    shadow,
    addend,
    scaling
  };
  Space space = Space::arena;
  std::int64_t index = 0;  // which state arena
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

Place::Space space_of(ArenaKind arena);

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

// An op for which the backend has no kernel. The host runs the op's reference kernel on row-major copies of the operands.
struct HostWork {
  std::shared_ptr<const Kernel> kernel;  // takes host addresses
};

// How an instruction is carried out.
using InstructionWork = std::variant<KernelWork, CollectiveWork, HostWork>;

struct Instruction {
  std::string name;            // "conv2d %7 of models/resnet50.yaml:3:3 (conv1)"
  std::string implementation;  // of the candidate
  std::vector<NodeId> nodes;   // one, or those of a region
  InstructionWork work;
  std::vector<std::optional<Slot>> inputs;   // nothing for an input that the kernel does not read
  std::vector<std::optional<Slot>> outputs;  // nothing for an output that nobody wants
  std::size_t workspace_bytes = 0;
  Place workspace;
};

// What compile makes of a graph: immutable, shared by any number of VMs in any threads. The backend that it
// was compiled for must outlive it.
struct PLEXAURA_API Program {
  struct Feed {
    std::string name;
    TensorType type;
    std::int64_t offset;  // in the feed slot
  };

  std::unique_ptr<const Graph> graph;  // after the passes, reorders included
  std::vector<std::string> passes;     // what each did, in order
  std::vector<Instruction> prologue;   // rerun when the store's version changed
  std::vector<Instruction> instructions;
  std::vector<Feed> feeds;
  // Of the graph, which the outputs do not need: they may be fed or not.
  std::vector<std::string> unread_inputs;
  std::vector<Slot> outputs;   // the readable ones, in the order in which they were asked for
  std::map<Value, Slot> kept;  // keep_all: the values of the user's graph that are computed
  std::vector<std::byte> constants;
  std::size_t feed_bytes = 0;
  std::size_t arena_bytes = 0;        // the plan's peak: what the process really uses
  std::size_t arena_lower_bound = 0;  // no plan can need less
  std::size_t prologue_bytes = 0;
  Placement placement;  // given, or made here
  std::size_t reorders = 0;
  std::string backend;

  // The index of the instruction behind which nothing reads or writes below `offset_end` elements of the
  // gradient arena any more, plus one.
  std::size_t gradients_ready_after(std::int64_t offset_end) const;
  // The index of the first instruction that reads the value arena or its shadow in this range; instructions.size() if none.
  std::size_t first_use(std::int64_t offset, std::int64_t offset_end) const;
  // The same for what also reads or writes the gradients of this range.
  std::size_t first_touch(std::int64_t offset, std::int64_t offset_end) const;
  // The index of the first instruction that reads the gradient arena at or behind `offset`;
  // instructions.size() if none.
  std::size_t first_gradient_use(std::int64_t offset) const;

  // Returns the names of the ops that the host computes because the backend has no kernel for them.
  std::set<std::string> ops_on_host() const;

  // Instruction, op, shapes, layout, arena offset, bytes, source line.
  std::string to_text() const;
  // Names, shapes, layouts, order, choices: equal on all ranks that compute the same.
  std::uint64_t plan_hash() const;
};

}  // namespace plexaura
