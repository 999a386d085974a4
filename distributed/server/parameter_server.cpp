#include "distributed/server/parameter_server.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/error.h"
#include "distributed/server/shared_weights.h"

namespace plexaura {

namespace {

constexpr const char* awaited = "the end of the epoch";
constexpr std::array tags{deal_tag, weights_tag};

}  // namespace

ParameterServer::ParameterServer(Mailbox& mailbox, const ServerRule& rule,
                                 std::optional<std::int64_t> max_staleness)
    : mailbox_(mailbox),
      rule_(rule),
      max_staleness_(max_staleness),
      clients_(static_cast<std::size_t>(mailbox.size() - 1)),
      deal_(mailbox.size() - 1),
      table_(mailbox.size() - 1) {}

void ParameterServer::serve(WeightsImmigration& border) {
  const SharedWeights weights(border);
  dtype_ = weights.dtype();
  trainables_ = weights.trainables();
  const std::span<const std::byte> bytes = weights.fetch();
  answer_.emplace(bytes.size());
  std::ranges::copy(bytes, answer_->content().begin());
  const double interval = seconds_between_letters(mailbox_);
  Wait silence(mailbox_.deadline_seconds());
  Wait unanswered(interval);
  while (!all_are(State::gone)) {
    const auto letter = mailbox_.take_from_living(tags, interval, awaited);
    if (letter) read(*letter);
    if (letter || !somebody_waits()) silence.progressed();
    if (silence.expired()) mailbox_.give_up(mailbox_.deadline_seconds(), awaited);
    if (!unanswered.expired()) continue;
    ask_for_patience();
    unanswered.progressed();
  }
}

bool ParameterServer::all_are(State state) const {
  return std::ranges::all_of(clients_, [&](const Client& each) { return each.state == state; });
}

bool ParameterServer::somebody_waits() const {
  return std::ranges::any_of(clients_, &Client::awaits_weights);
}

void ParameterServer::read(const Letter& letter) {
  const LetterHead head = head_of(letter);
  switch (head.word) {
    case Word::draw: {
      const Draw drawn = deal_.draw(head.step, head.end);
      return post(letter.from,
                  {.word = Word::part, .step = drawn.step_in_epoch, .part = drawn.part.value_or(-1)}, false);
    }
    case Word::push:
    case Word::rest:
      take_push(letter, head);
      client(letter.from).state = head.word == Word::push ? State::waits : State::rests;
      return go_on();
    case Word::stop:
      return deal_.stop();
    case Word::leave:
      table_.set_times(letter.from - 1, head.waited_seconds, head.elapsed_seconds);
      client(letter.from).state = State::gone;
      return;
    case Word::patience:
      return;  // that it has come is all it says
    default:
      throw InternalError(fmt::format("rank {} has sent the server a letter with the word {}", letter.from,
                                      static_cast<int>(head.word)));
  }
}

void ParameterServer::take_push(const Letter& letter, const LetterHead& head) {
  if (head.steps == 0) return;
  const std::span<const std::byte> pushed = content_of(letter);
  const std::span<std::byte> weights = answer_->content();
  if (pushed.size() != weights.size())
    throw InternalError(fmt::format("rank {} has pushed {} bytes to a server with {} bytes of weights",
                                    letter.from, pushed.size(), weights.size()));
  const std::int64_t staleness = version_ - head.version;
  const auto clients = std::ssize(clients_);
  with_elements(dtype_, [&]<class T>(T) {
    mix_in<T>(rule_, staleness, clients, trainables_, elements_of<const T>(pushed), elements_of<T>(weights));
  });
  ++version_;
  ++client(letter.from).pushes;
  table_.add_push(letter.from - 1, head.steps, staleness);
}

// Answers those that may go on.
void ParameterServer::go_on() {
  const bool all_rest = all_are(State::rests);
  for (int rank = 1; rank < mailbox_.size(); ++rank) {
    Client& waiting = client(rank);
    if (!all_rest && (waiting.state != State::waits || is_ahead(waiting))) continue;
    send_weights(rank);
    if (all_rest) waiting.pushes = 0;
    waiting.state = State::works;
  }
  if (all_rest) deal_.close();
}

// The slowest is never ahead, so that somebody always goes on. Those that rest push no more.
bool ParameterServer::is_ahead(const Client& client) const {
  if (!max_staleness_) return false;
  return std::ranges::any_of(clients_, [&](const Client& other) {
    return other.state != State::rests && client.pushes - other.pushes > *max_staleness_;
  });
}

void ParameterServer::send_weights(int rank) {
  post(rank, {.word = Word::weights, .version = version_}, true);
}

void ParameterServer::post(int rank, const LetterHead& head, bool with_weights) {
  post_letter(mailbox_, rank, tag_of(head.word), answer_->seal(head, with_weights));
}

void ParameterServer::ask_for_patience() {
  for (int rank = 1; rank < mailbox_.size(); ++rank)
    if (client(rank).awaits_weights()) post(rank, {.word = Word::patience}, false);
}

}  // namespace plexaura
