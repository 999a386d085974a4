#include "distributed/run_ranks.h"

#include <cstdio>
#include <exception>
#include <fmt/format.h>

namespace plexaura {
namespace {

int report(const std::exception& error) {
  if (speaks(error)) {
    fmt::print(stderr, "{}\n", error.what());
    std::fflush(stderr);
  }
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr ? known->exit_status() : 1;
}

// The body's status, and whether it ended in an error.
int run_body(Communicator& communicator, const std::function<int(Communicator&)>& body) {
  int status = 0;
  bool failed = false;
  try {
    status = body(communicator);
  } catch (const std::exception& error) {
    status = report(error);
    failed = true;
  }
  try {
    communicator.leave(failed);
  } catch (const std::exception& error) {
    return failed ? status : report(error);  // one sentence a rank is enough
  }
  return status;
}

}  // namespace

int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body) {
  try {
    const std::unique_ptr<Communicator> communicator = make_communicator(options);
    return run_body(*communicator, body);
  } catch (const std::exception& error) {
    return report(error);
  }
}

}  // namespace plexaura
