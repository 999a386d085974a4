#include "training/loop/checkpoint_folder.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>
#include <vector>

#include "training/checkpoints/checkpoint_directory.h"

namespace plexaura {

// Takes the lock of the folder on rank 0. It may be held by any rank that was lost: a new rank 0, for
// example, may be lost after it took the lock.
void CheckpointFolder::lock(Collective& ranks) {
  constexpr const char* what = "the folder of checkpoints";
  if (ranks.rank() != 0) unlock();
  const std::vector<std::string> group = ranks.gather_all(this_process(), what);
  std::vector<std::string> lost{std::exchange(writer_, group[0])};
  std::ranges::copy_if(processes_, std::back_inserter(lost), [&](const std::string& name) {
    return std::ranges::find(group, name) == group.end();
  });
  processes_.insert(group.begin(), group.end());
  together(ranks, what, [&] {
    if (!is_written() || ranks.rank() != 0 || lock_) return;
    prepare_checkpoints(path_);
    lock_ = std::make_unique<FolderLock>(path_, lost);
  });
}

void CheckpointFolder::check_new(Collective& ranks) const {
  together(ranks, "the folder of checkpoints", [&] {
    if (ranks.rank() != 0 || !is_written()) return;
    if (const auto newest = newest_step(path_))
      throw UserError(fmt::format(
          "TrainerOptions::output is {}, where an earlier run has left the checkpoint after step {}: call "
          "Trainer::resume to continue it, set TrainerOptions::replace to remove it, or name another folder",
          path_.string(), *newest));
  });
}

// Saves a checkpoint. Another process may remove the folder at any time, so saving is tried several times.
void CheckpointFolder::write(const ParameterStore& store, const RunState& state) {
  constexpr int tries = 3;
  for (int left = tries - 1;; --left) try {
      lock_->renew();
      return save_checkpoint(path_, store, state, keep_);
    } catch (const RemovedError&) {
      if (left == 0) throw;
    }
}

}  // namespace plexaura
