#include "app/options/parameter_patterns.h"

#include <fmt/format.h>
#include <span>

#include "core/params/module.h"
#include "training/optimizers/parameter_groups.h"

namespace plexaura {

namespace {

// Calls `apply`. If it throws, adds the place of a key to the error.
template <class Function>
void with_place(const Section& section, std::string_view key, const Function& apply) {
  try {
    apply();
  } catch (const UserError& error) {
    throw section.error(key, fmt::format("does not fit the model: {}", error.what()));
  }
}

}  // namespace

void apply_patterns(const Config& config, const RunOptions& options, std::vector<ParameterSpec>& specs) {
  const Section training = config.section("training");
  for (const std::string& pattern : options.freeze)
    with_place(training, "freeze", [&] { freeze(specs, pattern); });
  const std::span<const ParameterGroup> groups = options.trainer.optimizer.groups;
  if (groups.empty()) return;
  // Checks the first group, then the first two, and so on, so that the error names the first group at fault.
  const std::vector<Section> sections = training.section("optimizer").sections("groups");
  for (std::size_t count = 1; count <= groups.size(); ++count)
    with_place(sections[count - 1], "pattern", [&] { groups_by_name(groups.first(count), specs); });
}

}  // namespace plexaura
