#pragma once

#include <string>

namespace plexaura::faulty {

// Changes one bit of what this rank holds: "NAME STATE BIT", of a parameter where STATE is -1, otherwise of what the optimizer
// keeps for it. Between steps.
void flip_bit(const std::string& where);

}  // namespace plexaura::faulty
