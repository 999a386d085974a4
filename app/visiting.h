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

// A parameter server whose clients are jobs of their own: see docs/reference/parameter_servers.md.

// With --serve or --join: throws UserError for several ranks, for a strategy without a server, and for keys
// that have no effect in these jobs.
void check_visiting(const CommandLine& line, const Communicator& ranks, const Config& config);

// With --serve: serves until all clients have left or a signal comes, and saves from time to time. Returns
// the exit status.
int serve_visitors(const CommandLine& line, const RunOptions& options, ParameterStore store,
                   double deadline_seconds);

// With --join: this job's membership at its server.
class Visit {
 public:
  // Waits until there is a server: see Visitor.
  Visit(const CommandLine& line, double deadline_seconds);

  // Returns how samples of a table must be read to match the server's model. Empty if the server's weights
  // contain nothing about samples.
  std::optional<TrainedData> samples() const;
  // Writes the server's weights to the store, and sets a seed that depends on the client's number, so that
  // two clients do not read the same data in the same order. Returns a sentence for the user. Throws
  // UserError if the server refuses the client.
  std::string join(RunOptions& options, ParameterStore& store);
  // Must be called after join().
  std::unique_ptr<Strategy> strategy(const RunOptions& options);

 private:
  std::string file_;
  Visitor visitor_;
};

}  // namespace plexaura
