#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/dealer.h"
#include "distributed/communicator/mailbox.h"

namespace plexaura {

// The first rank, which deals out the data, and has all weights, or the first of their shards.
constexpr int server_rank = 0;

enum class Word : std::int64_t {
  // From a client, which waits for one answer of each kind at most.
  draw,  // asks for a part of the steps of `deal`: answered by `part`, the first when all clients ask or rest
  push,  // what it has learned since it got its weights: answered by `weights`
  rest,  // the same, for nothing more is dealt: answered when all clients rest, or parts are dealt again
  stop,  // asks that no further step be dealt; no answer
  leave,  // its work is over; no answer
  // From the server.
  part,
  weights,
  regroup,  // a client has died, and no deal is open: all that live come together anew; it answers nothing
  // From both.
  patience  // it is at work, and what it owes is still to come; no answer
};

// Letters with weights are long: those that deal out the data travel apart, so that they need not wait for them.
constexpr int deal_tag = 0;
constexpr int weights_tag = 1;
int tag_of(Word word);

// The beginning of every letter. Weights, or changes of them, follow it in `push`, `rest` and `weights`: trainables and
// buffers as they lie in the value arena, or the server's shard of them. In `weights` the server's account follows these where a client may succeed it, so that the letter is a Snapshot.
struct LetterHead {
  Word word = Word::patience;
  DealtSteps deal = {};      // draw
  std::int64_t step = 0;     // part: that of the part
  std::int64_t part = 0;     // part: its number; below 0 where none is left
  std::int64_t version = 0;  // weights: theirs; push and rest: that of the weights it began with
  std::int64_t number = 0;   // weights: of the answer, counted over all servers of the run
  std::int64_t steps = 0;    // push and rest: in which it learned; where there are none, nothing follows
  std::int64_t again = 0;    // weights: other than 0 where parts are dealt again, so that who rests draws on
  // Of a client, in all, without what comes between two deals; and of that what it waited for the server and for others.
  double elapsed_seconds = 0;
  double waited_seconds = 0;
};

// A letter that is composed again and again, in the same memory.
class Draft {
 public:
  explicit Draft(std::size_t content_bytes)
      : content_bytes_(content_bytes), bytes_(sizeof(LetterHead) + content_bytes) {}

  std::span<std::byte> content() { return std::span(bytes_).subspan(sizeof(LetterHead), content_bytes_); }
  // The head alone ...
  std::span<const std::byte> seal(const LetterHead& head);
  // ... and the whole of it, with what follows the content.
  std::span<const std::byte> seal_all(const LetterHead& head, std::string_view account = {});

 private:
  std::size_t content_bytes_;
  std::vector<std::byte> bytes_;
};

// A server and clients at work write at least so often: a fraction of the mailbox's deadline.
double seconds_between_letters(const Mailbox& mailbox);

// Throws UserError for weights of so many bytes that no letter holds them and an account.
void check_fits_letter(std::size_t content_bytes);

// Posts it, when there is room. Ends the run, as Mailbox::give_up() does, where there is none within the deadline. Whether
// the other end has died is found where its letters are awaited.
void post_letter(Mailbox& mailbox, int to, int tag, std::span<const std::byte> letter);

// What a letter holds; the content with what follows it. InternalError where it is shorter than a head.
LetterHead head_of(const Letter& letter);
std::span<const std::byte> content_of(const Letter& letter);

}  // namespace plexaura
