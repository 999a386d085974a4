#include "distributed/run_ranks.h"

#include <exception>
#include <new>
#include <string>

#include "core/print.h"
#include "distributed/launcher.h"

namespace plexaura {
namespace {

// A std::bad_alloc says no more than its name.
std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "out of memory: this machine has less than the run asks for; reduce training.batch_size, "
         "data.image_size or the model";
}

int report(const std::exception& error) {
  if (speaks(error)) print_error(text_of(error));
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr ? known->exit_status() : 1;
}

struct Ending {
  int status = 0;
  bool together = false;  // all ranks have come to the end of their work
};

Ending run_body(Communicator& communicator, const std::function<int(Communicator&)>& body) {
  int status = 0;
  bool failed = false;
  try {
    status = body(communicator);
  } catch (const std::exception& error) {
    status = report(error);
    failed = true;
  }
  try {
    return {status, communicator.leave(failed ? status : 0)};
  } catch (const std::exception& error) {
    return {failed ? status : report(error), false};  // one sentence a rank is enough
  }
}

// MPI is closed when this returns.
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
  if (ending.status != 0 && ending.together) hurry_launcher();
  return ending.status;
}

}  // namespace plexaura
