#include "distributed/server/parameter_client.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace plexaura {

ParameterClient::ParameterClient(Mailbox& mailbox, const ServerRule& rule,
                                 std::optional<std::int64_t> push_every)
    : mailbox_(mailbox), rule_(rule), push_every_(push_every) {}

void ParameterClient::begin(WeightsImmigration& border) {
  weights_.emplace(border);
  const std::span<const std::byte> bytes = weights_->bytes();
  letter_.emplace(bytes.size());
  const bool keeps = rule_.push == ServerRule::Push::changes;
  began_.resize(keeps ? bytes.size() : 0);
  if (keeps) std::ranges::copy(bytes, began_.begin());
}

Draw ParameterClient::draw(std::int64_t first, std::int64_t end) {
  if (!deal_began_) deal_began_ = seconds_now();
  const LetterHead drawn =
      head_of(ask({.word = Word::draw, .step = first, .end = end}, false, "the next part of the epoch"));
  return {drawn.step, drawn.part < 0 ? std::nullopt : std::optional(drawn.part)};
}

void ParameterClient::stop() {
  if (!std::exchange(stopped_, true)) post({.word = Word::stop}, false);
}

void ParameterClient::count_step() {
  if (++steps_ == push_every_) push(Word::push, "the weights of the server");
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
  const std::span<const std::byte> own = weights_->bytes();
  if (has_learned)
    with_elements(weights_->dtype(), [&]<class T>(T) {
      compose_push<T>(rule_, elements_of<const T>(own),
                      elements_of<const T>(std::as_bytes(std::span(began_))),
                      elements_of<T>(letter_->content()));
    });
  const Letter answer = ask({.word = word, .version = version_, .steps = steps_}, has_learned, what);
  version_ = head_of(answer).version;
  steps_ = 0;
  const std::span<const std::byte> got = content_of(answer);
  std::ranges::copy(got, weights_->bytes().begin());
  weights_->store();
  if (!began_.empty()) std::ranges::copy(got, began_.begin());
}

Letter ParameterClient::ask(const LetterHead& head, bool with_content, std::string_view what) {
  const double begin = seconds_now();
  post(head, with_content);
  Letter answer = await(what);
  waited_ += seconds_now() - begin;
  return answer;
}

Letter ParameterClient::await(std::string_view what) {
  const double deadline = mailbox_.deadline_seconds();
  while (auto letter = mailbox_.take_from_living(server_tag, deadline, what))
    if (head_of(*letter).word != Word::patience) return std::move(*letter);
  mailbox_.give_up(deadline, what);
}

// The server has answered all before, so that it has left. A server that has died is found where its answer is awaited.
void ParameterClient::post(const LetterHead& head, bool with_content) {
  if (mailbox_.post(server_rank, server_tag, letter_->seal(head, with_content)) == Posted::full)
    throw InternalError(fmt::format("the letters of rank {} to the server do not leave", mailbox_.rank()));
}

}  // namespace plexaura
