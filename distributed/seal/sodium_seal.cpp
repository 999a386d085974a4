#include "distributed/seal/sodium_seal.h"

#include <sodium.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

using Bytes = unsigned char;

static_assert(Seal::bytes_added == crypto_secretstream_xchacha20poly1305_ABYTES);
static_assert(sizeof(Seal::Start) == crypto_secretstream_xchacha20poly1305_HEADERBYTES);
static_assert(sizeof(Seal::Block) == crypto_kx_PUBLICKEYBYTES);
static_assert(crypto_kx_SESSIONKEYBYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES);

Bytes* raw(std::byte* bytes) { return reinterpret_cast<Bytes*>(bytes); }
const Bytes* raw(const std::byte* bytes) { return reinterpret_cast<const Bytes*>(bytes); }
const Bytes* raw(const char* text) { return reinterpret_cast<const Bytes*>(text); }

void begin_sodium() {
  if (sodium_init() < 0)
    throw DeviceError(
        "libsodium cannot begin: this system gives it no random numbers; see whether "
        "/dev/urandom can be read");
}

class SodiumSeal final : public Seal {
 public:
  SodiumSeal(Side side, std::string_view key) : side_(side), key_(key) {
    begin_sodium();
    crypto_kx_keypair(raw(public_.data()), raw(secret_.data()));
  }
  SodiumSeal(const SodiumSeal&) = delete;
  SodiumSeal& operator=(const SodiumSeal&) = delete;
  ~SodiumSeal() override {
    sodium_memzero(key_.data(), key_.size());
    for (Block* secret : {&secret_, &to_seal_, &to_open_}) sodium_memzero(secret->data(), secret->size());
    sodium_memzero(&sealing_, sizeof sealing_);
    sodium_memzero(&opening_, sizeof opening_);
  }

  Block public_key() const override { return public_; }

  bool meet(const Block& public_key) override {
    theirs_ = public_key;
    const auto agree = side_ == Side::client ? crypto_kx_client_session_keys : crypto_kx_server_session_keys;
    const int failed = agree(raw(to_open_.data()), raw(to_seal_.data()), raw(public_.data()),
                             raw(secret_.data()), raw(theirs_.data()));
    sodium_memzero(secret_.data(), secret_.size());
    return failed == 0;
  }

  Block proof() const override { return proof_of(side_); }

  bool is_proven_by(const Block& proof) const override {
    const Block expected = proof_of(side_ == Side::client ? Side::server : Side::client);
    return sodium_memcmp(proof.data(), expected.data(), expected.size()) == 0;
  }

  Start start_sealing() override {
    Start start;
    crypto_secretstream_xchacha20poly1305_init_push(&sealing_, raw(start.data()), raw(to_seal_.data()));
    return start;
  }

  void start_opening(const Start& start) override {
    crypto_secretstream_xchacha20poly1305_init_pull(&opening_, raw(start.data()), raw(to_open_.data()));
  }

  void seal(std::span<const std::byte> chunk, bool is_last, std::span<std::byte> sealed) override {
    const Bytes tag = is_last ? crypto_secretstream_xchacha20poly1305_TAG_PUSH
                              : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
    crypto_secretstream_xchacha20poly1305_push(&sealing_, raw(sealed.data()), nullptr, raw(chunk.data()),
                                               chunk.size(), nullptr, 0, tag);
  }

  Opened open(std::span<const std::byte> sealed, std::span<std::byte> chunk) override {
    Bytes tag = 0;
    if (crypto_secretstream_xchacha20poly1305_pull(&opening_, raw(chunk.data()), nullptr, &tag,
                                                   raw(sealed.data()), sealed.size(), nullptr, 0) != 0)
      return Opened::no;
    return tag == crypto_secretstream_xchacha20poly1305_TAG_PUSH ? Opened::last : Opened::more;
  }

 private:
  // Returns the proof of one side. It depends on both public keys, which are new in each connection. So a
  // proof cannot be used again in another connection.
  Block proof_of(Side side) const {
    const std::string_view who = side == Side::client ? "plexaura client" : "plexaura server";
    const Block& client = side_ == Side::client ? public_ : theirs_;
    const Block& server = side_ == Side::client ? theirs_ : public_;
    crypto_generichash_state state;
    Block proof;
    crypto_generichash_init(&state, raw(key_.data()), key_.size(), proof.size());
    crypto_generichash_update(&state, raw(who.data()), who.size());
    crypto_generichash_update(&state, raw(client.data()), client.size());
    crypto_generichash_update(&state, raw(server.data()), server.size());
    crypto_generichash_final(&state, raw(proof.data()), proof.size());
    return proof;
  }

  Side side_;
  std::string key_;
  Block public_ = {};
  Block secret_ = {};
  Block theirs_ = {};
  Block to_seal_ = {};
  Block to_open_ = {};
  crypto_secretstream_xchacha20poly1305_state sealing_ = {};
  crypto_secretstream_xchacha20poly1305_state opening_ = {};
};

}  // namespace

std::unique_ptr<Seal> make_sodium_seal(Seal::Side side, std::string_view key) {
  if (key.size() < crypto_generichash_KEYBYTES_MIN || key.size() > crypto_generichash_KEYBYTES_MAX)
    return nullptr;
  return std::make_unique<SodiumSeal>(side, key);
}

std::string sodium_version() { return std::string("libsodium ") + sodium_version_string(); }

}  // namespace plexaura
