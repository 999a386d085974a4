#include "distributed/servers/ranks/parameter_client.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/exchange/rank_lost.h"

namespace plexaura {

namespace {

constexpr std::string_view answer_to_a_push = "the weights of the server";
// The number of letters that may arrive with each tag from each server: weights, after some letters of
// patience.
constexpr std::int64_t most_arriving_of_a_server = 4;

}  // namespace

ParameterClient::ParameterClient(Mailbox& mailbox, int servers, const ServerRule& rule,
                                 std::optional<std::int64_t> push_every, ClientKind kind, bool keeps_snapshot)
    : mailbox_(mailbox),
      rule_(rule),
      push_every_(push_every),
      keeps_snapshot_(keeps_snapshot),
      server_count_(servers) {
  if (kind == ClientKind::threaded)
    driver_ = std::make_unique<MailDriver>(mailbox_, std::vector{deal_tag, weights_tag},
                                           most_arriving_of_a_server * servers);
}

void ParameterClient::begin(WeightsImmigration& border) {
  weights_.emplace(border);
  const std::span<std::byte> bytes = weights_->fetch();
  for (int rank = 0; rank < server_count_; ++rank) {
    const Shard shard = weights_->shard(rank, server_count_);
    check_fits_letter(shard.bytes);
    servers_.push_back({shard, Draft(shard.bytes), 0, Wait(seconds_between_letters(mailbox_))});
  }
  if (newest_) {
    std::ranges::copy(content_of(*newest_).first(bytes.size()), bytes.begin());
    weights_->store();
    servers_.front().version = head_of(*newest_).version;
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
  post(server_rank, {.word = Word::draw, .deal = steps});
  has_asked_ = true;
}

void ParameterClient::stop() {
  if (!std::exchange(stopped_, true)) post(server_rank, {.word = Word::stop});
}

bool ParameterClient::count_step() {
  if (++steps_ == push_every_) {
    const bool had_come = await_answers(answer_to_a_push);
    push(Word::push);
    return (!driver_ && await_answers(answer_to_a_push)) || had_come;
  }
  const bool have_come = answers_due_ > 0 && take_in(answers_that_have_come());
  for (int rank = 0; rank < servers(); ++rank)
    if (server(rank).unheard.expired()) post(rank, {.word = Word::patience});
  return have_come;
}

void ParameterClient::show_weights() {
  await_answers(answer_to_a_push);
  push(Word::rest);
  await_answers("the weights of all clients");
  if (!is_over_) return;
  stopped_ = false;
  elapsed_ = elapsed();
  deal_began_.reset();
}

void ParameterClient::leave() {
  for (int rank = 0; rank < servers(); ++rank) post(rank, {.word = Word::leave});
}

void ParameterClient::continue_from(const ParameterClient& former) {
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
  for (int rank = 0; rank < servers(); ++rank) {
    Server& to = server(rank);
    if (has_learned)
      compose_push(rule_, {weights_->dtype(), to.shard.trainables}, to.shard.of(own), began(to.shard),
                   to.letter.content());
    post(rank, {.word = word, .version = to.version, .steps = steps_}, has_learned);
  }
  if (!began_.empty()) std::ranges::copy(own, began_.begin());
  steps_ = 0;
  answers_due_ = servers();
}

// Returns the kept weights of a shard. Returns an empty span if they are not kept.
std::span<std::byte> ParameterClient::began(const Shard& shard) {
  return began_.empty() ? std::span<std::byte>() : shard.of(std::span(began_));
}

// Waits for the answers that are due. Returns true if answers were due.
bool ParameterClient::await_answers(std::string_view what) {
  std::vector<Letter> answers;
  while (std::ssize(answers) < answers_due_) answers.push_back(await(Word::weights, what));
  return take_in(std::move(answers));
}

std::vector<Letter> ParameterClient::answers_that_have_come() {
  const auto lock = hold_mailbox();
  std::vector<Letter> answers;
  while (auto letter = mailbox_.take_arrived(weights_tag))
    if (head_of(*letter).word == Word::weights) answers.push_back(*std::move(letter));
  return answers;
}

// Takes in the weights of the answers. Returns true if there are answers.
bool ParameterClient::take_in(std::vector<Letter> answers) {
  if (answers.empty()) return false;
  const std::span<std::byte> own = weights_->fetch();
  for (Letter& answer : answers) take_in(std::move(answer), own);
  weights_->store();
  return true;
}

// Takes in the weights of one answer. If this client has made steps since its push, it keeps its own buffers until it
// rests. They follow its samples. A running variance that was corrected as weights are could fall below 0.
void ParameterClient::take_in(Letter answer, std::span<std::byte> own) {
  Server& from = server(answer.from);
  const Shard& shard = from.shard;
  std::span<const std::byte> got = content_of(answer).first(shard.bytes);
  if (steps_ == 0)
    std::ranges::copy(got, shard.of(own).begin());
  else
    with_elements(weights_->dtype(), [&]<class T>(T) {
      got = got.first(shard.trainables * sizeof(T));
      carry_on<T>(elements_of<const T>(got), elements_of<const T>(std::as_bytes(began(shard))),
                  elements_of<T>(shard.of(own).first(got.size())));
    });
  if (!began_.empty()) std::ranges::copy(got, began(shard).begin());
  from.version = head_of(answer).version;
  is_over_ = head_of(answer).again == 0;
  --answers_due_;
  if (keeps_snapshot_) newest_ = std::make_shared<const Letter>(std::move(answer));
}

// Waits for an answer of this kind. Answers of two kinds may be under way at once, so each kind has a tag of
// its own.
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

// Takes the next letter with this tag. Returns nothing if another client has died: the server decides what
// happens then.
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

void ParameterClient::post(int rank, LetterHead head, bool with_content) {
  head.elapsed_seconds = elapsed();
  head.waited_seconds = waited_;
  Server& to = server(rank);
  const auto lock = hold_mailbox();
  post_letter(mailbox_, rank, tag_of(head.word),
              with_content ? to.letter.seal_all(head) : to.letter.seal(head));
  to.unheard.progressed();
}

// Returns the lock of the mailbox. No other thread uses the mailbox while the lock is held.
std::unique_lock<std::mutex> ParameterClient::hold_mailbox() {
  return driver_ ? driver_->hold() : std::unique_lock<std::mutex>();
}

}  // namespace plexaura
