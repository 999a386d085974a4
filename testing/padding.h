#pragma once

#include <cstdint>
#include <string>

#include "core/compile/program.h"
#include "core/vm/vm.h"

namespace plexaura::testing {

// What lies beside the elements of values: zero, if all is well.
struct PaddingReport {
  std::int64_t values = 0;  // looked at
  std::int64_t padded = 0;  // of these, with room for more than their elements
  std::string failures;     // a line for each value with something else in its padding
};

// Whether all bytes at `address` outside of the value's elements are zero, once what was enqueued is done.
bool padding_is_zero(Backend& backend, Address address, const Layout& layout, const TensorType& type);

// Looks at every value of a program that was compiled with keep_all and has run in this workspace.
PaddingReport check_padding(const Program& program, const Workspace& workspace, Backend& backend);

}  // namespace plexaura::testing
