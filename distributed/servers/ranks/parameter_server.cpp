#include "distributed/servers/ranks/parameter_server.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/events.h"
#include "core/base/print.h"
#include "distributed/servers/ranks/shared_weights.h"
#include "distributed/wire/failure.h"

namespace plexaura {

namespace {

constexpr const char* awaited = "the end of the epoch";
constexpr std::array tags{deal_tag, weights_tag};

}  // namespace

ParameterServer::ParameterServer(Mailbox& mailbox, int servers, const ServerRule& rule,
                                 std::optional<std::int64_t> max_staleness, double push_limit,
                                 bool may_be_succeeded)
    : mailbox_(mailbox),
      servers_(servers),
      rule_(rule),
      max_staleness_(max_staleness),
      judge_(push_limit),
      may_be_succeeded_(may_be_succeeded),
      clients_(static_cast<std::size_t>(mailbox.size() - servers)),
      deal_(mailbox.size() - servers) {
  for (const int rank : living()) table_.add(mailbox_.number(rank));
}

void ParameterServer::continue_from(const ClientTable& table) {
  std::vector<int> numbers;
  for (const int rank : living()) numbers.push_back(mailbox_.number(rank));
  table_ = table;
  table_.keep_alive(numbers, mailbox_.number(server_rank));
}

void ParameterServer::begin_with(Snapshot snapshot) {
  begins_with_ = std::move(snapshot);
  if (!begins_with_) return;
  version_ = head_of(*begins_with_).version;
  answers_ = head_of(*begins_with_).number;
}

Snapshot ParameterServer::newest() const {
  if (!answer_) return begins_with_;
  Draft draft = *answer_;
  const auto letter = draft.seal_all({.word = Word::weights, .version = version_, .number = answers_},
                                     account_of(deal_, table_));
  return std::make_shared<const Letter>(Letter{server_rank, {letter.begin(), letter.end()}});
}

void ParameterServer::serve(WeightsImmigration& border) {
  const SharedWeights weights(border);
  const Shard shard = weights.shard(mailbox_.rank(), servers_);
  form_ = {weights.dtype(), shard.trainables};
  const std::span<const std::byte> bytes = shard.of(weights.fetch());
  answer_.emplace(bytes.size());
  std::ranges::copy(bytes, answer_->content().begin());
  if (begins_with_) take_over(*begins_with_);
  Wait silence(mailbox_.deadline_seconds());
  Wait unanswered(seconds_between_letters(mailbox_));
  while (true) {
    if (is_to_regroup()) regroup();
    if (all_are(State::gone)) return;
    try {
      await_letter(silence);
      if (!unanswered.expired()) continue;
      ask_for_patience();
      unanswered.progressed();
    } catch (const RankLost& loss) {
      if (!loss.is_outlived()) throw;
      lose(loss);
      silence.progressed();
    }
  }
}

void ParameterServer::take_over(const Letter& snapshot) {
  const std::span<std::byte> weights = answer_->content();
  std::ranges::copy(content_of(snapshot).first(weights.size()), weights.begin());
  ClientTable table;
  take_account(snapshot, weights.size(), deal_, table);
  continue_from(table);
}

// True if all living clients are in this state.
bool ParameterServer::all_are(State state) const {
  return std::ranges::all_of(
      clients_, [&](const Client& each) { return each.state == state || each.state == State::lost; });
}

std::vector<int> ParameterServer::living() const {
  std::vector<int> ranks;
  for (int rank = servers_; rank < mailbox_.size(); ++rank)
    if (clients_[static_cast<std::size_t>(index_of(rank))].state != State::lost) ranks.push_back(rank);
  return ranks;
}

// Waits for a letter. `silence` is the time since the last letter while a client waits.
void ParameterServer::await_letter(Wait& silence) {
  const auto letter = mailbox_.take_from_living(tags, seconds_between_letters(mailbox_), awaited);
  if (letter) read(*letter);
  if (letter || std::ranges::none_of(clients_, &Client::waits)) silence.progressed();
  if (silence.expired()) mailbox_.give_up(mailbox_.deadline_seconds(), awaited);
}

// Records a death. Called by the handler that has caught the RankLost.
void ParameterServer::lose(const RankLost& loss) {
  loss_ = std::current_exception();
  const std::vector<int> lost = mailbox_.ranks_of(loss);
  mailbox_.spare(lost);
  std::int64_t parts = 0;
  for (const int rank : lost) {
    client(rank) = {.state = State::lost};
    table_.note_death(mailbox_.number(rank));
    parts += deal_.take_back(index_of(rank));
  }
  if (is_to_regroup()) return;
  say_who_has_died(loss.ranks(), parts);
  proceed();
}

// Prints who has died. Not called if all ranks regroup, because the ranks report the death then.
void ParameterServer::say_who_has_died(const std::vector<int>& numbers, std::int64_t parts) const {
  const std::string sentence =
      fmt::format("{} died; the others are dealt what was drawn and not pushed there (parts of batches: {})",
                  list_ranks(numbers) + (numbers.size() == 1 ? " has" : " have"), parts);
  print_error(sentence);
  report_event(EventKind::survived, std::ssize(living()) + 1, sentence);
}

bool ParameterServer::is_to_regroup() const { return loss_ && (!deal_.is_open() || living().empty()); }

// Lets the survivors make a new communicator. Clients that call each other notice a death themselves. Clients
// that wait for the server do not, so the server informs them.
void ParameterServer::regroup() {
  for (const int rank : living()) post(rank, {.word = Word::regroup});
  std::rethrow_exception(loss_);
}

void ParameterServer::read(const Letter& letter) {
  const LetterHead head = head_of(letter);
  Client& from = client(letter.from);
  if (from.state == State::lost) return;  // the client's parts are dealt again
  table_.set_times(mailbox_.number(letter.from), head.waited_seconds, head.elapsed_seconds);
  switch (head.word) {
    case Word::draw:
      from.asks_for = head.deal;
      return deal_out();
    case Word::push:
      take_push(letter, head);
      deal_.finish(index_of(letter.from), head.steps);
      from.state = State::waits;
      return proceed();
    case Word::rest:
      take_push(letter, head);
      deal_.finish_all(index_of(letter.from));
      from.state = State::rests;
      deal_out();
      return proceed();
    case Word::stop:
      return deal_.stop();
    case Word::leave:
      from.state = State::gone;
      return;
    case Word::patience:
      return;  // the letter has no content; its arrival is the message
    default:
      throw InternalError(fmt::format("rank {} has sent the server a letter with the word {}", letter.from,
                                      static_cast<int>(head.word)));
  }
}

// Answers the clients that ask for parts. A deal opens only when all clients ask for it or rest, so that no client
// draws while others still call each other.
void ParameterServer::deal_out() {
  const auto has_come = [&](int rank) { return client(rank).asks_for || client(rank).state == State::rests; };
  const std::vector<int> ranks = living();
  if (!deal_.is_open() && !std::ranges::all_of(ranks, has_come)) return;
  for (const int rank : ranks) {
    const std::optional<DealtSteps> steps = std::exchange(client(rank).asks_for, std::nullopt);
    if (!steps) continue;
    if (!deal_.is_open()) deal_.open(*steps);
    const Draw drawn = deal_.draw(index_of(rank));
    post(rank, {.word = Word::part, .step = drawn.step_in_epoch, .part = drawn.part.value_or(-1)});
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
  const auto clients = std::ssize(living());
  if (const auto objection = judge_.take_in(rule_, form_, {staleness, clients, pushed}, weights))
    throw UserError(refusal(letter.from, *objection));
  ++version_;
  ++client(letter.from).pushes;
  table_.add_push(mailbox_.number(letter.from), head.steps, staleness);
}

std::string ParameterServer::refusal(int rank, const std::string& objection) const {
  const int number = mailbox_.number(rank);
  return fmt::format(
      "rank {}: {}; earlier pushes of it that the weights contain, and the last checkpoint may contain: {}",
      number, objection, table_.pushes(number));
}

// Answers the waiting clients that may continue.
void ParameterServer::proceed() {
  const bool is_over = all_are(State::rests) && !deal_.has_returned();
  if (is_over) deal_.close();
  const std::int64_t fewest = max_staleness_ ? fewest_pushes() : 0;
  // The slowest client is never ahead, so that at least one client continues.
  const auto is_ahead = [&](const Client& each) {
    return max_staleness_ && each.pushes - fewest > *max_staleness_;
  };
  for (const int rank : living()) {
    Client& waiting = client(rank);
    const bool may_continue = waiting.state == State::rests
                                  ? is_over || deal_.has_returned()
                                  : waiting.state == State::waits && !is_ahead(waiting);
    if (!may_continue) continue;
    post_weights(rank, !is_over);
    if (is_over) waiting.pushes = 0;
    waiting.state = State::works;
  }
}

// Returns the smallest number of pushes of a client that may still push. Clients that rest do not push.
std::int64_t ParameterServer::fewest_pushes() const {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const Client& client : clients_)
    if (client.state != State::rests && client.state != State::lost) fewest = std::min(fewest, client.pushes);
  return fewest;
}

void ParameterServer::post(int rank, const LetterHead& head) {
  post_letter(mailbox_, rank, tag_of(head.word), answer_->seal(head));
}

void ParameterServer::post_weights(int rank, bool again) {
  const LetterHead head{
      .word = Word::weights, .version = version_, .number = ++answers_, .again = again ? 1 : 0};
  const std::string account = may_be_succeeded_ ? account_of(deal_, table_) : "";
  post_letter(mailbox_, rank, tag_of(head.word), answer_->seal_all(head, account));
}

void ParameterServer::ask_for_patience() {
  for (const int rank : living())
    if (client(rank).awaits_weights()) post(rank, {.word = Word::patience});
}

}  // namespace plexaura
