#include "core/compile/program.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/base/fnv.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

std::string place_text(const Place& place) {
  static constexpr std::array<const char*, 12> spaces{"arena",  "feed",     "constant", "prologue",
                                                      "value",  "gradient", "state",    "shadow",
                                                      "addend", "scaling",  "input",    "output"};
  const char* space = spaces.at(static_cast<std::size_t>(place.space));
  const bool has_index = place.space == Place::Space::state || place.space == Place::Space::input ||
                         place.space == Place::Space::output;
  return has_index ? fmt::format("{}{}+{}", space, place.index, place.offset)
                   : fmt::format("{}+{}", space, place.offset);
}

std::string slot_text(const std::optional<Slot>& slot) {
  if (!slot) return "-";
  return fmt::format("%{}.{} {} {} @{} {}B", slot->value.node, slot->value.output, to_string(slot->type),
                     to_string(slot->layout), place_text(slot->place), slot->layout.bytes(slot->type));
}

std::string indented(std::string_view text) {
  std::string result;
  for (const char letter : text.substr(0, text.find_last_not_of('\n') + 1))
    letter == '\n' ? result += "\n      " : result += letter;
  return result;
}

std::string instruction_text(const Instruction& instruction) {
  std::string text = fmt::format("{} [{}]", instruction.name, instruction.implementation);
  if (instruction.workspace_bytes > 0)
    text += fmt::format(" workspace {}B @{}", instruction.workspace_bytes, place_text(instruction.workspace));
  for (const auto& output : instruction.outputs) text += "\n    out " + slot_text(output);
  for (const auto& input : instruction.inputs) text += "\n    in  " + slot_text(input);
  if (const auto* loop = std::get_if<LoopWork>(&instruction.work))
    text += fmt::format("\n    in each of {} steps, the {}", loop->steps, indented(loop->body->to_text()));
  return text + "\n";
}

bool intersects(const std::optional<Slot>& slot, Place::Space space, std::int64_t begin, std::int64_t end) {
  if (!slot || slot->place.space != space) return false;
  return slot->place.offset < end && slot->place.offset + slot->layout.bytes(slot->type) > begin;
}

}  // namespace

Place::Space space_of(ArenaKind arena) {
  static constexpr std::array<Place::Space, 6> spaces{Place::Space::value,  Place::Space::gradient,
                                                      Place::Space::state,  Place::Space::shadow,
                                                      Place::Space::addend, Place::Space::scaling};
  return spaces.at(static_cast<std::size_t>(arena));
}

bool is_on_host(const Instruction& instruction) {
  return std::holds_alternative<CollectiveWork>(instruction.work) ||
         std::holds_alternative<HostWork>(instruction.work);
}

std::size_t Program::gradients_ready_after(std::int64_t offset_end) const {
  const std::int64_t end = placement.bytes_before(ArenaKind::gradient, offset_end);
  const auto is_below = [&](const std::optional<Slot>& slot) {
    return intersects(slot, Place::Space::gradient, 0, end);
  };
  for (std::size_t index = instructions.size(); index-- > 0;)
    if (std::ranges::any_of(instructions[index].outputs, is_below) ||
        std::ranges::any_of(instructions[index].inputs, is_below))
      return index + 1;
  return 0;
}

namespace {

std::size_t first_reader(const Program& program, ArenaKind arena, std::int64_t offset,
                         std::int64_t offset_end) {
  const Place::Space space = space_of(arena);
  const std::int64_t begin = program.placement.bytes_before(arena, offset);
  const std::int64_t end = program.placement.bytes_before(arena, offset_end);
  for (std::size_t index = 0; index < program.instructions.size(); ++index)
    for (const auto& input : program.instructions[index].inputs)
      if (intersects(input, space, begin, end)) return index;
  return program.instructions.size();
}

}  // namespace

std::size_t Program::first_use(std::int64_t offset, std::int64_t offset_end) const {
  const std::size_t index = first_reader(*this, ArenaKind::value, offset, offset_end);
  if (!placement.types.shadow) return index;
  return std::min(index, first_reader(*this, ArenaKind::shadow, offset, offset_end));
}

std::size_t Program::first_touch(std::int64_t offset, std::int64_t offset_end) const {
  const std::int64_t begin = placement.bytes_before(ArenaKind::gradient, offset);
  const std::int64_t end = placement.bytes_before(ArenaKind::gradient, offset_end);
  const auto is_inside = [&](const std::optional<Slot>& slot) {
    return intersects(slot, Place::Space::gradient, begin, end);
  };
  std::size_t index = 0;
  for (; index < instructions.size(); ++index)
    if (std::ranges::any_of(instructions[index].outputs, is_inside) ||
        std::ranges::any_of(instructions[index].inputs, is_inside))
      break;
  return std::min(index, first_use(offset, offset_end));
}

std::size_t Program::first_gradient_use(std::int64_t offset) const {
  return first_reader(*this, ArenaKind::gradient, offset, placement.gradient_count());
}

std::set<std::string> Program::ops_on_host() const {
  std::set<std::string> ops;
  for (const Instruction& instruction : instructions)
    if (std::holds_alternative<HostWork>(instruction.work))
      ops.emplace(graph->record(instruction.nodes[0]).op->name());
  return ops;
}

std::string Program::to_text() const {
  std::string text = fmt::format(
      "program on {}: {} instructions, {} reorders, arena {} bytes (lower bound {}), prologue {} bytes\n",
      backend, instructions.size(), reorders, arena_bytes, estimates.arena_lower_bound, prologue_bytes);
  for (const std::string& pass : passes) text += "pass " + pass + "\n";
  for (const Instruction& instruction : prologue) text += "prologue " + instruction_text(instruction);
  for (std::size_t index = 0; index < instructions.size(); ++index)
    text += fmt::format("{:4} {}", index, instruction_text(instructions[index]));
  return text;
}

std::uint64_t Program::plan_hash() const {
  std::uint64_t hash = fnv(plexaura::to_text(placement));
  for (const Instruction& instruction : instructions) {
    if (instruction.is_again) continue;
    for (const NodeId id : instruction.nodes) {
      hash = fnv(graph->record(id).op->name(), hash);
      hash = fnv(to_string(graph->record(id).op->description()), hash);
    }
    for (const auto& output : instruction.outputs)
      if (output) hash = fnv(to_string(output->type) + to_string(output->layout), hash);
    hash = fnv(instruction.implementation, hash);
  }
  return hash;
}

}  // namespace plexaura
