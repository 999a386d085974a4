#include "tests/support/check_program.h"

#include <fmt/format.h>
#include <map>

namespace plexaura::testing {

namespace {

// Owners of memory that are no instructions.
constexpr std::size_t nobody = static_cast<std::size_t>(-1);
constexpr std::size_t workspace = nobody - 1;  // of the instruction that runs
constexpr std::size_t cell = 64;               // bytes; everything in an arena begins at a multiple of this

class ArenaWalk {
 public:
  explicit ArenaWalk(const Program& program)
      : program_(program), writer_((program.arena_bytes + cell - 1) / cell, nobody) {}

  std::string run() && {
    for (std::size_t index = 0; index < program_.instructions.size(); ++index) {
      const Instruction& instruction = program_.instructions[index];
      own(instruction.workspace, instruction.workspace_bytes, workspace);
      for (const auto& input : instruction.inputs)
        if (input) read(*input, instruction.name);
      for (const auto& output : instruction.outputs)
        if (output) write(*output, index);
      own(instruction.workspace, instruction.workspace_bytes, nobody);
    }
    for (const Slot& output : program_.outputs) read(output, "an output");
    return std::move(complaints_);
  }

 private:
  static std::size_t bytes_of(const Slot& slot) {
    return static_cast<std::size_t>(slot.layout.bytes(slot.type));
  }

  template <class F>
  void each_cell(const Place& place, std::size_t bytes, F&& f) {
    if (place.space != Place::Space::arena || bytes == 0) return;
    const auto begin = static_cast<std::size_t>(place.offset);
    if (begin % cell != 0 || begin + bytes > program_.arena_bytes) {
      complaints_ += fmt::format("{} bytes at {} are not in the arena\n", bytes, begin);
      return;
    }
    for (std::size_t i = begin / cell; i < (begin + bytes + cell - 1) / cell; ++i) f(writer_[i]);
  }

  void own(const Place& place, std::size_t bytes, std::size_t writer) {
    each_cell(place, bytes, [&](std::size_t& owner) { owner = writer; });
  }

  // An output may lie where an input was. It must not overlap another output of the instruction, or its workspace.
  void write(const Slot& output, std::size_t instruction) {
    bool overlaps = false;
    each_cell(output.place, bytes_of(output), [&](std::size_t& owner) {
      overlaps |= owner == workspace || owner == instruction;
      owner = instruction;
    });
    made_by_[output.value] = instruction;
    if (overlaps)
      complaints_ += fmt::format("{} writes %{} over its workspace or another output\n",
                                 program_.instructions[instruction].name, output.value.node);
  }

  // Returns true if the instruction has computed the value. Also returns true if the value is a view of one
  // that the instruction has computed or reordered.
  bool made(Value value, std::size_t instruction) const {
    if (instruction >= program_.instructions.size()) return false;
    while (!made_by_.contains(value)) {
      const NodeRecord& record = program_.graph->record(value.node);
      if (!record.op->traits().view) return false;
      value = record.inputs[0];
      const NodeRecord& maker = program_.graph->record(program_.instructions[instruction].nodes.back());
      if (maker.op->name() == "reorder" && maker.inputs[0] == value) return true;
    }
    return made_by_.at(value) == instruction;
  }

  void read(const Slot& slot, const std::string& reader) {
    bool whole = true;
    std::size_t found = nobody;
    each_cell(slot.place, bytes_of(slot), [&](std::size_t owner) {
      if (made(slot.value, owner)) return;
      whole = false;
      found = owner;
    });
    if (whole) return;
    complaints_ += fmt::format("{} reads %{}, whose memory was last written by {}\n", reader, slot.value.node,
                               found < program_.instructions.size() ? program_.instructions[found].name
                               : found == workspace                 ? "its workspace"
                                                                    : "nobody");
  }

  const Program& program_;
  std::vector<std::size_t> writer_;  // by cell
  std::map<Value, std::size_t> made_by_;
  std::string complaints_;
};

}  // namespace

std::string check_arena(const Program& program) { return ArenaWalk(program).run(); }

}  // namespace plexaura::testing
