#include "core/vm/explain.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "core/graph/uses.h"

namespace plexaura {

namespace {

// Returns "relu" or, for a leaf with a name, "parameter fc.weight".
std::string title_of(const NodeRecord& record) {
  const Leaf* leaf = as_leaf(*record.op);
  const bool is_named = leaf != nullptr && !leaf->label().empty();
  return is_named ? fmt::format("{} {}", record.op->name(), leaf->label()) : std::string(record.op->name());
}

// Returns "a", "a and b" or "a, b and c".
std::string enumeration(std::vector<std::string> words) {
  if (words.empty()) return "";
  const std::string last = std::move(words.back());
  words.pop_back();
  return words.empty() ? last : fmt::format("{} and {}", fmt::join(words, ", "), last);
}

std::string words_of_input(const Graph& graph, Value value) {
  const NodeRecord& record = graph.record(value.node);
  const std::string output = record.types.size() == 1 ? "" : fmt::format("output {} of ", value.output);
  return fmt::format("{}%{} ({}, {})", output, value.node, title_of(record), to_string(graph.type(value)));
}

std::string what_it_is(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  const std::string title = title_of(record);
  const bool starts_with_vowel = std::string_view("aeiou").find(title[0]) != std::string_view::npos;
  std::string text = fmt::format("%{} is {} {}", id, starts_with_vowel ? "an" : "a", title);
  std::vector<std::string> types;
  for (const TensorType& type : record.types) types.push_back(to_string(type));
  if (as_leaf(*record.op) != nullptr) return text + fmt::format(" of type {}.", enumeration(types));
  const std::string options = to_string(record.op->description());
  if (!options.empty()) text += " with " + options;
  std::vector<std::string> inputs;
  for (const Value input : record.inputs) inputs.push_back(words_of_input(graph, input));
  text += fmt::format(". It computes {}", enumeration(types));
  return text + (inputs.empty() ? "." : fmt::format(" from {}.", enumeration(inputs)));
}

std::string readers_of(const Graph& graph, const Uses& uses, Value value) {
  std::vector<std::string> readers;
  for (const NodeId reader : uses.readers(value)) {
    std::string text = fmt::format("%{} ({})", reader, title_of(graph.record(reader)));
    if (std::ranges::find(readers, text) == readers.end()) readers.push_back(std::move(text));
  }
  return readers.empty() ? "no node" : enumeration(readers);
}

std::string who_reads_it(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  const std::size_t outputs = record.types.size();
  const auto kept = outputs - static_cast<std::size_t>(record.op->traits().saved_outputs);
  const Uses uses(graph, {});
  std::string text;
  for (std::uint32_t output = 0; output < outputs; ++output)
    text += fmt::format(" {} is {}read by {}.", outputs == 1 ? "It" : fmt::format("Output {}", output),
                        output >= kept ? "saved for the gradient, and " : "",
                        readers_of(graph, uses, {id, output}));
  for (const Update& update : graph.updates()) {
    if (update.next.node == id)
      text += fmt::format(" After a run it is the value of %{} ({}).", update.buffer.node,
                          title_of(graph.record(update.buffer.node)));
    if (update.buffer.node == id)
      text += fmt::format(" After a run it has the value of %{}.", update.next.node);
  }
  return text;
}

bool has_same_place(const Origin& a, const Origin& b) {
  return a.file == b.file && a.line == b.line && a.column == b.column && a.scope == b.scope &&
         a.is_gradient == b.is_gradient;
}

// Returns the nodes of a graph that cannot be told apart from `record` without their inputs, in order.
std::vector<NodeId> nodes_like(const Graph& graph, const NodeRecord& record) {
  std::vector<NodeId> found;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& other = graph.record(id);
    if (has_same_place(other.origin, record.origin) && other.types == record.types && *other.op == *record.op)
      found.push_back(id);
  }
  return found;
}

std::string work_text(const Instruction& instruction) {
  if (std::holds_alternative<LoopWork>(instruction.work))
    return fmt::format("a loop of {} steps", std::get<LoopWork>(instruction.work).steps);
  if (std::holds_alternative<CollectiveWork>(instruction.work)) return "a sum over ranks by the host";
  if (std::holds_alternative<HostWork>(instruction.work))
    return "the host, because the backend has no kernel for it,";
  return fmt::format("the kernel {}", instruction.implementation);
}

// Returns the sentence about the instruction that computes node `id` of the program. Returns an empty text if
// no instruction computes it.
std::string sentence_of_instruction(const Program& program, const std::vector<Instruction>& instructions,
                                    NodeId id, std::string_view part) {
  for (std::size_t index = 0; index < instructions.size(); ++index) {
    const Instruction& instruction = instructions[index];
    if (std::ranges::find(instruction.nodes, id) == instruction.nodes.end()) continue;
    std::vector<std::string> others;
    for (const NodeId other : instruction.nodes)
      if (other != id) others.push_back(title_of(program.graph->record(other)));
    return fmt::format(" In the program on {}, {} computes it{}{}, as instruction {}{}.", program.backend,
                       work_text(instruction), others.empty() ? "" : " together with ", enumeration(others),
                       index, part);
  }
  return "";
}

std::string place_in_program(const Program& program, NodeId id) {
  for (const std::string& text :
       {sentence_of_instruction(program, program.prologue, id,
                                " of the prologue, which runs again only after parameters have changed"),
        sentence_of_instruction(program, program.instructions, id, "")})
    if (!text.empty()) return text;
  return fmt::format(" The program on {} reads it where it lies, without an instruction.", program.backend);
}

}  // namespace

std::string explain(const Node& node) {
  const Graph& graph = node.graph();
  const std::string place = to_string(graph.record(node.id()).origin);
  return fmt::format("{} It was made at {}.{}", what_it_is(graph, node.id()), place,
                     who_reads_it(graph, node.id()));
}

std::string explain(const Node& node, const Program& program) {
  const NodeRecord& record = node.graph().record(node.id());
  const std::vector<NodeId> before = nodes_like(node.graph(), record);
  const std::vector<NodeId> after = nodes_like(*program.graph, record);
  std::string text = explain(node);
  if (after.empty())
    return text + fmt::format(
                      " The program on {} has no such node: no output needs it, an equal node replaces "
                      "it, or it was folded into a constant.",
                      program.backend);
  if (after.size() != before.size())
    return text + fmt::format(
                      " The graph has {} such nodes of this place, and the program on {} has {}, so it "
                      "is unknown which of them it has become.",
                      before.size(), program.backend, after.size());
  const auto index = std::ranges::find(before, node.id()) - before.begin();
  return text + place_in_program(program, after[static_cast<std::size_t>(index)]);
}

}  // namespace plexaura
