#include "distributed/server/parameter_client.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace plexaura {

ParameterClient::ParameterClient(Mailbox& mailbox, const ServerRule& rule,
                                 std::optional<std::int64_t> push_every)
    : mailbox_(mailbox), rule_(rule), push_every_(push_every), unheard_(seconds_between_letters(mailbox)) {}

void ParameterClient::begin(WeightsImmigration& border) {
  weights_.emplace(border);
  const std::span<const std::byte> bytes = weights_->fetch();
  check_fits_letter(bytes.size());
  letter_.emplace(bytes.size());
  const bool keeps = rule_.push == ServerRule::Push::changes;
  began_.resize(keeps ? bytes.size() : 0);
  if (keeps) std::ranges::copy(bytes, began_.begin());
}

Draw ParameterClient::draw(std::int64_t first, std::int64_t end) {
  if (!deal_began_) deal_began_ = seconds_now();
  if (!has_asked_) ask_for_part(first, end);
  const LetterHead drawn = head_of(await(Word::part, "the next part of the epoch"));
  has_asked_ = false;
  if (drawn.part < 0) return {drawn.step};
  ask_for_part(first, end);
  return {drawn.step, drawn.part};
}

void ParameterClient::ask_for_part(std::int64_t first, std::int64_t end) {
  post({.word = Word::draw, .step = first, .end = end}, false);
  has_asked_ = true;
}

void ParameterClient::stop() {
  if (!std::exchange(stopped_, true)) post({.word = Word::stop}, false);
}

void ParameterClient::count_step() {
  if (++steps_ == push_every_) return push(Word::push, "the weights of the server");
  if (unheard_.expired()) post({.word = Word::patience}, false);
}

void ParameterClient::rest() {
  push(Word::rest, "the weights of all clients");
  stopped_ = false;
  if (deal_began_) elapsed_ += seconds_now() - *deal_began_;
  deal_began_.reset();
}

void ParameterClient::leave() {
  post({.word = Word::leave, .waited_seconds = waited_, .elapsed_seconds = elapsed_}, false);
}

void ParameterClient::push(Word word, std::string_view what) {
  const bool has_learned = steps_ > 0;
  const std::span<std::byte> own = weights_->fetch();
  if (has_learned)
    with_elements(weights_->dtype(), [&]<class T>(T) {
      compose_push<T>(rule_, elements_of<const T>(std::as_bytes(own)),
                      elements_of<const T>(std::as_bytes(std::span(began_))),
                      elements_of<T>(letter_->content()));
    });
  post({.word = word, .version = version_, .steps = steps_}, has_learned);
  const Letter answer = await(Word::weights, what);
  version_ = head_of(answer).version;
  steps_ = 0;
  const std::span<const std::byte> got = content_of(answer);
  std::ranges::copy(got, own.begin());
  weights_->store();
  if (!began_.empty()) std::ranges::copy(got, began_.begin());
}

// Of the two answers that may be under way, a part may come first.
Letter ParameterClient::await(Word word, std::string_view what) {
  if (word == Word::part && part_) return *std::exchange(part_, std::nullopt);
  const double begin = seconds_now();
  const double deadline = mailbox_.deadline_seconds();
  while (auto letter = mailbox_.take_from_living(server_tag, deadline, what)) {
    const Word got = head_of(*letter).word;
    if (got == word) {
      if (deal_began_) waited_ += seconds_now() - begin;
      return std::move(*letter);
    }
    if (got == Word::part) part_ = std::move(letter);
  }
  mailbox_.give_up(deadline, what);
}

void ParameterClient::post(const LetterHead& head, bool with_content) {
  post_letter(mailbox_, server_rank, letter_->seal(head, with_content));
  unheard_.progressed();
}

}  // namespace plexaura
