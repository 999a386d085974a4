#include "distributed/server/parameter_client.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/ranks/rank_lost.h"

namespace plexaura {

namespace {

constexpr std::string_view answer_to_a_push = "the weights of the server";
// With each tag: weights, behind some words of patience.
constexpr std::int64_t most_arriving = 4;

}  // namespace

ParameterClient::ParameterClient(Mailbox& mailbox, const ServerRule& rule,
                                 std::optional<std::int64_t> push_every, ClientKind kind, bool keeps_snapshot)
    : mailbox_(mailbox),
      rule_(rule),
      push_every_(push_every),
      keeps_snapshot_(keeps_snapshot),
      unheard_(seconds_between_letters(mailbox)) {
  if (kind == ClientKind::threaded)
    driver_ = std::make_unique<MailDriver>(mailbox_, std::vector{deal_tag, weights_tag}, most_arriving);
}

void ParameterClient::begin(WeightsImmigration& border) {
  weights_.emplace(border);
  const std::span<std::byte> bytes = weights_->fetch();
  check_fits_letter(bytes.size());
  letter_.emplace(bytes.size());
  if (newest_) {
    std::ranges::copy(content_of(*newest_).first(bytes.size()), bytes.begin());
    weights_->store();
    version_ = head_of(*newest_).version;
  } else if (keeps_snapshot_) {
    newest_ = snapshot_of_the_beginning(bytes);
  }
  const bool keeps = driver_ || rule_.push == ServerRule::Push::changes;
  began_.resize(keeps ? bytes.size() : 0);
  if (keeps) std::ranges::copy(bytes, began_.begin());
}

Snapshot ParameterClient::snapshot_of_the_beginning(std::span<const std::byte> weights) const {
  ClientTable table;
  for (int rank = server_rank + 1; rank < mailbox_.size(); ++rank) table.add(mailbox_.number(rank));
  Draft draft(weights.size());
  std::ranges::copy(weights, draft.content().begin());
  const auto letter = draft.seal_all({.word = Word::weights}, account_of(PartDeal(0), table));
  return std::make_shared<const Letter>(Letter{server_rank, {letter.begin(), letter.end()}});
}

Draw ParameterClient::draw(const DealtSteps& steps) {
  if (!deal_began_) deal_began_ = seconds_now();
  if (!has_asked_) ask_for_part(steps);
  const LetterHead drawn = head_of(await(Word::part, "the next part of the epoch"));
  has_asked_ = false;
  if (drawn.part < 0) return {drawn.step};
  ask_for_part(steps);
  return {drawn.step, drawn.part};
}

void ParameterClient::ask_for_part(const DealtSteps& steps) {
  post({.word = Word::draw, .deal = steps});
  has_asked_ = true;
}

void ParameterClient::stop() {
  if (!std::exchange(stopped_, true)) post({.word = Word::stop});
}

void ParameterClient::count_step() {
  const bool is_push_due = ++steps_ == push_every_;
  if (is_answer_due_ && is_push_due) await_answer(answer_to_a_push);
  if (is_answer_due_)
    if (auto answer = answer_that_has_come()) take_in(*std::move(answer));
  if (is_push_due) {
    push(Word::push);
    if (!driver_) await_answer(answer_to_a_push);
  } else if (unheard_.expired()) {
    post({.word = Word::patience});
  }
}

void ParameterClient::rest() {
  if (is_answer_due_) await_answer(answer_to_a_push);
  push(Word::rest);
  Letter answer = await(Word::weights, "the weights of all clients");
  is_over_ = head_of(answer).again == 0;
  take_in(std::move(answer));
  if (!is_over_) return;
  stopped_ = false;
  elapsed_ = elapsed();
  deal_began_.reset();
}

void ParameterClient::leave() { post({.word = Word::leave}); }

void ParameterClient::go_on_from(const ParameterClient& former) {
  elapsed_ = former.elapsed_;
  waited_ = former.waited_;
  newest_ = former.newest_;
}

double ParameterClient::elapsed() const {
  return elapsed_ + (deal_began_ ? seconds_now() - *deal_began_ : 0);
}

void ParameterClient::push(Word word) {
  const bool has_learned = steps_ > 0;
  const std::span<const std::byte> own = weights_->fetch();
  if (has_learned)
    with_elements(weights_->dtype(), [&]<class T>(T) {
      compose_push<T>(rule_, elements_of<const T>(own),
                      elements_of<const T>(std::as_bytes(std::span(began_))),
                      elements_of<T>(letter_->content()));
    });
  post({.word = word, .version = version_, .steps = steps_}, has_learned);
  if (!began_.empty()) std::ranges::copy(own, began_.begin());
  steps_ = 0;
  is_answer_due_ = true;
}

void ParameterClient::await_answer(std::string_view what) { take_in(await(Word::weights, what)); }

std::optional<Letter> ParameterClient::answer_that_has_come() {
  const auto lock = hold_mailbox();
  while (auto letter = mailbox_.take_arrived(weights_tag))
    if (head_of(*letter).word == Word::weights) return letter;
  return std::nullopt;
}

// Buffers that have gone on stay this client's own until it rests: they follow its samples, and a running variance that
// went on as weights do could fall below 0.
void ParameterClient::take_in(Letter answer) {
  const std::span<std::byte> own = weights_->fetch();
  std::span<const std::byte> got = content_of(answer).first(own.size());
  if (steps_ == 0)
    std::ranges::copy(got, own.begin());
  else
    with_elements(weights_->dtype(), [&]<class T>(T) {
      got = got.first(weights_->trainables() * sizeof(T));
      carry_on<T>(elements_of<const T>(got), elements_of<const T>(std::as_bytes(std::span(began_))),
                  elements_of<T>(own.first(got.size())));
    });
  weights_->store();
  if (!began_.empty()) std::ranges::copy(got, began_.begin());
  version_ = head_of(answer).version;
  is_answer_due_ = false;
  if (keeps_snapshot_) newest_ = std::make_shared<const Letter>(std::move(answer));
}

// Of both kinds of answers some may be under way, each with a tag of its own.
Letter ParameterClient::await(Word word, std::string_view what) {
  const double begin = seconds_now();
  const auto lock = hold_mailbox();
  while (true) {
    auto letter = take(tag_of(word), what);
    if (!letter) continue;
    const Word come = head_of(*letter).word;
    if (come == Word::regroup) throw RankLost("a client of the parameter server has died", {}, "", true);
    if (come != word) continue;
    if (deal_began_) waited_ += seconds_now() - begin;
    return std::move(*letter);
  }
}

// Nothing where another client has died: what is to be done then is the server's to say.
std::optional<Letter> ParameterClient::take(int tag, std::string_view what) {
  const double deadline = mailbox_.deadline_seconds();
  try {
    if (auto letter = mailbox_.take_from_living(tag, deadline, what)) return letter;
    mailbox_.give_up(deadline, what);
  } catch (const RankLost& loss) {
    const std::vector<int> lost = mailbox_.ranks_of(loss);
    if (!loss.is_outlived() || std::ranges::find(lost, server_rank) != lost.end()) throw;
    mailbox_.spare(lost);
    return std::nullopt;
  }
}

void ParameterClient::post(LetterHead head, bool with_content) {
  head.elapsed_seconds = elapsed();
  head.waited_seconds = waited_;
  const auto lock = hold_mailbox();
  post_letter(mailbox_, server_rank, tag_of(head.word),
              with_content ? letter_->seal_all(head) : letter_->seal(head));
  unheard_.progressed();
}

// While this lives no other thread uses it.
std::unique_lock<std::mutex> ParameterClient::hold_mailbox() {
  return driver_ ? driver_->hold() : std::unique_lock<std::mutex>();
}

}  // namespace plexaura
