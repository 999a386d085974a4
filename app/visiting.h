#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/data/trained_data.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"
#include "distributed/servers/jobs/visitor.h"

namespace plexaura {

// Jobs with --serve, whose parameter server serves clients that are jobs of their own, and jobs with --join,
// which are such clients. See docs/reference/parameter_servers.md.

// Checks a job with --serve or --join. Throws UserError without libsodium, for several ranks, for a strategy without a
// server, and for keys that have no effect in these jobs.
void check_visiting(const CommandLine& line, const Communicator& ranks, const Config& config);

// Serves, for a job with --serve, until all clients have left or a signal comes. Saves the weights from time
// to time. Returns the exit status.
int serve_visitors(const CommandLine& line, const RunOptions& options, ParameterStore store,
                   double deadline_seconds);

// The membership of a job with --join at its server.
class Visit {
 public:
  // Connects to the server, and waits until there is one: see Visitor.
  Visit(const CommandLine& line, double deadline_seconds);

  // Returns how samples of a table must be read to fit the server's model. Returns nothing if the server's
  // weights contain no facts about samples.
  std::optional<TrainedData> samples() const;
  // Writes the server's weights to the store, and sets a seed that depends on the client's number, so that
  // two clients do not read the same data in the same order. Returns a sentence for the user. Throws
  // UserError if the server refuses the client.
  std::string join(RunOptions& options, ParameterStore& store);
  // Returns the strategy of a client. Must be called after join().
  std::unique_ptr<Strategy> strategy(const RunOptions& options);

 private:
  std::string file_;
  Visitor visitor_;
};

}  // namespace plexaura
