#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "distributed/seal/seal.h"

namespace plexaura {

// See make_seal(), which calls it.
std::unique_ptr<Seal> make_sodium_seal(Seal::Side side, std::string_view key);
std::string sodium_version();

}  // namespace plexaura
