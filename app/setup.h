#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/choices/told_choice.h"
#include "app/data/run_data.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "app/visiting.h"
#include "core/params/parameter_store.h"
#include "models/config/config.h"
#include "models/zoo/model.h"

namespace plexaura {

// All that is read and built before ranks look at each other.
struct Setup {
  std::unique_ptr<Config> config;
  bool data_is_sent = false;  // by rank 0, which alone reads it
  RunData data;
  RunOptions options;
  std::unique_ptr<Model> model;
  std::vector<ToldChoice> choices;
  std::unique_ptr<Visit> visit;  // null: this job has its weights to itself, or from its own ranks
};

// Reads the configuration and opens the data, on all ranks together, and makes the model, of which `kind` is the model.name. `spares`:
// how many of the ranks wait until another one dies. Throws a UserError.
Setup read_setup(const std::string& kind, const CommandLine& line, Communicator& ranks, int spares);

// When all else is read: the settings of a run are those that were asked for. `ranks`: those that train.
void read_run_options(Setup& setup, const CommandLine& line, int ranks);

// What has to be equal on all ranks: a value for each name. Folders may differ from host to host.
std::map<std::string, std::string> facts_of(const Setup& setup, const CommandLine& line);

std::vector<ParameterSpec> parameters_of(const Setup& setup);
ParameterStore make_store_of(const Setup& setup);

}  // namespace plexaura
