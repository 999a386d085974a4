#include "tools/graph_parts/graph_page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/compile/compile.h"
#include "core/graph/print.h"
#include "core/graph/subgraph.h"

namespace plexaura {

namespace {

using nlohmann::json;

// Texts that occur many times are stored once, and are referred to by their number.
class TextTable {
 public:
  std::size_t number_of(const std::string& text) {
    const auto [found, is_new] = numbers_.emplace(text, numbers_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  json take() { return std::move(texts_); }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  json texts_ = json::array();
};

// Returns the graphs that an op holds, as text. Empty for most ops.
std::string bodies_of(const Op& op) {
  std::string text;
  const Description description = op.description();
  for (const auto& [key, value] : description.fields())
    if (const auto* body = std::get_if<std::shared_ptr<const Subgraph>>(&value))
      text += key + ":\n" + to_text((*body)->graph());
  return text;
}

// Returns one node: [op, label, scope, origin, options, types, inputs, saved outputs, is a gradient]. Texts are
// numbers of the table, and an input is [node, output].
json node_json(const NodeRecord& record, TextTable& texts) {
  const Leaf* leaf = as_leaf(*record.op);
  json types = json::array();
  for (const TensorType& type : record.types) types.push_back(texts.number_of(to_string(type)));
  json inputs = json::array();
  for (const Value input : record.inputs) inputs.push_back({input.node, input.output});
  return {texts.number_of(std::string(record.op->name())),
          texts.number_of(leaf != nullptr ? leaf->label() : std::string()),
          texts.number_of(record.origin.scope),
          texts.number_of(to_string(record.origin)),
          texts.number_of(to_string(record.op->description())),
          std::move(types),
          std::move(inputs),
          record.op->traits().saved_outputs,
          record.origin.is_gradient ? 1 : 0};
}

json graph_json(std::string_view name, const Graph& graph, TextTable& texts) {
  json nodes = json::array();
  json bodies = json::object();
  for (NodeId id = 0; id < graph.size(); ++id) {
    nodes.push_back(node_json(graph.record(id), texts));
    if (const std::string body = bodies_of(*graph.record(id).op); !body.empty())
      bodies[std::to_string(id)] = body;
  }
  json updates = json::array();
  for (const Update& update : graph.updates())
    updates.push_back({update.buffer.node, update.next.node, update.next.output});
  return {{"name", name},
          {"nodes", std::move(nodes)},
          {"bodies", std::move(bodies)},
          {"updates", std::move(updates)}};
}

// A piece of the arena, and the instructions between which it is occupied.
struct ArenaUse {
  std::optional<Value> value;  // empty: the workspace of the instruction `first`
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<ArenaUse> arena_uses(const Program& program) {
  std::vector<ArenaUse> uses;
  std::map<Value, std::size_t> written;
  for (std::size_t index = 0; index < program.instructions.size(); ++index) {
    const Instruction& instruction = program.instructions[index];
    for (const auto& input : instruction.inputs)
      if (input)
        if (const auto use = written.find(input->value); use != written.end()) uses[use->second].last = index;
    for (const auto& output : instruction.outputs) {
      if (!output || output->place.space != Place::Space::arena) continue;
      written[output->value] = uses.size();
      uses.push_back({output->value, output->place.offset,
                      static_cast<std::int64_t>(output->layout.bytes(output->type)), index, index});
    }
    if (instruction.workspace_bytes > 0 && instruction.workspace.space == Place::Space::arena)
      uses.push_back({{},
                      instruction.workspace.offset,
                      static_cast<std::int64_t>(instruction.workspace_bytes),
                      index,
                      index});
  }
  for (const Slot& output : program.outputs)
    if (const auto use = written.find(output.value); use != written.end() && !program.instructions.empty())
      uses[use->second].last = program.instructions.size() - 1;
  return uses;
}

json program_json(const Program& program, TextTable& texts) {
  json instructions = json::array();
  for (const std::vector<Instruction>* part : {&program.prologue, &program.instructions})
    for (const Instruction& instruction : *part)
      instructions.push_back({texts.number_of(instruction.implementation), instruction.nodes});
  json memory = json::array();
  for (const ArenaUse& use : arena_uses(program))
    memory.push_back({use.value ? json{use.value->node, use.value->output} : json(), use.offset, use.bytes,
                      use.first, use.last});
  return {{"backend", program.backend},          {"passes", program.passes},
          {"prologue", program.prologue.size()}, {"instructions", std::move(instructions)},
          {"memory", std::move(memory)},         {"arena", program.arena_bytes}};
}

// Returns JSON that may stand in a script of HTML: it contains no '<'.
std::string script_text(const json& data) {
  std::string text;
  for (const char letter : data.dump(-1, ' ', false, json::error_handler_t::replace))
    letter == '<' ? text += "\\u003c" : text += letter;
  return text;
}

}  // namespace

std::string graph_page(const ShownGraph& shown, Backend& backend, const std::string& title) {
  TextTable texts;
  json stages = json::array();
  const auto add = [&](std::string_view pass, const Graph& graph) {
    stages.push_back(graph_json(pass == "verify" ? "as built" : pass, graph, texts));
  };
  const auto program =
      compile(*shown.graph, shown.outputs, backend, {.apply_updates = false, .after_pass = add});
  add("program", *program->graph);
  json data{{"title", title}, {"stages", std::move(stages)}, {"program", program_json(*program, texts)}};
  data["texts"] = texts.take();
  std::string page(graph_page_template);
  constexpr std::string_view mark = "DATA_OF_THE_GRAPH";
  return page.replace(page.find(mark), mark.size(), script_text(data));
}

}  // namespace plexaura
