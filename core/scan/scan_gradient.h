#pragma once

#include <vector>

#include "core/scan/scan_op.h"

namespace plexaura {

// The gradient of a scan: see Op::vjp. Appends one scan in the opposite direction.
std::vector<Node> scan_gradient(const Scan& scan, const VjpRequest& request);

}  // namespace plexaura
