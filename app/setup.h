#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/choices/rank_choice.h"
#include "app/data/run_data.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "app/visiting.h"
#include "core/params/parameter_store.h"
#include "models/config/config.h"
#include "models/zoo/model.h"

namespace plexaura {

// The objects of a run that are read and built before the ranks compare them.
struct Setup {
  std::unique_ptr<Config> config;
  bool data_is_sent = false;  // true: only rank 0 reads the data, and sends it to the other ranks
  RunData data;
  RunOptions options;
  std::unique_ptr<Model> model;
  std::vector<ChoiceReport> choices;
  std::unique_ptr<Visit> visit;  // membership at a server; null without --join
};

// Collective. Reads the configuration, opens the data and makes the model. `kind` is the model.name that the
// program accepts. `spares` is the number of ranks that wait until another rank dies. Throws UserError for a
// wrong configuration or unreadable data.
Setup read_setup(const std::string& kind, const CommandLine& line, Communicator& ranks, int spares);

// Reads the options of the run. Called after everything else was read, so that the settings of the run
// include all keys that were used. `ranks` is the number of ranks that train.
void read_run_options(Setup& setup, const CommandLine& line, int ranks);

// Returns the values that must be equal on all ranks, by name. The paths in data.path, data.targets (of
// images) and output.dir are not included, because they may differ between hosts.
std::map<std::string, std::string> facts_of(const Setup& setup, const CommandLine& line);

std::vector<ParameterSpec> parameters_of(const Setup& setup);
ParameterStore make_store_of(const Setup& setup);

}  // namespace plexaura
