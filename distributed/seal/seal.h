#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plexaura {

// The cryptography of one end of a connection: docs/guide/security.md shows its messages. First each end makes a key of its own for
// this connection and sends its public half. Then each proves that it knows the key of the server's file, without sending that.
// From then on every chunk is encrypted, and one that was changed, left out, repeated or moved is found. One thread at a time.
class Seal {
 public:
  enum class Side { client, server };
  static constexpr std::size_t bytes_added = 17;  // to a chunk
  using Block = std::array<std::byte, 32>;        // a public key, or a proof
  using Start = std::array<std::byte, 24>;        // of a stream of chunks

  virtual ~Seal() = default;

  virtual Block public_key() const = 0;
  // Takes the public key of the other end. False where no key can be agreed on with it.
  virtual bool meet(const Block& public_key) = 0;
  // Behind meet(): what proves that this end knows the key, and whether the other end has proven it.
  virtual Block proof() const = 0;
  virtual bool is_proven_by(const Block& proof) const = 0;

  // What the other end needs to open what this one seals, and what this one needs to open what the other seals.
  virtual Start start_sealing() = 0;
  virtual void start_opening(const Start& start) = 0;
  // `sealed` has bytes_added more than `chunk`. `is_last`: of its letter.
  virtual void seal(std::span<const std::byte> chunk, bool is_last, std::span<std::byte> sealed) = 0;
  enum class Opened { no, more, last };
  // Into `chunk`, which has bytes_added less than `sealed`. `no` where the chunk is not the next one of the other end.
  virtual Opened open(std::span<const std::byte> sealed, std::span<std::byte> chunk) = 0;
};

// `key`: that of the server's file. Null where its length is none of a key. Throws UserError where this build has no libsodium.
std::unique_ptr<Seal> make_seal(Seal::Side side, std::string_view key);

// "libsodium 1.0.18", or what is missing without it.
std::string sealing_library();
// Throws UserError where this build has no libsodium. `option`: which needs it.
void check_sealing(std::string_view option);

}  // namespace plexaura
