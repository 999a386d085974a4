#include "onnx/export/export_call.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::onnx {

ExportCall::ExportCall(const Graph& graph, const NodeRecord& record,
                       const std::map<Value, std::string>& names, std::string prefix, ModelWriter& to)
    : graph_(graph),
      record_(record),
      options_(record.op->description()),
      names_(names),
      prefix_(std::move(prefix)),
      to_(to) {
  for (const Value input : record.inputs) inputs_.push_back(names.at(input));
}

const Description::Value* ExportCall::find(std::string_view name) const {
  const auto& fields = options_.fields();
  const auto found =
      std::ranges::find(fields, name, [](const auto& field) -> std::string_view { return field.first; });
  return found == fields.end() ? nullptr : &found->second;
}

template <class T>
const T& ExportCall::option(std::string_view name) const {
  const Description::Value* value = find(name);
  const T* typed = value == nullptr ? nullptr : std::get_if<T>(value);
  if (typed == nullptr)
    throw InternalError(fmt::format("the export reads an option '{}' that {} does not have", name, op()));
  return *typed;
}

std::int64_t ExportCall::integer(std::string_view name) const { return option<std::int64_t>(name); }
bool ExportCall::flag(std::string_view name) const { return option<bool>(name); }
double ExportCall::real(std::string_view name) const { return option<double>(name); }
std::string ExportCall::text(std::string_view name) const { return option<std::string>(name); }
ExportCall::Integers ExportCall::integers(std::string_view name) const { return option<Integers>(name); }

std::string ExportCall::add(std::string_view op, Names inputs, const TensorType& type,
                            Attributes attributes) {
  return add_all(op, std::move(inputs), {type}, std::move(attributes))[0];
}

ExportCall::Names ExportCall::add_all(std::string_view op, Names inputs, const std::vector<TensorType>& types,
                                      Attributes attributes) {
  const std::string name = added_ == 0 ? prefix_ : fmt::format("{}/{}", prefix_, added_);
  ++added_;
  return to_.add(name, op, std::move(inputs), types, std::move(attributes));
}

}  // namespace plexaura::onnx
