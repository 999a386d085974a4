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
  // All ranks together, before anything is computed, so that no work is lost. Rank 0 takes the lock from ranks that were lost: they may
  // be stopped instead of dead. Throws as prepare_checkpoints() and FolderLock do.
  void lock(Collective& ranks);
  void unlock() { lock_.reset(); }
  // On rank 0. Throws as save_checkpoint() does.
  void write(const ParameterStore& store, const RunState& state);

 private:
  std::filesystem::path path_;
  int keep_;
  std::unique_ptr<FolderLock> lock_;  // on rank 0
  std::string writer_;                // the process of rank 0
  std::set<std::string> processes_;   // of all ranks there ever were
};

}  // namespace plexaura
