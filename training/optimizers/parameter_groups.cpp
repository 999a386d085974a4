#include "training/optimizers/parameter_groups.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/params/name_pattern.h"
#include "training/optimizers/optimizer_checks.h"

namespace plexaura {

namespace {

// Returns the index of the first group whose pattern fits. Returns the number of groups if no pattern fits.
std::size_t first_fit(const ParameterSpec& spec, std::span<const ParameterGroup> groups) {
  const auto found = std::ranges::find_if(
      groups, [&](const ParameterGroup& group) { return is_named_like(spec, group.pattern); });
  return static_cast<std::size_t>(found - groups.begin());
}

[[noreturn]] void throw_without_parameters(const ParameterGroup& group,
                                           const std::vector<ParameterSpec>& specs) {
  std::vector<std::string> known;
  bool fits_trainable = false;
  bool fits_any = false;
  for (const ParameterSpec& spec : specs) {
    const bool is_trainable = spec.role == ParameterRole::trainable;
    if (is_trainable) known.push_back(spec.name);
    const bool fits = is_named_like(spec, group.pattern);
    fits_any |= fits;
    fits_trainable |= fits && is_trainable;
  }
  const std::string what = fmt::format("the group of parameters '{}' has no effect: ", group.pattern);
  if (fits_trainable)
    throw UserError(fmt::format(
        "{}each of its parameters fits a group before it, and the first counts; move it forward", what));
  if (fits_any)
    throw UserError(fmt::format(
        "{}its pattern fits no parameter that the optimizer trains; remove it, or correct it", what));
  throw UserError(
      fmt::format("{}no parameter is named like its pattern{}", what, did_you_mean(group.pattern, known)));
}

}  // namespace

GroupOptimizer::GroupOptimizer(const OptimizerSpec& spec)
    : spec_(std::make_shared<const OptimizerSpec>(spec)) {}

std::vector<ParameterGroup> groups_by_name(std::span<const ParameterGroup> groups,
                                           const std::vector<ParameterSpec>& specs) {
  for (const ParameterGroup& group : groups) check_group(group);
  std::vector<ParameterGroup> by_name;
  std::vector<bool> has_parameters(groups.size());
  for (const ParameterSpec& spec : specs) {
    const std::size_t index = first_fit(spec, groups);
    if (spec.role != ParameterRole::trainable || index == groups.size()) continue;
    has_parameters[index] = true;
    by_name.push_back({spec.name, groups[index].options});
  }
  const auto without = std::ranges::find(has_parameters, false);
  if (without != has_parameters.end())
    throw_without_parameters(groups[static_cast<std::size_t>(without - has_parameters.begin())], specs);
  return by_name;
}

ParameterGroup::Options group_of(std::string_view name, std::span<const ParameterGroup> groups,
                                 double weight_decay) {
  const auto found = std::ranges::find_if(
      groups, [&](const ParameterGroup& group) { return is_named_like(name, group.pattern); });
  if (found == groups.end()) return {.decay = weight_decay};
  ParameterGroup::Options options = found->options;
  if (!options.decay) options.decay = weight_decay;
  return options;
}

std::vector<StepSegment> segments_of(const Placement& placement, const Bucket& bucket,
                                     std::span<const ParameterGroup> groups, double weight_decay) {
  std::vector<StepSegment> segments;
  for (const Placement::Entry& entry : placement.entries) {
    if (entry.offset < bucket.offset || entry.offset >= bucket.offset + bucket.count) continue;
    const ParameterGroup::Options group = group_of(entry.name, groups, weight_decay);
    if (!segments.empty() && segments.back().decay == *group.decay && segments.back().rate == group.rate)
      continue;
    const std::int64_t offset = segments.empty() ? 0 : entry.offset - bucket.offset;
    if (!segments.empty()) segments.back().count = offset - segments.back().offset;
    segments.push_back({offset, 0, *group.decay, group.rate});
  }
  if (segments.empty() || (segments.size() == 1 && segments[0].decay == 0 && segments[0].rate == 1))
    return {};
  segments.back().count = bucket.count - segments.back().offset;
  return segments;
}

}  // namespace plexaura
