#include "distributed/seal/seal.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "distributed/servers/jobs/line.h"

namespace plexaura::testing::seal_test {

namespace {

using Bytes = std::vector<std::byte>;
using Side = Seal::Side;

const std::string key(64, 'k');

// Both ends of a connection after the handshake.
struct Ends {
  explicit Ends(const std::string& key_of_server = key)
      : client(make_seal(Side::client, key)), server(make_seal(Side::server, key_of_server)) {
    REQUIRE(client->meet(server->public_key()));
    REQUIRE(server->meet(client->public_key()));
    server->start_opening(client->start_sealing());
    client->start_opening(server->start_sealing());
  }
  std::unique_ptr<Seal> client;
  std::unique_ptr<Seal> server;
};

Bytes seal(Seal& seal, const std::string& text, bool is_last = true) {
  Bytes sealed(text.size() + Seal::bytes_added);
  seal.seal(bytes_of(text), is_last, sealed);
  return sealed;
}

// Returns "no" if the chunk is refused, and otherwise its contents, with a dot after the last chunk of a
// letter.
std::string open(Seal& seal, const Bytes& sealed) {
  Bytes chunk(sealed.size() - Seal::bytes_added);
  const Seal::Opened opened = seal.open(sealed, chunk);
  if (opened == Seal::Opened::no) return "no";
  const std::string text(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  return text + (opened == Seal::Opened::last ? "." : "");
}

}  // namespace

TEST_CASE("seal: what one end seals the other one opens, in both directions") {
  Ends ends;
  CHECK(open(*ends.server, seal(*ends.client, "one", false)) == "one");
  CHECK(open(*ends.server, seal(*ends.client, "two")) == "two.");
  CHECK(open(*ends.client, seal(*ends.server, "three")) == "three.");
}

TEST_CASE("seal: a chunk that was repeated, moved, left out, shortened or changed is not opened") {
  Ends ends;
  const Bytes first = seal(*ends.client, "first");
  const Bytes second = seal(*ends.client, "second");
  CHECK(open(*ends.server, second) == "no");
  CHECK(open(*ends.server, Bytes(first.begin(), first.end() - 1)) == "no");
  for (std::size_t i = 0; i < first.size(); ++i) {
    Bytes changed = first;
    changed[i] ^= std::byte{1};
    CHECK(open(*ends.server, changed) == "no");
  }
  CHECK(open(*ends.server, first) == "first.");
  CHECK(open(*ends.server, first) == "no");
  CHECK(open(*ends.client, second) == "no");  // an end refuses what it has sealed itself
  CHECK(open(*ends.server, second) == "second.");
}

TEST_CASE("seal: a chunk of another connection is not opened") {
  Ends ends;
  Ends others;
  CHECK(open(*others.server, seal(*ends.client, "text")) == "no");
}

TEST_CASE("seal: a proof needs the key, and is of this connection and of this end alone") {
  Ends ends;
  CHECK(ends.server->is_proven_by(ends.client->proof()));
  CHECK(ends.client->is_proven_by(ends.server->proof()));
  CHECK_FALSE(ends.client->is_proven_by(ends.client->proof()));
  CHECK_FALSE(Ends().server->is_proven_by(ends.client->proof()));
  const Ends apart(std::string(64, 'l'));
  CHECK_FALSE(apart.client->is_proven_by(apart.server->proof()));
  CHECK_FALSE(apart.server->is_proven_by(apart.client->proof()));
}

TEST_CASE("seal: a public key with which everybody would agree on the same key is refused") {
  CHECK_FALSE(make_seal(Side::client, key)->meet(Seal::Block{}));
}

TEST_CASE("seal: a text that is too short or too long is no key") {
  CHECK(make_seal(Side::client, std::string(15, 'a')) == nullptr);
  CHECK(make_seal(Side::client, std::string(16, 'a')) != nullptr);
  CHECK(make_seal(Side::client, std::string(65, 'a')) == nullptr);
}

}  // namespace plexaura::testing::seal_test
