#include "distributed/seal/seal.h"

#include <fmt/format.h>

#include "core/base/error.h"
#ifdef PLEXAURA_HAS_SODIUM
#include "distributed/seal/sodium_seal.h"
#endif

namespace plexaura {

#ifdef PLEXAURA_HAS_SODIUM

std::unique_ptr<Seal> make_seal(Seal::Side side, std::string_view key) { return make_sodium_seal(side, key); }

std::string sealing_library() { return sodium_version(); }

void check_sealing(std::string_view) {}

#else

std::unique_ptr<Seal> make_seal(Seal::Side, std::string_view) {
  check_sealing("a connection between jobs");
  return nullptr;
}

std::string sealing_library() { return "no libsodium: no --serve and no --join"; }

void check_sealing(std::string_view option) {
  throw UserError(
      fmt::format("{} needs libsodium, and Plexaura was built without it; install libsodium-dev "
                  "(tools/install_packages), and build again",
                  option));
}

#endif

}  // namespace plexaura
