#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/dealer.h"
#include "distributed/communicator/mailbox.h"

namespace plexaura {

// The number of the rank that deals out the data. It has all weights, or the first shard of them.
constexpr int server_rank = 0;

enum class Word : std::int64_t {
  // Sent by a client, which waits for at most one answer of each kind:

  // Asks for a part of the steps of `deal`. Answered by `part`; the first answer comes when all clients draw
  // or rest.
  draw,
  push,  // brings what the client has learned since it got its weights; answered by `weights`
  // Brings the push at the end of a deal; answered by `weights` when all clients rest or parts are dealt
  // again.
  rest,
  stop,   // demands that no further step is dealt; no answer
  leave,  // ends the client's work; no answer
  // Sent by the server:
  part,
  weights,
  // Reports that a client has died while no deal is open, so that the survivors make a new communicator; no
  // answer.
  regroup,
  // Sent by the server and by clients:
  patience  // shows that the sender is at work and will still answer; no answer
};

// Letters that deal out the data have a tag of their own, so that they do not wait for the long letters with weights.
constexpr int deal_tag = 0;
constexpr int weights_tag = 1;
int tag_of(Word word);

// The beginning of every letter. In `push`, `rest` and `weights`, weights or changes of weights follow:
// trainable parameters and buffers with their layout in the value arena, or the server's shard of them. If a
// client may later replace the server, `weights` ends with the server's account, so that the letter is a
// Snapshot.
struct LetterHead {
  Word word = Word::patience;
  DealtSteps deal = {};   // for draw: the steps to draw from
  std::int64_t step = 0;  // for part: number of the part's step in the epoch
  std::int64_t part = 0;  // for part: number of the part in its step; negative: none is left
  // For weights: version of the weights; for push and rest: version of the weights with which the client
  // began.
  std::int64_t version = 0;
  std::int64_t number = 0;  // for weights: number of the answer of this server and of the servers before it
  std::int64_t steps = 0;   // for push and rest: number of steps since the last push; if 0, no weights follow
  // For weights: not 0 if parts are dealt again, so that a resting client draws again.
  std::int64_t again = 0;
  // The seconds that a client has spent in deals, and the seconds of them in which it has waited for the
  // server and for others.
  double elapsed_seconds = 0;
  double waited_seconds = 0;
};

// Memory for writing one letter after another.
class Draft {
 public:
  explicit Draft(std::size_t content_bytes)
      : content_bytes_(content_bytes), bytes_(sizeof(LetterHead) + content_bytes) {}

  std::span<std::byte> content() { return std::span(bytes_).subspan(sizeof(LetterHead), content_bytes_); }
  // Writes the head. Returns the head as a letter without content.
  std::span<const std::byte> seal(const LetterHead& head);
  // Writes the head. Returns the whole letter, with the account after the content.
  std::span<const std::byte> seal_all(const LetterHead& head, std::string_view account = {});

 private:
  std::size_t content_bytes_;
  std::vector<std::byte> bytes_;
};

// Returns the longest time in seconds between two letters of a server or client at work: a quarter of the
// mailbox's deadline, but at most a second.
double seconds_between_letters(const Mailbox& mailbox);

// Throws UserError if a letter cannot hold this number of bytes of weights, and an account.
void check_fits_letter(std::size_t content_bytes);

// Posts the letter as soon as there is room. If there is no room within the deadline, throws the error of
// Mailbox::give_up(). The death of the receiver is no error here: ranks that wait for its letters notice it.
void post_letter(Mailbox& mailbox, int to, int tag, std::span<const std::byte> letter);

// head_of() returns the head of a letter; it throws InternalError if the letter is shorter than a head.
// content_of() returns the content with the account.
LetterHead head_of(const Letter& letter);
std::span<const std::byte> content_of(const Letter& letter);

}  // namespace plexaura
