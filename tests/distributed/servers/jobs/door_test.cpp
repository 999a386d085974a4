#include "distributed/servers/jobs/door.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <vector>

#include "distributed/servers/jobs/connection.h"

namespace plexaura::testing::door_test {

namespace {

struct Watched {
  Watched() : door(listen_at({}, place), [this](const std::string& sentence) { said.push_back(sentence); }) {}
  ServerPlace place;
  std::vector<std::string> said;
  Door door;
};

// Limits the number of this process's descriptors for the lifetime of the object.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("door: lets in who comes, and names the address") {
  Watched watched;
  CHECK_FALSE(watched.door.is_somebody_waiting());
  CHECK_FALSE(watched.door.let_in().socket.is_there());
  const FileDescriptor connection = connect_to(watched.place, 10);
  const Door::Newcomer newcomer = watched.door.let_in();
  CHECK(newcomer.socket.is_there());
  CHECK(newcomer.from == "127.0.0.1");
}

TEST_CASE("door: is shut while the process has few descriptors left, and says so once") {
  Watched watched;
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < 100; ++i) connections.push_back(connect_to(watched.place, 10));
  std::vector<Door::Newcomer> inside;
  const rlim_t all = static_cast<rlim_t>(connections.back().number()) + 50;
  {
    const FewDescriptors few(all);
    for (Door::Newcomer next = watched.door.let_in(); next.socket.is_there(); next = watched.door.let_in())
      inside.push_back(std::move(next));
    CHECK(inside.size() < 20);
    CHECK_FALSE(watched.door.is_open());
    CHECK(watched.door.is_somebody_waiting());
    watched.door.report_shut();
    watched.door.report_shut();
    REQUIRE(watched.said.size() == 1);
    CHECK(watched.said[0].find("no other client can join for now: few of the ") == 0);
    inside.clear();
    CHECK(watched.door.is_open());
    CHECK(watched.door.let_in().socket.is_there());
  }
  CHECK(watched.door.is_open());
}

TEST_CASE("door: of many who were turned away it tells the first, and at the end how many they were") {
  Watched watched;
  watched.door.report_turned_away(true);
  CHECK(watched.said.empty());
  for (int i = 0; i < 5; ++i) watched.door.note_turned_away("10.0.0.1", "it does not know the key");
  CHECK(watched.said ==
        std::vector<std::string>{"a client from 10.0.0.1 was turned away: it does not know the key"});
  watched.door.report_turned_away(false);
  CHECK(watched.said.size() == 1);
  watched.door.report_turned_away(true);
  CHECK(watched.said.back() ==
        "a client from 10.0.0.1 was turned away: it does not know the key (and 3 more before it, in the last "
        "minute)");
  CHECK(watched.said.size() == 2);
}

}  // namespace plexaura::testing::door_test
