#include "distributed/servers/jobs/logical_weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

const char* name_of_role(ParameterRole role) {
  if (role == ParameterRole::trainable) return "trained";
  return role == ParameterRole::buffer ? "a buffer" : "frozen";
}

std::vector<ParameterSpec> specs_in(const Placement& placement) {
  std::vector<ParameterSpec> specs;
  for (const Placement::Entry& entry : placement.entries)
    specs.push_back({.name = entry.name, .type = entry.type, .role = entry.role, .initialiser = {}});
  return specs;
}

DType type_of_all(const std::vector<ParameterSpec>& specs) {
  if (specs.empty())
    throw UserError("the model has no parameters, so a server has no weights to exchange; train it alone");
  return specs.front().type.dtype;
}

}  // namespace

LogicalWeights::LogicalWeights(const WeightsImmigration& border)
    : LogicalWeights(specs_in(border.placement())) {}

LogicalWeights::LogicalWeights(std::vector<ParameterSpec> specs)
    : specs_(std::move(specs)), dtype_(type_of_all(specs_)) {
  with_elements(dtype_, [](auto) {});
  std::ranges::sort(specs_, {}, [](const ParameterSpec& spec) { return std::pair(spec.role, spec.name); });
  for (const ParameterSpec& spec : specs_) {
    const auto bytes = static_cast<std::size_t>(spec.type.bytes());
    bytes_ += bytes;
    if (spec.role != ParameterRole::frozen) shared_bytes_ += bytes;
    if (spec.role == ParameterRole::trainable) trainables_ += bytes / size_of(dtype_);
  }
}

void LogicalWeights::read(const Read& from, std::span<std::byte> weights) const {
  for (const ParameterSpec& spec : specs_) {
    if (weights.empty()) return;
    const Tensor value = from(spec.name);
    std::memcpy(weights.data(), value.data(), value.bytes());
    weights = weights.subspan(value.bytes());
  }
}

void LogicalWeights::write(std::span<const std::byte> weights, const Write& to) const {
  for (const ParameterSpec& spec : specs_) {
    if (weights.empty()) return;
    Tensor value(spec.type);
    std::memcpy(value.data(), weights.data(), value.bytes());
    to(spec.name, value);
    weights = weights.subspan(value.bytes());
  }
}

std::map<std::string, std::string> LogicalWeights::facts() const {
  std::map<std::string, std::string> facts;
  for (const ParameterSpec& spec : specs_)
    facts["parameter " + spec.name] = fmt::format("{}, {}", to_string(spec.type), name_of_role(spec.role));
  return facts;
}

}  // namespace plexaura
