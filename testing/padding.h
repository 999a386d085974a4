#pragma once

#include <cstdint>
#include <string>

#include "core/compile/program.h"
#include "core/vm/vm.h"

namespace plexaura::testing {

// The result of a check that the padding of values is zero.
struct PaddingReport {
  std::int64_t values = 0;  // number of values that were checked
  std::int64_t padded = 0;  // number of these values whose layout has padding
  std::string failures;     // one line for each value whose padding is not zero
};

// Returns true if all bytes at `address` that belong to no element of the value are zero. Waits for work that
// was enqueued.
bool padding_is_zero(Backend& backend, Address address, const Layout& layout, const TensorType& type);

// Checks every value of a program that was compiled with keep_all and has run in this workspace.
PaddingReport check_padding(const Program& program, const Workspace& workspace, Backend& backend);

}  // namespace plexaura::testing
