#include "distributed/servers/jobs/logical_weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

const char* name_of_role(ParameterRole role) {
  if (role == ParameterRole::trainable) return "trained";
  return role == ParameterRole::buffer ? "a buffer" : "frozen";
}

template <class Named>
std::vector<LogicalWeights::Part> parts_of_all(const std::vector<Named>& all) {
  std::vector<LogicalWeights::Part> parts;
  for (const Named& each : all) parts.push_back({each.name, each.type, each.role});
  return parts;
}

}  // namespace

LogicalWeights::LogicalWeights(const std::vector<ParameterSpec>& specs)
    : LogicalWeights(parts_of_all(specs)) {}

LogicalWeights::LogicalWeights(const WeightsImmigration& border)
    : LogicalWeights(parts_of_all(border.entries())) {}

LogicalWeights::LogicalWeights(std::vector<Part> parts)
    : parts_(std::move(parts)), dtype_(parts_.front().type.dtype) {
  with_elements(dtype_, [](auto) {});
  std::ranges::sort(parts_, {}, [](const Part& part) { return std::pair(part.role, part.name); });
  for (const Part& part : parts_) {
    const auto bytes = static_cast<std::size_t>(part.type.bytes());
    bytes_ += bytes;
    if (part.role != ParameterRole::frozen) shared_bytes_ += bytes;
    if (part.role == ParameterRole::trainable) trainables_ += bytes / size_of(dtype_);
  }
}

void LogicalWeights::read(const Read& from, std::span<std::byte> weights) const {
  for (const Part& part : parts_) {
    if (weights.empty()) return;
    const Tensor value = from(part.name);
    std::memcpy(weights.data(), value.data(), value.bytes());
    weights = weights.subspan(value.bytes());
  }
}

void LogicalWeights::write(std::span<const std::byte> weights, const Write& to) const {
  for (const Part& part : parts_) {
    if (weights.empty()) return;
    Tensor value(part.type);
    std::memcpy(value.data(), weights.data(), value.bytes());
    to(part.name, value);
    weights = weights.subspan(value.bytes());
  }
}

std::map<std::string, std::string> LogicalWeights::facts() const {
  std::map<std::string, std::string> facts;
  for (const Part& part : parts_)
    facts["parameter " + part.name] = fmt::format("{}, {}", to_string(part.type), name_of_role(part.role));
  return facts;
}

}  // namespace plexaura
