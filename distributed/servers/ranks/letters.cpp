#include "distributed/servers/ranks/letters.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "distributed/wire/wait.h"

namespace plexaura {

// Returns the tag of a letter. The server sends `patience` to ranks that wait for weights, so it has the tag of
// weights. A client leaves only after it has got all weights.
int tag_of(Word word) {
  switch (word) {
    case Word::push:
    case Word::rest:
    case Word::weights:
    case Word::patience:
      return weights_tag;
    default:
      return deal_tag;
  }
}

std::span<const std::byte> Draft::seal(const LetterHead& head) {
  std::memcpy(bytes_.data(), &head, sizeof head);
  return std::span(bytes_).first(sizeof head);
}

std::span<const std::byte> Draft::seal_all(const LetterHead& head, std::string_view account) {
  const std::size_t size = sizeof head + content_bytes_ + account.size();
  // Without this call, resize() might reserve twice this size.
  if (bytes_.capacity() < size) bytes_.reserve(size + account.size());
  bytes_.resize(size);
  seal(head);
  std::ranges::copy(std::as_bytes(std::span(account)), bytes_.end() - std::ssize(account));
  return bytes_;
}

double seconds_between_letters(const Mailbox& mailbox) {
  return std::min(1.0, mailbox.deadline_seconds() / 4);
}

// Throws UserError if a letter is too long, since MPI counts the bytes of a message in an int.
void check_fits_letter(std::size_t content_bytes) {
  constexpr std::size_t account = 16 << 20;
  constexpr std::size_t most = std::numeric_limits<int>::max() - sizeof(LetterHead) - account;
  if (content_bytes <= most) return;
  throw UserError(fmt::format(
      "the weights of a parameter server take {} bytes, but a letter to it has room for {}; raise "
      "distributed.servers",
      content_bytes, most));
}

void post_letter(Mailbox& mailbox, int to, int tag, std::span<const std::byte> letter) {
  for (Wait wait(mailbox.deadline_seconds()); mailbox.post(to, tag, letter) == Posted::full; wait.pause())
    if (wait.expired()) mailbox.give_up(mailbox.deadline_seconds(), "room for a letter");
}

LetterHead head_of(const Letter& letter) {
  if (letter.bytes.size() < sizeof(LetterHead))
    throw InternalError(fmt::format("rank {} has sent {} bytes that are not a letter of a parameter server",
                                    letter.from, letter.bytes.size()));
  LetterHead head;
  std::memcpy(&head, letter.bytes.data(), sizeof head);
  return head;
}

std::span<const std::byte> content_of(const Letter& letter) {
  return std::span(letter.bytes).subspan(sizeof(LetterHead));
}

}  // namespace plexaura
