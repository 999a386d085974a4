#include "distributed/communicator/run_ranks.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "core/base/events.h"
#include "core/base/print.h"
#include "core/exchange/rank_lost.h"
#include "distributed/failure/cut_off.h"
#include "distributed/wire/launcher.h"

namespace plexaura {
namespace {

// Returns the sentence of an error. The text of a std::bad_alloc is only its name, so it gets a sentence
// here.
std::string sentence_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "out of memory: this machine has less than the run asks for; reduce training.batch_size, "
         "data.image_size or the model";
}

void report_error(const std::exception& error, const std::string& text, int status) {
  if (const auto* loss = dynamic_cast<const RankLost*>(&error); loss != nullptr && !loss->ranks().empty())
    return report_event(EventKind::lost, loss->ranks().front(), text);
  report_event(speaks(error) ? EventKind::error : EventKind::echo, status, text);
}

int report(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const int status = known != nullptr ? known->exit_status() : 1;
  report_error(error, sentence_of(error), status);
  if (speaks(error)) print_error(sentence_of(error));
  return status;
}

// Called before a rank ends that has not met the other ranks. When it ends, mpirun kills the other ranks,
// also the one that has to print the error. So a rank that prints nothing waits half a second.
void let_another_speak(const std::exception& error) {
  if (!speaks(error)) std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

// Ends this process by SIGKILL. When the network works again, mpirun of Open MPI 5 learns of this death, and
// lets the other ranks continue. If a rank returns a status other than 0, mpirun counts it twice as ended,
// and would end the other ranks before they have finished.
void end_unlike_others() { raise(SIGKILL); }

}  // namespace

Communicator& RankSession::open(const CommunicatorOptions& options) {
  ranks_ = make_communicator(options);
  report_event(EventKind::ready, ranks_->size());
  return *ranks_;
}

int RankSession::end(int status) {
  if (status != 0) report_event(EventKind::end, status);
  return close(status, ranks_->leave(0));
}

int RankSession::fail(const std::exception& error) {
  const int status = report(error);
  // Reported before leave(), because this rank may be killed during leave().
  report_event(EventKind::end, status);
  const bool together = ranks_ != nullptr && ranks_->leave(status);
  if (!together) let_another_speak(error);
  const int closed = close(status, together);
  if (dynamic_cast<const CutOff*>(&error) != nullptr) end_unlike_others();
  return closed;
}

// Closes MPI, in which ranks wait for each other, unless MPI must not be closed: see Communicator::leave().
int RankSession::close(int status, bool together) {
  ranks_.reset();
  report_event(EventKind::end, status);
  if (status != 0 && together) hurry_launcher();
  return status;
}

int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body) {
  RankSession session;
  try {
    return session.end(body(session.open(options)));
  } catch (const std::exception& error) {
    return session.fail(error);
  }
}

}  // namespace plexaura
