#include "core/params/trained_parts.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

std::vector<TrainedParts::Part> TrainedParts::parts() const {
  std::vector<Part> living;
  for (const std::weak_ptr<TrainedPart>& held : parts_)
    if (Part part = held.lock()) living.push_back(std::move(part));
  std::ranges::sort(living, {}, [](const Part& part) { return part->name; });
  return living;
}

std::string TrainedParts::names() const {
  std::string names;
  for (const Part& part : parts()) names += (names.empty() ? "" : "; ") + part->name;
  return names;
}

std::vector<TrainedParts::Part> TrainedParts::beside(const std::set<std::string>& parameters,
                                                     const std::set<std::string>& trainable) const {
  std::vector<Part> remaining;
  for (const Part& part : parts()) {
    std::string shared;
    std::string other;
    for (const std::string& name : part->parameters)
      if (trainable.contains(name)) (parameters.contains(name) ? shared : other) = name;
    if (!shared.empty() && !other.empty())
      throw UserError(
          fmt::format("another Optimizer of this store, {}, trains '{}' too, and '{}' besides; give both "
                      "OptimizerOptions::parameters that have none in common, or destroy the other one first",
                      part->name, shared, other));
    if (shared.empty() && !other.empty()) remaining.push_back(part);
  }
  return remaining;
}

TrainedParts::Part TrainedParts::add(TrainedPart part, const std::vector<Part>& remaining) {
  parts_.assign(remaining.begin(), remaining.end());
  auto added = std::make_shared<TrainedPart>(std::move(part));
  parts_.push_back(added);
  return added;
}

bool TrainedParts::has(const Part& part) const {
  return std::ranges::any_of(parts_,
                             [&](const std::weak_ptr<TrainedPart>& held) { return held.lock() == part; });
}

bool TrainedParts::have_state(std::int64_t index, std::string_view parameter) const {
  const std::vector<Part> living = parts();
  return living.empty() || std::ranges::any_of(living, [&](const Part& part) {
           return index < part->states && part->parameters.contains(std::string(parameter));
         });
}

std::int64_t TrainedParts::states() const {
  std::int64_t most = 0;
  for (const Part& part : parts()) most = std::max(most, part->states);
  return most;
}

}  // namespace plexaura
