#include "training/programs/optimizer_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/exchange/collective.h"
#include "core/params/name_pattern.h"

namespace plexaura {

std::int64_t longest_first_axis(std::span<const Feed> feeds) {
  std::int64_t longest = 1;
  for (const Feed& feed : feeds)
    if (feed.type().shape.rank() > 0) longest = std::max(longest, feed.type().shape[0]);
  return longest;
}

std::set<std::string> trained_parameters(const ParameterStore& store, std::span<const std::string> patterns) {
  std::vector<std::string> known;
  std::set<std::string> trained;
  for (const ParameterSpec& spec : store.specs())
    if (spec.role == ParameterRole::trainable) known.push_back(spec.name);
  if (patterns.empty()) return {known.begin(), known.end()};
  for (const std::string& pattern : patterns) {
    bool fits = false;
    for (const std::string& name : known)
      if (is_named_like(store.spec(name), pattern)) {
        trained.insert(name);
        fits = true;
      }
    if (!fits)
      throw UserError(
          fmt::format("no trainable parameter is named like '{}' of OptimizerOptions::parameters{}", pattern,
                      did_you_mean(pattern, known)));
  }
  return trained;
}

InUse use_of(const ParameterStore& store, const char* function) {
  return InUse(store.trained_parts().busy(), function, [&] {
    return fmt::format(
        "{}: another thread is in a call of an Optimizer of this store; the Optimizers of a "
        "store serve one thread at a time",
        function);
  });
}

Placement placed_beside(const Placement& present, std::span<const TrainedParts::Part> kept,
                        const Placement& added, std::int64_t added_states) {
  Placement joined;
  joined.types = added.types;
  const auto append = [&](const Placement& from, ParameterRole role, const auto& takes) {
    for (const Placement::Entry& entry : from.entries)
      if (joined.find(entry.name) == nullptr && takes(entry))
        joined.append(entry.name, entry.type, role, entry.layout);
  };
  const auto has = [](ParameterRole role) {
    return [role](const Placement::Entry& entry) { return entry.role == role; };
  };
  std::set<std::int64_t, std::greater<>> counts{added_states};
  for (const TrainedParts::Part& part : kept) counts.insert(part->states);
  for (const std::int64_t states : counts) {
    append(present, ParameterRole::trainable, [&](const Placement::Entry& entry) {
      return std::ranges::any_of(kept, [&](const TrainedParts::Part& part) {
        return part->states == states && part->parameters.contains(entry.name);
      });
    });
    if (states == added_states) append(added, ParameterRole::trainable, has(ParameterRole::trainable));
  }
  append(present, ParameterRole::buffer, has(ParameterRole::buffer));
  append(added, ParameterRole::buffer, has(ParameterRole::buffer));
  const auto all = [](const Placement::Entry&) { return true; };
  append(present, ParameterRole::frozen, all);
  append(added, ParameterRole::frozen, all);
  return joined;
}

void check_same_checkpoint(Collective& ranks, const std::string& mine,
                           const std::filesystem::path& directory) {
  constexpr std::string_view what = "the checkpoint to resume from";
  const auto all = ranks.gather_all(mine, what);
  together(ranks, what, [&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw UserError(fmt::format(
            "rank {} has found {} in {}, and rank 0 {}; resume from one folder that all ranks can read", rank,
            all[rank], directory.string(), all[0]));
  });
}

std::vector<Bucket> buckets_of(const Placement& placement, const std::set<std::string>& parameters) {
  std::vector<Bucket> buckets;
  for (const Placement::Entry& entry : placement.entries) {
    if (!parameters.contains(entry.name)) continue;
    if (!buckets.empty() && buckets.back().offset + buckets.back().count == entry.offset)
      buckets.back().count += entry.count;
    else
      buckets.push_back({entry.offset, entry.count, placement.types.gradients});
  }
  buckets.push_back(make_buckets(placement, std::numeric_limits<std::int64_t>::max()).back());
  return buckets;
}

}  // namespace plexaura
