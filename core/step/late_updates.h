#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/compile/step_block.h"
#include "core/vm/vm.h"

namespace plexaura {

// Updates that run only when the next step needs their bucket. Each bucket has an update program of its own, or none.
// At the end of a step, open() makes all updates open, that is, not run yet.
class LateUpdates {
 public:
  // `programs` has one entry per bucket; null for a bucket without an update. The programs run while another program is
  // running, so LateUpdates has a workspace of its own.
  LateUpdates(const std::vector<std::shared_ptr<const Program>>& programs, Backend& backend,
              ParameterStore& store, Profile* profile);

  // Makes all updates open. If `failed` is true, this rank will not run them.
  void open(const StepBlock& block, bool failed);
  // Closes the update of the bucket. Returns true if it was open.
  bool take(std::size_t bucket);
  bool any_open() const;
  void run(std::size_t bucket);

 private:
  std::vector<std::unique_ptr<VM>> vms_;
  std::vector<bool> open_;
  StepBlock block_;
  bool failed_ = false;
};

}  // namespace plexaura
