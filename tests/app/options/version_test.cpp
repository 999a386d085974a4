#include "app/options/version.h"

#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "distributed/communicator/communicator.h"

namespace plexaura::testing::version_test {

TEST_CASE("builds of other sources, oneDNN or MPI are told apart") {
  const std::string id = build_id();
  CAPTURE(id);
  for (const std::string& part : {source_revision(), cpu_libraries(), message_passing_library()})
    CHECK(id.find(part) != std::string::npos);
  CHECK(version_text().find(source_revision()) != std::string::npos);
  CHECK(version_text().find("libsodium") != std::string::npos);
}

}  // namespace plexaura::testing::version_test
