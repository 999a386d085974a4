#include "distributed/run_ranks.h"

#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <string>

namespace plexaura {
namespace {

// A std::bad_alloc says no more than its name.
std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "out of memory: this machine has less than the run asks for; reduce training.batch_size, "
         "data.image_size or the model";
}

int report(const std::exception& error) {
  if (speaks(error)) {
    fmt::print(stderr, "{}\n", text_of(error));
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
