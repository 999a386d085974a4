#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plexaura {

// The cryptography of one end of a connection; docs/guide/security.md shows its messages. First each end
// makes a key pair for this connection and sends the public key. Then each end proves that it knows the key
// in the server's file, without sending that key. From then on every chunk is encrypted. A chunk that was
// changed, left out, repeated or moved is detected. One thread at a time may use it.
class Seal {
 public:
  enum class Side { client, server };
  static constexpr std::size_t bytes_added = 17;  // number of bytes by which a sealed chunk is longer
  using Block = std::array<std::byte, 32>;        // a public key, or a proof
  using Start = std::array<std::byte, 24>;        // the start of a stream of chunks

  virtual ~Seal() = default;

  virtual Block public_key() const = 0;
  // Takes the public key of the other end. Returns false if no common key can be derived from it.
  virtual bool meet(const Block& public_key) = 0;
  // Only after meet(). proof() proves to the other end that this one knows the key; is_proven_by() checks the
  // proof of the other end.
  virtual Block proof() const = 0;
  virtual bool is_proven_by(const Block& proof) const = 0;

  // Begins to seal a stream of chunks. The other end passes the returned value to start_opening() before it
  // opens chunks of this end.
  virtual Start start_sealing() = 0;
  virtual void start_opening(const Start& start) = 0;
  // Encrypts a chunk. `sealed` is longer than `chunk` by bytes_added. `is_last` is true for the last chunk of
  // a letter.
  virtual void seal(std::span<const std::byte> chunk, bool is_last, std::span<std::byte> sealed) = 0;
  enum class Opened { no, more, last };
  // Decrypts to `chunk`, which is shorter than `sealed` by bytes_added. Returns `no` if `sealed` is not the
  // next chunk of the other end.
  virtual Opened open(std::span<const std::byte> sealed, std::span<std::byte> chunk) = 0;
};

// `key` is the key in the server's file. Returns null if it is too short or too long for a key. Throws UserError if
// this build has no libsodium.
std::unique_ptr<Seal> make_seal(Seal::Side side, std::string_view key);

// Returns the library's name and version, such as "libsodium 1.0.18", or says that this build has none.
std::string sealing_library();
// Throws UserError if this build has no libsodium. `option` is the option that needs it, for the error.
void check_sealing(std::string_view option);

}  // namespace plexaura
