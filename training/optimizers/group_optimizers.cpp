#include "training/optimizers/group_optimizers.h"

#include <algorithm>
#include <string>

#include "core/params/name_pattern.h"

namespace plexaura {

namespace {

const OptimizerSpec* rule_of_parameter(const std::string& name, const OptimizerSpec& optimizer) {
  const auto group = std::ranges::find_if(optimizer.groups, [&](const ParameterGroup& candidate) {
    return is_named_like(name, candidate.pattern);
  });
  return group == optimizer.groups.end() ? &optimizer : &rule_of(*group, optimizer);
}

}  // namespace

const OptimizerSpec& rule_of(const ParameterGroup& group, const OptimizerSpec& optimizer) {
  const OptimizerSpec* const own = group.options.optimizer.spec();
  return own != nullptr ? *own : optimizer;
}

std::vector<RuleSlice> slices_by_rule(const Placement& placement, const Bucket& bucket,
                                      const OptimizerSpec& optimizer) {
  std::vector<RuleSlice> slices;
  const std::int64_t end = bucket.offset + bucket.count;
  for (const Placement::Entry& entry : placement.entries) {
    if (entry.offset < bucket.offset || entry.offset >= end) continue;
    const OptimizerSpec* const rule = rule_of_parameter(entry.name, optimizer);
    if (!slices.empty() && slices.back().rule == rule) continue;
    const std::int64_t offset = slices.empty() ? bucket.offset : entry.offset;
    if (!slices.empty()) slices.back().slice.count = offset - slices.back().slice.offset;
    slices.push_back({{offset, end - offset, bucket.dtype}, rule});
  }
  return slices;
}

Placement ordered_by_rule(const Placement& placement, const OptimizerSpec& optimizer) {
  std::vector<const OptimizerSpec*> rules;
  for (const Placement::Entry& entry : placement.entries) {
    const OptimizerSpec* const rule = rule_of_parameter(entry.name, optimizer);
    if (entry.role == ParameterRole::trainable && std::ranges::find(rules, rule) == rules.end())
      rules.push_back(rule);
  }
  if (rules.size() < 2) return placement;
  Placement ordered;
  ordered.types = placement.types;
  const auto append = [&](const auto& takes) {
    for (const Placement::Entry& entry : placement.entries)
      if (takes(entry)) ordered.append(entry.name, entry.type, entry.role, entry.layout);
  };
  for (const OptimizerSpec* rule : rules)
    append([&](const Placement::Entry& entry) {
      return entry.role == ParameterRole::trainable && rule_of_parameter(entry.name, optimizer) == rule;
    });
  append([](const Placement::Entry& entry) { return entry.role != ParameterRole::trainable; });
  return ordered;
}

}  // namespace plexaura
