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

// Clients of a parameter server that are jobs of their own: see docs/reference/parameter_servers.md.

// With --serve or --join: UserError for several ranks, for a strategy without a server, and for keys that these jobs have no
// use for.
void check_visiting(const CommandLine& line, const Communicator& ranks, const Config& config);

// With --serve: serves to the end, or until a signal comes, and saves now and then. The exit status.
int serve_visitors(const CommandLine& line, const RunOptions& options, ParameterStore store,
                   double deadline_seconds);

// With --join: this job's place at its server.
class Visit {
 public:
  // Waits until there is a server: see Visitor.
  Visit(const CommandLine& line, double deadline_seconds);

  // How samples of a table are to be read, so that they mean to the model what those of the server do.
  std::optional<TrainedData> samples() const;
  // Takes the weights of the server, and a seed of its own, so that two clients do not go through the same data in the same
  // order. What is to be said of it. UserError where the server refuses.
  std::string join(RunOptions& options, ParameterStore& store);
  // It begins after join().
  std::unique_ptr<Strategy> strategy(const RunOptions& options);

 private:
  std::string file_;
  Visitor visitor_;
};

}  // namespace plexaura
