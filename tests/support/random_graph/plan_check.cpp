#include "tests/support/random_graph/plan_check.h"

#include <fmt/format.h>
#include <map>
#include <optional>

namespace plexaura::testing {

namespace {

bool is_planned(const Place& place) {
  return place.space == Place::Space::arena || place.space == Place::Space::prologue;
}

std::size_t bytes_of(const Slot& slot) { return static_cast<std::size_t>(slot.layout.bytes(slot.type)); }

// Says which value each byte of the arena and of the prologue holds.
class Memory {
 public:
  explicit Memory(const Program& program) : graph_(*program.graph) {}

  // Returns the sentence of the first operand that another value overwrites.
  std::string run(const Instruction& instruction) {
    std::string fault = read_all(instruction.inputs, instruction.name);
    write(instruction.workspace, instruction.workspace_bytes, {});
    if (fault.empty()) fault = read_all(instruction.inputs, instruction.name + " beside its workspace");
    for (const auto& output : instruction.outputs)
      if (output) write(output->place, bytes_of(*output), output->value);
    if (fault.empty()) fault = read_all(instruction.outputs, instruction.name + " beside its other outputs");
    if (fault.empty() && !holds_workspace(instruction))
      fault = fmt::format("{} writes an output into its workspace", instruction.name);
    return fault;
  }

  std::string read(const Slot& slot, const std::string& reader) const {
    const std::size_t bytes = bytes_of(slot);
    if (!is_planned(slot.place) || bytes == 0) return "";
    const std::size_t begin = static_cast<std::size_t>(slot.place.offset);
    for (const auto& [at, piece] : pieces(slot.place)) {
      if (at + piece.bytes <= begin || at >= begin + bytes) continue;
      if (!piece.value || source(*piece.value) != source(slot.value))
        return fmt::format(
            "{} reads %{}.{} at {}, where {} bytes at {} hold {}", reader, slot.value.node, slot.value.output,
            begin, piece.bytes, at,
            piece.value ? fmt::format("%{}.{}", piece.value->node, piece.value->output) : "a workspace");
    }
    return "";
  }

 private:
  struct Piece {
    std::size_t bytes;
    std::optional<Value> value;  // empty for a workspace
  };
  using Pieces = std::map<std::size_t, Piece>;

  std::string read_all(const std::vector<std::optional<Slot>>& slots, const std::string& reader) const {
    for (const auto& slot : slots) {
      std::string fault = slot ? read(*slot, reader) : "";
      if (!fault.empty()) return fault;
    }
    return "";
  }

  bool holds_workspace(const Instruction& instruction) const {
    if (instruction.workspace_bytes == 0) return true;
    const auto found =
        pieces(instruction.workspace).find(static_cast<std::size_t>(instruction.workspace.offset));
    return found != pieces(instruction.workspace).end() && !found->second.value;
  }

  Pieces& pieces(const Place& place) { return place.space == Place::Space::arena ? arena_ : prologue_; }
  const Pieces& pieces(const Place& place) const {
    return place.space == Place::Space::arena ? arena_ : prologue_;
  }

  // Views lie where their source or a reorder of it lies.
  Value source(Value value) const {
    const auto has_elements_of_input = [&] {
      const Op& op = *graph_.record(value.node).op;
      return op.traits().view || op.name() == "reorder";
    };
    while (has_elements_of_input()) value = graph_.record(value.node).inputs[0];
    return value;
  }

  void write(const Place& place, std::size_t bytes, std::optional<Value> value) {
    if (!is_planned(place) || bytes == 0) return;
    Pieces& known = pieces(place);
    const auto begin = static_cast<std::size_t>(place.offset);
    std::erase_if(known, [&](const auto& entry) {
      return entry.first < begin + bytes && entry.first + entry.second.bytes > begin;
    });
    known[begin] = {bytes, value};
  }

  const Graph& graph_;
  Pieces arena_;
  Pieces prologue_;
};

}  // namespace

std::string overwritten_value(const Program& program) {
  Memory memory(program);
  for (const auto* list : {&program.prologue, &program.instructions})
    for (const Instruction& instruction : *list) {
      std::string fault = memory.run(instruction);
      const auto* loop = std::get_if<LoopWork>(&instruction.work);
      if (fault.empty() && loop != nullptr) fault = overwritten_value(*loop->body);
      if (!fault.empty()) return fault;
    }
  for (const Slot& output : program.outputs) {
    std::string fault = memory.read(output, "the end of the program");
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace plexaura::testing
