#include "distributed/run_ranks.h"

#include <exception>
#include <new>
#include <string>

#include "core/events.h"
#include "core/print.h"
#include "core/ranks/rank_lost.h"
#include "distributed/failure/failure.h"
#include "distributed/launcher.h"

namespace plexaura {
namespace {

// A std::bad_alloc says no more than its name.
std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "out of memory: this machine has less than the run asks for; reduce training.batch_size, "
         "data.image_size or the model";
}

void tell_error(const std::exception& error, const std::string& text, int status) {
  if (const auto* loss = dynamic_cast<const RankLost*>(&error); loss != nullptr && !loss->ranks().empty())
    return tell_event(EventKind::lost, loss->ranks().front(), text);
  tell_event(speaks(error) ? EventKind::error : EventKind::echo, status, text);
}

int report(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const int status = known != nullptr ? known->exit_status() : 1;
  tell_error(error, text_of(error), status);
  if (speaks(error)) print_error(text_of(error));
  // It was thrown without a pause, for whoever might go on.
  const auto* loss = dynamic_cast<const RankLost*>(&error);
  if (!speaks(error) && loss != nullptr && loss->is_outlived()) let_the_other_speak();
  return status;
}

struct Ending {
  int status = 0;
  bool together = false;  // all ranks have come to the end of their work
};

Ending run_body(Communicator& communicator, const std::function<int(Communicator&)>& body) {
  tell_event(EventKind::ready, communicator.size());
  int status = 0;
  bool failed = false;
  try {
    status = body(communicator);
  } catch (const std::exception& error) {
    status = report(error);
    failed = true;
  }
  // Before it leaves: as soon as another rank has ended with such a status, mpirun kills this one.
  if (status != 0) tell_event(EventKind::end, status);
  try {
    return {status, communicator.leave(failed ? status : 0)};
  } catch (const std::exception& error) {
    return {failed ? status : report(error), false};  // one sentence a rank is enough
  }
}

// When this returns, MPI is closed, or is not to be: see Communicator::leave().
Ending run_all(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body) {
  try {
    const std::unique_ptr<Communicator> communicator = make_communicator(options);
    return run_body(*communicator, body);
  } catch (const std::exception& error) {
    return {report(error), false};
  }
}

}  // namespace

int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body) {
  const Ending ending = run_all(options, body);
  tell_event(EventKind::end, ending.status);
  if (ending.status != 0 && ending.together) hurry_launcher();
  return ending.status;
}

}  // namespace plexaura
