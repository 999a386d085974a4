#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "distributed/seal/seal.h"

namespace plexaura {

// Makes the seal of make_seal() with libsodium.
std::unique_ptr<Seal> make_sodium_seal(Seal::Side side, std::string_view key);
std::string sodium_version();

}  // namespace plexaura
