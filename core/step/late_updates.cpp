#include "core/step/late_updates.h"

#include <algorithm>

namespace plexaura {

LateUpdates::LateUpdates(const std::vector<std::shared_ptr<const Program>>& programs, Backend& backend,
                         ParameterStore& store, Profile* profile)
    : open_(programs.size(), false) {
  std::size_t bytes = 0;
  std::size_t feed_bytes = 0;
  for (const auto& program : programs) {
    if (!program) continue;
    bytes = std::max(bytes, program->arena_bytes);
    feed_bytes = std::max(feed_bytes, program->feed_bytes);
  }
  const auto workspace = std::make_shared<Workspace>(backend, bytes, feed_bytes);
  for (const auto& program : programs) {
    VmOptions options{.store = &store, .workspace = workspace, .profile = profile};
    vms_.push_back(program ? std::make_unique<VM>(program, backend, std::move(options)) : nullptr);
  }
}

void LateUpdates::open(const StepBlock& block, bool failed) {
  block_ = block;
  failed_ = failed;
  open_.assign(open_.size(), true);
}

bool LateUpdates::take(std::size_t bucket) {
  const bool was_open = open_[bucket];
  open_[bucket] = false;
  return was_open;
}

bool LateUpdates::any_open() const { return std::ranges::find(open_, true) != open_.end(); }

void LateUpdates::run(std::size_t bucket) {
  if (!failed_ && vms_[bucket]) vms_[bucket]->run({}, block_);
}

}  // namespace plexaura
