#pragma once

#include <string>

namespace plexaura::faulty {

// Flips one bit of this rank: "NAME STATE BIT" names the parameter if STATE is -1, and otherwise this state
// of the optimizer for it. Call it between steps.
void flip_bit(const std::string& where);

}  // namespace plexaura::faulty
