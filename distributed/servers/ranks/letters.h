#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/dealer.h"
#include "distributed/communicator/mailbox.h"

namespace plexaura {

// The first rank deals out the data and has all weights, or the first shard of them.
constexpr int server_rank = 0;

enum class Word : std::int64_t {
  // From a client, which waits for one answer of each kind at most.
  draw,  // asks for a part of the steps of `deal`; answered by `part`; the first one when all clients draw or rest
  push,   // brings what the client has learned since it got its weights; answered by `weights`
  rest,   // a push at the end of a deal; answered by `weights` when all clients rest or parts are dealt again
  stop,   // asks that no further step be dealt; no answer
  leave,  // ends the client's work; no answer
  // From the server.
  part,
  weights,
  regroup,  // a client has died while no deal is open: the survivors make a new communicator; no answer
  // From both.
  patience  // the sender is at work, and its answer is still to come; no answer
};

// Letters that deal out the data have a tag of their own, so that they do not wait for the long letters with weights.
constexpr int deal_tag = 0;
constexpr int weights_tag = 1;
int tag_of(Word word);

// The beginning of every letter. In `push`, `rest` and `weights`, weights or changes of weights follow: trainables and buffers
// as they lie in the value arena, or the server's shard of them. If a client may succeed the server, `weights` ends with the server's
// account, so that the letter is a Snapshot.
struct LetterHead {
  Word word = Word::patience;
  DealtSteps deal = {};      // draw
  std::int64_t step = 0;     // part: that of the part
  std::int64_t part = 0;     // part: its number; below 0 if none is left
  std::int64_t version = 0;  // weights: theirs; push and rest: that of the weights it began with
  std::int64_t number = 0;   // weights: of the answer, counted over all servers of the run
  std::int64_t steps = 0;    // push and rest: the steps since the last push; if 0, no weights follow
  std::int64_t again = 0;  // weights: not 0 if parts are dealt again, so that a client that rests draws again
  // The time that a client has spent in deals, and how much of it the client has waited for the server and for others.
  double elapsed_seconds = 0;
  double waited_seconds = 0;
};

// Memory in which one letter after another is composed.
class Draft {
 public:
  explicit Draft(std::size_t content_bytes)
      : content_bytes_(content_bytes), bytes_(sizeof(LetterHead) + content_bytes) {}

  std::span<std::byte> content() { return std::span(bytes_).subspan(sizeof(LetterHead), content_bytes_); }
  // Writes the head and returns it without the content.
  std::span<const std::byte> seal(const LetterHead& head);
  // Writes the head and returns the whole letter, with the account after the content.
  std::span<const std::byte> seal_all(const LetterHead& head, std::string_view account = {});

 private:
  std::size_t content_bytes_;
  std::vector<std::byte> bytes_;
};

// Returns the longest time in seconds between two letters of a server or client at work: a fraction of the
// mailbox's deadline.
double seconds_between_letters(const Mailbox& mailbox);

// Throws UserError if weights with this number of bytes and an account do not fit into a letter.
void check_fits_letter(std::size_t content_bytes);

// Posts the letter as soon as there is room. Throws as Mailbox::give_up() does if there is no room within the
// deadline. The ranks that wait for letters of the receiver notice its death.
void post_letter(Mailbox& mailbox, int to, int tag, std::span<const std::byte> letter);

// Return the head of a letter, and its content with the account. head_of() throws InternalError if the letter is shorter than a head.
LetterHead head_of(const Letter& letter);
std::span<const std::byte> content_of(const Letter& letter);

}  // namespace plexaura
