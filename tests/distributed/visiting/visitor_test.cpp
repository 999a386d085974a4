#include "distributed/visiting/visitor.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "distributed/visiting/server_file.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visitor_test {

TEST_CASE("visitor: gives up after the deadline where there is no server, or one that says nothing") {
  const TemporaryFolder folder;
  const std::string path = (folder / "server").string();
  const std::string end = "; see whether the server runs, and start this client again";
  CHECK(device_error([&] { Visitor(path, 0.2); }) ==
        "--join: " + path + " names no server that answered within 0.2 s" + end);
  ServerPlace place;
  const int listener = listen_anywhere(place);
  ServerFile file(path);
  file.tell(place);
  CHECK(device_error([&] { Visitor(path, 0.2); }) ==
        "--join: " + path + " names a server that has not answered for 0.2 s" + end);
  close(listener);
}

}  // namespace plexaura::testing::visitor_test
