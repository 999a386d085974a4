#include "distributed/servers/jobs/visited_server.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <poll.h>
#include <sstream>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/wire/texts.h"

namespace plexaura {

namespace {

constexpr int most_strangers = 16;  // largest number of connections that have not proven the key
// Seconds, from the connection on, in which a client must prove the key.
constexpr double seconds_for_proof = 5;
constexpr int most_newcomers_a_turn = 16;
// Largest number of letters that are read from a guest before the next guest's turn.
constexpr int most_letters_a_turn = 4;
// Bytes by which a client's facts may exceed twice the server's facts.
constexpr std::size_t more_for_facts = std::size_t{64} << 10;
constexpr int look_milliseconds = 100;

std::string shown(const VisitFacts& facts, const std::string& name) {
  constexpr std::size_t longest = 100;
  const auto found = facts.find(name);
  if (found == facts.end()) return "nothing";
  return fmt::format("'{}{}'", found->second.substr(0, longest), found->second.size() > longest ? "…" : "");
}

std::optional<std::string> fact_in(const VisitFacts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::nullopt : std::optional(found->second);
}

// True if the server can calculate with the numbers of a letter.
bool is_sensible(const LineHead& head) {
  constexpr std::int64_t most_steps = std::int64_t{1} << 40;
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  return head.version >= 0 && head.steps >= 0 && head.steps <= most_steps && is_time(head.elapsed_seconds) &&
         is_time(head.waited_seconds);
}

}  // namespace

VisitedServer::VisitedServer(const std::filesystem::path& file, LogicalWeights form,
                             std::vector<std::byte> weights, VisitedServerOptions options,
                             VisitedServerHost host)
    : file_(file),
      form_(std::move(form)),
      weights_(std::move(weights)),
      options_(std::move(options)),
      host_(std::move(host)),
      door_(listen_at(options_.listen, place_), host_.warn),
      judge_(options_.push_limit) {
  options_.facts.merge(form_.facts());
  // The facts of a client are usually as long as those of the server.
  most_of_facts_ = 2 * pack_facts(options_.facts).size() + more_for_facts;
  place_.key = make_key();
  file_.tell(place_);
}

void VisitedServer::continue_from(std::int64_t version, const std::string& account) {
  version_ = version;
  std::istringstream packed(account);
  std::size_t left = 0;
  packed >> numbers_ >> left;
  for (; left > 0; --left) {
    int number = 0;
    packed >> number;
    left_.insert(number);
  }
  table_.unpack(packed);
  std::size_t away = 0;
  packed >> away;
  for (; away > 0; --away) {
    int number = 0;
    packed >> number;
    lost_at_[number] = seconds_now();
    table_.note_death(number);
  }
}

// Returns the account. For a server that continues, connected clients are away like lost ones, so they are
// listed alike.
std::string VisitedServer::account() const {
  std::vector<int> away;
  for (const Guest& guest : guests_)
    if (guest.number > 0) away.push_back(guest.number);
  for (const auto& [number, at] : lost_at_) away.push_back(number);
  return fmt::format("{} {} {}\n{}{} {}\n", numbers_, left_.size(), fmt::join(left_, " "), table_.pack(),
                     away.size(), fmt::join(away, " "));
}

std::size_t VisitedServer::joined() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(guests_, [](const Guest& guest) { return guest.number > 0; }));
}

bool VisitedServer::serve() {
  while (!host_.is_to_end()) {
    await();
    receive_guests();
    for (Guest& guest : guests_) attend(guest);
    guests_.remove_if([](const Guest& guest) { return guest.is_gone; });
    door_.report_turned_away(false);
    if (!is_over()) continue;
    door_.report_turned_away(true);
    if (left_.empty())
      throw DeviceError(
          fmt::format("all clients were lost, and none has come back within {:g} s; start the server with "
                      "--resume, and clients",
                      options_.deadline_seconds));
    left_.clear();
    return true;
  }
  return false;
}

bool VisitedServer::is_over() {
  if (joined() > 0) return false;
  const double now = seconds_now();
  const auto given_up = std::ranges::count_if(
      lost_at_, [&](const auto& lost) { return now - lost.second > options_.deadline_seconds; });
  // The server also waits for lost clients that may still come back.
  return given_up == std::ssize(lost_at_) && std::ssize(left_) + given_up >= options_.clients;
}

// Waits until a guest has sent bytes, or can be sent bytes. Listens to a guest only after everything has been
// sent to it.
void VisitedServer::await() {
  const EventSpan span(EventKind::phase, "the letters of clients");
  std::vector<pollfd> waits;
  if (door_.is_open() || stranger_to_drop() != guests_.end())
    waits.push_back({door_.listener(), POLLIN, 0});
  else
    door_.report_shut();
  for (Guest& guest : guests_) {
    try {
      const bool has_sent_all = guest.line.flush();
      waits.push_back({guest.line.socket(), static_cast<short>(has_sent_all ? POLLIN : POLLOUT), 0});
    } catch (const LineLost& loss) {
      lose(guest, loss.what());
    }
  }
  poll(waits.data(), waits.size(), look_milliseconds);
}

// Accepts guests. If descriptors are short, one stranger is dropped for each newcomer. Otherwise strangers
// could keep clients out.
void VisitedServer::receive_guests() {
  for (int i = 0; i < most_newcomers_a_turn && door_.is_somebody_waiting(); ++i) {
    if (!door_.is_open()) drop_stranger();
    Door::Newcomer newcomer = door_.let_in();
    if (!newcomer.socket.is_there()) return;
    receive(std::move(newcomer.socket), newcomer.from);
  }
}

void VisitedServer::receive(FileDescriptor socket, const std::string& from) {
  guests_.push_back(
      {Line(std::move(socket), Seal::Side::server, place_.key, most_of_facts_), from, seconds_now()});
  attend(guests_.back());
  if (std::ranges::count_if(guests_, is_stranger) > most_strangers) drop_stranger();
}

bool VisitedServer::is_stranger(const Guest& guest) { return !guest.is_gone && !guest.line.is_proven(); }

// Returns the stranger to drop: one that has sent nothing if possible, and among equals the oldest
// connection.
std::list<VisitedServer::Guest>::iterator VisitedServer::stranger_to_drop() {
  const auto is_silent = [](const Guest& guest) { return is_stranger(guest) && !guest.line.has_greeted(); };
  const auto silent = std::ranges::find_if(guests_, is_silent);
  return silent != guests_.end() ? silent : std::ranges::find_if(guests_, is_stranger);
}

void VisitedServer::drop_stranger() {
  const auto stranger = stranger_to_drop();
  if (stranger == guests_.end()) return;
  lose(*stranger, "too many came at once that did not prove to know the key");
  guests_.erase(stranger);
}

void VisitedServer::attend(Guest& guest) {
  if (guest.is_gone) return;
  try {
    take_letters(guest);
    if (!guest.is_gone) judge_silence(guest);
  } catch (const LineLost& loss) {
    lose(guest, loss.what());
  }
}

// Takes the letters of a guest. Reads the next letter only after the last answer has been sent.
void VisitedServer::take_letters(Guest& guest) {
  for (int i = 0; i < most_letters_a_turn && guest.line.has_sent_all() && !guest.is_gone; ++i) {
    const auto letter = guest.line.take();
    if (!letter) return;
    if (!guest.is_refused) read(guest, *letter);
  }
}

void VisitedServer::judge_silence(Guest& guest) {
  const double now = seconds_now();
  if (!guest.line.is_proven()) {
    if (now - guest.heard_at > seconds_for_proof)
      throw LineLost(fmt::format("it has not proven within {:g} s that it knows the key", seconds_for_proof));
    return;
  }
  const bool has_moved = std::exchange(guest.moved, guest.line.moved()) != guest.line.moved();
  if (has_moved && !guest.is_refused) guest.heard_at = now;
  if (now - guest.heard_at > options_.deadline_seconds)
    throw LineLost(fmt::format("it has been silent for {:g} s", options_.deadline_seconds));
}

void VisitedServer::read(Guest& guest, const LineLetter& letter) {
  const Say say = letter.head.say;
  if (!is_sensible(letter.head)) throw LineLost("its letter contains numbers that no client sends");
  if (say == Say::ask && guest.number == 0)
    return guest.line.post({.say = Say::told}, bytes_of(pack_facts(options_.samples)));
  if (say == Say::join && guest.number == 0) return join(guest, letter);
  if (say == Say::push && guest.number > 0) return take_push(guest, letter);
  if (say == Say::beat) return;
  if (say != Say::leave) throw LineLost("the bytes that came were not a letter of a server or its client");
  guest.is_gone = true;
  if (guest.number == 0) return;
  left_.insert(guest.number);
  recent_.forget(guest.number);
  host_.say(fmt::format("client {} has left; clients that are there: {}", guest.number, joined() - 1));
  guest.number = 0;
}

void VisitedServer::join(Guest& guest, const LineLetter& letter) {
  const std::string difference = this->difference(facts_of(letter));
  if (!difference.empty()) return refuse(guest, difference);
  guest.number = number_for(letter.head.number);
  guest.line.take_up_to(form_.shared_bytes());
  const bool is_back = lost_at_.erase(guest.number) > 0;
  table_.add(guest.number);
  guest.line.post({.say = Say::welcome, .version = version_, .number = guest.number}, weights_);
  host_.say(fmt::format("client {} has {} from {}; clients that are there: {}", guest.number,
                        is_back ? "come back" : "joined", guest.from, joined()));
}

// Returns a sentence to the client about a difference between the facts, or an empty text. A different
// strategy is named first, because the defaults of other keys depend on it.
std::string VisitedServer::difference(const VisitFacts& theirs) const {
  VisitFacts names = options_.facts;
  names.insert(theirs.begin(), theirs.end());
  std::string found;
  for (const auto& [name, value] : names)
    if (fact_in(options_.facts, name) != fact_in(theirs, name) &&
        (found.empty() || name == "distributed.strategy"))
      found = name;
  if (found.empty()) return {};
  return fmt::format(
      "the server and this client differ in '{}': the server has {}, and the client {}; start both with the "
      "same",
      found, shown(options_.facts, found), shown(theirs, found));
}

// Returns the number for a client. A client that comes back keeps its number.
int VisitedServer::number_for(std::int64_t wish) {
  const bool is_known = wish > 0 && wish <= numbers_;
  const bool is_taken =
      std::ranges::any_of(guests_, [&](const Guest& guest) { return guest.number == wish; });
  const bool has_left = left_.contains(static_cast<int>(wish));
  return is_known && !is_taken && !has_left ? static_cast<int>(wish) : ++numbers_;
}

void VisitedServer::take_push(Guest& guest, const LineLetter& letter) {
  const std::span<std::byte> weights = std::span(weights_).first(form_.shared_bytes());
  table_.set_times(guest.number, letter.head.waited_seconds, letter.head.elapsed_seconds);
  if (letter.head.steps > 0) {
    if (letter.content.size() != weights.size())
      throw LineLost("its push is of another size than the weights");
    // A client that comes back to a server with older weights may be ahead of it.
    const std::int64_t staleness = std::max<std::int64_t>(version_ - letter.head.version, 0);
    const auto objection =
        judge_.take_in(options_.rule, {form_.dtype(), form_.trainables()},
                       {staleness, static_cast<std::int64_t>(joined()), letter.content}, weights);
    if (objection) {
      const int client = guest.number;
      const std::deque<std::int64_t> earlier = recent_.forget(client);
      refuse(guest, *objection);
      return send_earlier_pushes(client, earlier);
    }
    recent_.add(guest.number, version_);
    table_.add_push(guest.number, letter.head.steps, staleness);
    report_event(EventKind::step, ++version_);
    host_.pushed(*this);
  }
  guest.line.post({.say = Say::weights, .version = version_}, weights);
}

// Warns about earlier pushes of a client that was just refused.
void VisitedServer::send_earlier_pushes(int client, const std::deque<std::int64_t>& versions) {
  if (versions.empty()) return;
  const std::string kept = host_.keep_before(versions.front());
  host_.warn(fmt::format(
      "the weights contain earlier pushes of client {}, and the last {} of these may have spoiled them: {}",
      client, versions.size(),
      kept.empty() ? "no checkpoint is from before them"
                   : fmt::format("{} is from before them, and is kept", kept)));
}

// Sends the client the reason. The client closes the connection after it has read the reason. If the server
// closed it first, the reason might be lost.
void VisitedServer::refuse(Guest& guest, const std::string& sentence) {
  guest.line.post({.say = Say::refused}, bytes_of(sentence));
  guest.is_refused = true;
  note_loss(guest, sentence);
}

void VisitedServer::lose(Guest& guest, const std::string& why) {
  guest.is_gone = true;
  if (!guest.is_refused) note_loss(guest, why);
}

void VisitedServer::note_loss(Guest& guest, const std::string& why) {
  if (!guest.line.is_proven()) return door_.note_turned_away(guest.from, why);
  const int number = std::exchange(guest.number, 0);
  if (number == 0) return host_.warn(fmt::format("a client from {} was turned away: {}", guest.from, why));
  table_.note_death(number);
  recent_.forget(number);
  lost_at_[number] = seconds_now();
  host_.warn(fmt::format("client {} from {} was lost: {}; the others continue", number, guest.from, why));
}

}  // namespace plexaura
