#include "distributed/server/letters.h"

#include <cstring>
#include <fmt/format.h>

#include "core/error.h"

namespace plexaura {

std::span<const std::byte> Draft::seal(const LetterHead& head, bool with_content) {
  std::memcpy(bytes_.data(), &head, sizeof head);
  return std::span(bytes_).first(with_content ? bytes_.size() : sizeof head);
}

LetterHead head_of(const Letter& letter) {
  if (letter.bytes.size() < sizeof(LetterHead))
    throw InternalError(fmt::format("rank {} has sent {} bytes that are no letter of a parameter server",
                                    letter.from, letter.bytes.size()));
  LetterHead head;
  std::memcpy(&head, letter.bytes.data(), sizeof head);
  return head;
}

std::span<const std::byte> content_of(const Letter& letter) {
  return std::span(letter.bytes).subspan(sizeof(LetterHead));
}

}  // namespace plexaura
