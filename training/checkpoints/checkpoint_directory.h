#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>

namespace plexaura {

// A directory of checkpoints contains one folder for each, checkpoint-000042 (the number of updates). Each of
// these folders is complete at every moment, so that a process may be killed while it writes or removes a
// checkpoint: checkpoint.unfinished is the one that is being written, and checkpoint.removed-000042 one that
// is being removed. The next save removes what a killed process has left. `best` is a link to the best
// checkpoint, if there is one.

// Returns the folder of the checkpoint after `step` updates.
std::filesystem::path checkpoint_folder(const std::filesystem::path& directory, std::int64_t step);

// Creates the directory, so that an unwritable one is found before anything is computed. Throws UserError if
// it cannot be written. Also throws UserError if there is something else at the path of a checkpoint, because
// saving a checkpoint would remove it.
void prepare_checkpoints(const std::filesystem::path& directory);

// True if a user's file may not have this name in the directory: it is the name of a checkpoint, of an
// unfinished or removed checkpoint, of the link to the best one, or of the lock.
bool is_reserved_in_checkpoints(const std::filesystem::path& name);

// Returns the number of updates of the newest checkpoint if there is one.
std::optional<std::int64_t> newest_step(const std::filesystem::path& directory);

// Returns the folder of the newest checkpoint if there is one.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

// Throws UserError if a file of the checkpoint is missing, because a copy may be incomplete.
void require_whole(const std::filesystem::path& checkpoint);

// The folder in which a checkpoint is written before it gets its name. The destructor removes it if it has not
// been put in place.
class UnfinishedCheckpoint {
 public:
  // Throws as save_checkpoint() does.
  UnfinishedCheckpoint(const std::filesystem::path& directory, std::int64_t step);
  UnfinishedCheckpoint(const UnfinishedCheckpoint&) = delete;
  UnfinishedCheckpoint& operator=(const UnfinishedCheckpoint&) = delete;
  ~UnfinishedCheckpoint();

  const std::filesystem::path& path() const { return path_; }
  // Gives the complete checkpoint its name, and removes an earlier one of the same step.
  void put_in_place();

 private:
  std::filesystem::path path_, target_;
};

// Lets the link `best` lead to the checkpoint of this step, and replaces an older link in one operation. Does
// nothing if that checkpoint does not exist. Throws UserError if the link cannot be made.
void link_best(const std::filesystem::path& directory, std::int64_t step);

// Removes all checkpoints of later steps, and those up to this step except the newest `keep` of them, the one of
// this step included, and those in `held`. Keeps folders that contain other files. Removes the link `best` if its
// checkpoint was removed.
void remove_other_checkpoints(const std::filesystem::path& directory, std::int64_t step, int keep,
                              const std::set<std::int64_t>& held);

}  // namespace plexaura
