#pragma once

#include <memory>
#include <set>
#include <string>

#include "core/exchange/collective.h"
#include "training/checkpoints/checkpoint.h"
#include "training/files/folder_lock.h"

namespace plexaura {

// The folder into which rank 0 of a run writes checkpoints, and its lock. With an empty path nothing is written.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path path, int keep) : path_(std::move(path)), keep_(keep) {}

  bool is_written() const { return !path_.empty(); }
  // Called by all ranks together, before the first step, so that an error costs no work, and again after ranks were
  // lost. Rank 0 takes the lock of the folder, also from ranks that were lost, because their processes may be
  // stopped instead of dead.
  // Throws what prepare_checkpoints() and FolderLock throw.
  void lock(Collective& ranks);
  // Throws UserError if the folder has checkpoints that this run has not written. Called by all ranks together, for a run
  // that was not resumed and does not replace them.
  void check_new(Collective& ranks) const;
  void unlock() { lock_.reset(); }
  // Saves a checkpoint. Called on rank 0 only. Throws what save_checkpoint() throws.
  void write(const ParameterStore& store, const RunState& state);

 private:
  std::filesystem::path path_;
  int keep_;
  std::unique_ptr<FolderLock> lock_;  // the lock on rank 0; null on other ranks
  std::string writer_;                // name of the process of rank 0
  std::set<std::string> processes_;   // names of the processes of all ranks that this run has ever had
};

}  // namespace plexaura
