#pragma once

#include <memory>

#include "core/device/backend.h"

namespace plexaura::fast {

constexpr double nanoseconds_per_call = 10;  // time of a call of an op's loop, for a row

// Makes the kernel of a region of match_row_chain(), whose operands are row-major. Its results have the same bits as
// if each op had a kernel of its own.
std::shared_ptr<const Kernel> make_row_chain(const RegionQuery& query);

}  // namespace plexaura::fast
