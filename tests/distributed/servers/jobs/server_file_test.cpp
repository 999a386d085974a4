#include "distributed/servers/jobs/server_file.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::server_file_test {

TEST_CASE("server file: tells where the server is as long as that lives") {
  const TemporaryFolder folder;
  const auto path = folder / "server";
  CHECK_FALSE(read_server_file(path).has_value());
  {
    ServerFile file(path);
    CHECK_FALSE(read_server_file(path).has_value());  // the file has no contents yet
    file.tell({"node1", 4711, "abc"});
    const auto place = read_server_file(path);
    REQUIRE(place.has_value());
    CHECK(place->host == "node1");
    CHECK(place->port == 4711);
    CHECK(place->key == "abc");
    CHECK(user_error([&] { ServerFile(path.string()); }) ==
          "--serve: another server uses '" + path.string() + "'; end it, or name another file");
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("server file: what no server has written stays as it is") {
  const TemporaryFolder folder;
  const auto path = folder / "mine.csv";
  for (const std::string text : {"a,b\n1,2\n", "one 2 three\nmore\n", "no port here\n"}) {
    std::ofstream(path) << text;
    CHECK(user_error([&] { ServerFile(path.string()); }) ==
          "--serve: '" + path.string() + "' exists, but was not written by a server; name another file");
    CHECK(std::filesystem::file_size(path) == text.size());
  }
}

TEST_CASE("server file: a device is none, and is not read") {
  CHECK(user_error([] { ServerFile("/dev/null"); }) ==
        "--serve: '/dev/null' exists, but was not written by a server; name another file");
}

TEST_CASE("server file: one that a killed server has left is taken over") {
  const TemporaryFolder folder;
  write_text(folder / "server", "node1 4711 abcabcabc\n");
  REQUIRE(chmod((folder / "server").c_str(), 0600) == 0);
  ServerFile file(folder / "server");
  file.tell({"n", 1, "k"});
  CHECK(read_text(folder / "server") == "n 1 k\n");
}

TEST_CASE("server file: what is not all there is nothing") {
  const TemporaryFolder folder;
  for (const char* text : {"", "\n", "node1\n", "node1 4711\n", "node1 4711 ab"}) {
    CAPTURE(text);
    write_text(folder / "server", text);
    CHECK_FALSE(read_server_file(folder / "server").has_value());
  }
}

TEST_CASE("server file: what comes to be one is waited for, and nothing else") {
  const TemporaryFolder folder;
  const auto path = folder / "server";
  const std::string strange =
      "--join: '" + path.string() + "' was not written by a server; name the file of --serve";
  check_server_file(path);
  for (const char* text :
       {"", "node-1.net_", "node1 4711 ab", "node1 4711 abcabcabc\n", "fe80::1%eth0 4711 abc\n"}) {
    CAPTURE(text);
    write_text(path, text);
    CHECK(user_error([&] { check_server_file(path); }).empty());
  }
  for (const std::string text :
       {"\n", "node1 4711\n", "node1 port abc\n", "node1 4711 abc\nmore", "node1 65536 abc\n", "a,b", "{"}) {
    CAPTURE(text);
    write_text(path, text);
    CHECK(user_error([&] { check_server_file(path); }) == strange);
  }
  write_text(path, std::string(512, 'a'));
  CHECK(user_error([&] { check_server_file(path); }) == strange);
  CHECK(user_error([&] { check_server_file(path / "below"); }) ==
        "--join: '" + (path / "below").string() +
            "' cannot be read: Not a directory; name the file of --serve, and let this user read it");
}

TEST_CASE("server file: a folder, a pipe and a device are none, and are not waited for") {
  const TemporaryFolder folder;
  const auto pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::filesystem::path& path : {folder.path(), pipe, std::filesystem::path("/dev/zero")}) {
    CHECK_FALSE(read_server_file(path).has_value());
    CHECK(user_error([&] { check_server_file(path); }) ==
          "--join: '" + path.string() + "' was not written by a server; name the file of --serve");
  }
}

TEST_CASE("server file: a pipe that has taken its place is left alone") {
  const TemporaryFolder folder;
  const auto path = folder / "server";
  {
    const ServerFile file(path);
    std::filesystem::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  }
  CHECK(std::filesystem::is_fifo(path));
}

TEST_CASE("server file: is hidden from other users, and one that was open to them is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "server";
  {
    const ServerFile file(path);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  for (const mode_t mode : {0666, 0640, 0604, 0620}) {
    write_text(path, "");
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(user_error([&] { ServerFile(path.string()); }) ==
          "--serve: '" + path.string() +
              "' is open to other users, who could read the key; remove it, or name another file");
  }
}

TEST_CASE("server file: is no link, and has no second name") {
  const TemporaryFolder folder;
  const auto target = folder / "target";
  const auto link = folder / "link";
  write_text(target, "");
  REQUIRE(chmod(target.c_str(), 0600) == 0);
  std::filesystem::create_symlink(target, link);
  CHECK(user_error([&] { ServerFile(link.string()); }) ==
        "--serve: '" + link.string() +
            "' is a link, and the key would be written to the file that it names; name a file that is not a "
            "link");
  std::filesystem::remove(link);
  std::filesystem::create_hard_link(target, link);
  CHECK(user_error([&] { ServerFile(link.string()); }) ==
        "--serve: '" + link.string() +
            "' has a second name, by which others might read the key; remove it, or name another file");
  CHECK(read_text(target).empty());
}

TEST_CASE("server file: of another user is refused") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can make a file of another user");
    return;
  }
  const TemporaryFolder folder;
  const auto path = folder / "server";
  write_text(path, "");
  constexpr uid_t nobody = 65534;
  REQUIRE(chown(path.c_str(), nobody, nobody) == 0);
  CHECK(user_error([&] { ServerFile(path.string()); }) ==
        "--serve: '" + path.string() +
            "' belongs to another user, who could read the key; remove it, or name another file");
  CHECK(read_text(path).empty());
}

TEST_CASE("server file: each key is another one, of 256 bits") {
  CHECK(make_key() != make_key());
  CHECK(make_key().size() == 64);
  CHECK(make_key().find_first_not_of("0123456789abcdef") == std::string::npos);
}

}  // namespace plexaura::testing::server_file_test
