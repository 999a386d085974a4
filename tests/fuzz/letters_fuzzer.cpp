// Lets libFuzzer choose what is sent to a server: see tests/fuzz/letters.sh.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "tests/distributed/servers/jobs/storm.h"
#include "tests/support/temporary_folder.h"

namespace {

// Makes a new server from time to time, because each keeps an account of all its clients.
plexaura::testing::Storm& server() {
  static const plexaura::testing::TemporaryFolder folder;
  static std::optional<plexaura::testing::Storm> storm;
  static int inputs = 0;
  if (inputs++ % 1000 == 0) {
    storm.reset();
    storm.emplace(folder.path());
  }
  return *storm;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  server().send(std::as_bytes(std::span(bytes, count)));
  if (count % 97 == 0 && !server().serves()) std::abort();
  return 0;
}
