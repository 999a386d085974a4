#include "onnx/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "onnx/format/inline_functions.h"
#include "onnx/format/tensor_data.h"
#include "onnx/ops/graph_builder.h"
#include "onnx/ops/uses.h"

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura::onnx {

namespace {

constexpr std::uint64_t largest_file = std::uint64_t{1} << 31;
constexpr std::int64_t newest_opset = 20;

// A file without a folder in its path is in the current one.
std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

// Returns a graph and the graphs within its nodes.
std::vector<const GraphProto*> graphs_within(const GraphProto& graph) {
  std::vector<const GraphProto*> found{&graph};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const NodeProto& node : found[i]->nodes)
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.graph) found.push_back(attribute.graph.get());
  return found;
}

// Returns a name that a store accepts, unlike all in `taken`.
std::string parameter_name(std::string name, std::set<std::string>& taken) {
  for (char& letter : name)
    if (!is_parameter_name(std::string_view(&letter, 1))) letter = '_';
  if (name.empty()) name.push_back('_');
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  return unique;
}

}  // namespace

struct FileModel::FileParameter {
  std::string name;
  const TensorProto* proto = nullptr;
  std::unique_ptr<Parameter> parameter;
};

// The bytes of a file, to which its description refers.
struct ParsedFile {
  std::string bytes;
  ModelProto proto;
};

struct FileModel::Contents {
  std::shared_ptr<ParsedFile> parsed = std::make_shared<ParsedFile>();
  ModelProto& proto = parsed->proto;
  std::vector<const GraphProto*> graphs;  // the graph of the model, and the graphs within it
  FileFacts facts;
  std::vector<InputFacts> inputs;
  DType dtype = DType::float32;
  std::vector<FileParameter> parameters;
  std::vector<std::pair<const TensorProto*, Tensor>> constants;

  explicit Contents(FileFacts of_file, std::string of_model) : facts(std::move(of_file)) {
    parsed->bytes = std::move(of_model);
  }
  void parse();
  void check_version() const;
  void read_inputs();
  void sort_initialisers();
  // Returns an initialiser with the values of a tensor. It keeps the contents of the file alive.
  Initialiser values_of(const TensorProto& tensor) const;
};

void FileModel::Contents::parse() {
  try {
    proto = parse_model(parsed->bytes);
    check_version();
    inline_functions(proto);
    graphs = graphs_within(proto.graph);
    if (std::ranges::any_of(graphs, &GraphProto::has_sparse))
      throw UserError("it has sparse initialisers, which are not supported");
    facts.opsets = proto.opsets;
    read_inputs();
    sort_initialisers();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", facts.file, error.what()));
  }
  check_ops(proto.graph, facts);
}

void FileModel::Contents::check_version() const {
  if (proto.opsets.empty())
    throw UserError("it is no ONNX model, for it names no version of the standard's ops");
  const auto check = [](std::string_view what, const OpsetVersions& opsets) {
    const auto found = opsets.find("");
    if (found != opsets.end() && (found->second < 1 || found->second > newest_opset))
      throw UserError(
          fmt::format("{} uses version {} of the standard's ops, but versions 1 to {} are supported; export "
                      "it with one of them",
                      what, found->second, newest_opset));
  };
  check("it", proto.opsets);
  for (const FunctionProto& function : proto.functions)
    check(fmt::format("its function '{}'", function.name), function.opsets);
}

void FileModel::Contents::read_inputs() {
  std::set<std::string_view> initialised;
  for (const TensorProto& tensor : proto.graph.initialisers) initialised.insert(tensor.name);
  for (const ValueProto& input : proto.graph.inputs) {
    if (initialised.contains(input.name)) continue;
    if (input.type == ElementType::undefined)
      throw UserError(fmt::format("the input '{}' is no tensor; only tensors are supported", input.name));
    inputs.push_back({input.name, dtype_of(input.type), input.extents, input.has_shape});
  }
}

void FileModel::Contents::sort_initialisers() {
  const std::map<std::string, ValueUses> all_uses = uses_of_values(proto.graph);
  const auto uses_of = [&](const TensorProto& tensor) {
    const auto found = all_uses.find(tensor.name);
    return found == all_uses.end() ? ValueUses() : found->second;
  };
  const auto is_wanted = [&](const TensorProto& tensor) {
    const ValueUses uses = uses_of(tensor);
    return is_floating(dtype_of(tensor.type)) && !tensor.extents.empty() && !uses.is_needed_early &&
           (uses.has_gradient || uses.is_moment);
  };
  std::vector<const TensorProto*> initialisers;
  std::map<DType, std::int64_t> elements;
  for (const GraphProto* graph : graphs) {
    std::set<std::string_view> names;
    for (const TensorProto& tensor : graph->initialisers) {
      if (!names.insert(tensor.name).second)
        throw UserError(
            fmt::format("it has two initialisers with the name '{}'; names must differ", tensor.name));
      const TensorType type = checked_type_of(tensor, facts.folder);
      if (is_wanted(tensor)) elements[type.dtype] += type.shape.elements();
      initialisers.push_back(&tensor);
    }
  }
  const auto most = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  if (most != elements.end()) dtype = most->first;

  std::set<std::string> taken;
  for (const TensorProto* tensor : initialisers) {
    if (!is_wanted(*tensor) || dtype_of(tensor->type) != dtype) {
      constants.emplace_back(tensor, read_tensor(*tensor, facts.folder));
      continue;
    }
    const ParameterRole role = uses_of(*tensor).is_moment ? ParameterRole::buffer : ParameterRole::trainable;
    parameters.push_back({parameter_name(tensor->name, taken), tensor,
                          std::make_unique<Parameter>(type_of(*tensor).shape, values_of(*tensor), role)});
  }
}

Initialiser FileModel::Contents::values_of(const TensorProto& tensor) const {
  return Initialiser::given([parsed = parsed, tensor = &tensor, file = facts.file, folder = facts.folder] {
    try {
      return read_tensor(*tensor, folder);
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", file, error.what()));
    }
  });
}

FileModel::FileModel(const std::filesystem::path& file)
    : contents_(std::make_unique<Contents>(FileFacts{file.string(), folder_of(file), {}},
                                           read_text_file(file, largest_file))) {
  contents_->parse();
}

FileModel::FileModel(std::string bytes, const std::string& name)
    : contents_(std::make_unique<Contents>(FileFacts{name, {}, {}}, std::move(bytes))) {
  contents_->parse();
}

FileModel::FileModel(FileModel&&) noexcept = default;
FileModel& FileModel::operator=(FileModel&&) noexcept = default;
FileModel::~FileModel() = default;

const std::vector<InputFacts>& FileModel::inputs() const { return contents_->inputs; }
DType FileModel::file_dtype() const { return contents_->dtype; }

std::vector<std::string> FileModel::outputs() const {
  std::vector<std::string> names;
  for (const ValueProto& output : contents_->proto.graph.outputs) names.push_back(output.name);
  return names;
}

std::vector<std::string> FileModel::parameter_names() const {
  std::vector<std::string> names;
  for (const FileParameter& parameter : contents_->parameters) names.push_back(parameter.name);
  return names;
}

void FileModel::members(MemberVisitor& visit) {
  for (const FileParameter& parameter : contents_->parameters) visit(parameter.name, *parameter.parameter);
}

ParameterStore FileModel::make_store() { return plexaura::make_store(*this, contents_->dtype); }

void FileModel::require_named() const {
  if (!contents_->parameters.empty() && dtype() != contents_->dtype)
    throw UserError(
        fmt::format("{}: its parameters are {}, but the model was named with the dtype {}; name it with "
                    "make_store() of the model",
                    contents_->facts.file, name_of(contents_->dtype), name_of(dtype())));
}

std::vector<Node> FileModel::operator()(Graph& graph, const NamedNodes& inputs) const {
  require_named();
  NamedNodes values;
  std::vector<std::string> known;
  for (const InputFacts& input : contents_->inputs) {
    known.push_back(input.name);
    const auto found = inputs.find(input.name);
    if (found == inputs.end())
      throw UserError(fmt::format("{}: the input '{}' is missing", contents_->facts.file, input.name));
    if (found->second.dtype() != input.dtype)
      throw UserError(fmt::format("{}: the input '{}' must be {}, not {}", contents_->facts.file, input.name,
                                  name_of(input.dtype), name_of(found->second.dtype())));
    values.insert(*found);
  }
  for (const auto& [name, node] : inputs)
    if (!values.contains(name))
      throw UserError(fmt::format("{}: there is no input '{}'{}", contents_->facts.file, name,
                                  did_you_mean(name, known)));
  InitialiserNodes initialisers;
  for (const FileParameter& parameter : contents_->parameters)
    initialisers[parameter.proto] = parameter.parameter->in(graph);
  for (const auto& [tensor, value] : contents_->constants) initialisers[tensor] = graph.constant(value);
  return build_graph(graph, contents_->proto.graph, std::move(values), initialisers, contents_->facts);
}

Node FileModel::operator()(Operand x) const {
  const auto call = enter(x);
  if (contents_->inputs.size() != 1)
    throw UserError(fmt::format("{}: it has {} inputs; pass them by name", contents_->facts.file,
                                contents_->inputs.size()));
  const std::vector<Node> results = (*this)(x.node().graph(), {{contents_->inputs[0].name, x.node()}});
  if (results.empty()) throw UserError(fmt::format("{}: it has no outputs", contents_->facts.file));
  return results[0];
}

std::vector<std::string> FileModel::inputs_of(std::string_view value) const {
  const std::set<std::string> needed = values_needed_for(contents_->proto.graph, std::string(value));
  std::vector<std::string> names;
  for (const InputFacts& input : contents_->inputs)
    if (needed.contains(input.name)) names.push_back(input.name);
  return names;
}

}  // namespace plexaura::onnx
