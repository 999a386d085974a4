#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/compile/step_block.h"
#include "core/vm/vm.h"

namespace plexaura {

// Updates that wait until the next step needs their bucket: one program for each. All of a step are open at first.
class LateUpdates {
 public:
  // By bucket; null where nothing is to be updated. They run while another program is at work, and so in a workspace of
  // their own.
  LateUpdates(const std::vector<std::shared_ptr<const Program>>& programs, Backend& backend,
              ParameterStore& store, Profile* profile);

  // `failed`: this rank leaves its updates out.
  void open(const StepBlock& block, bool failed);
  // Whether it was open. It is not any more.
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
