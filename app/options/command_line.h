#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plexaura {

// The log in the folder of --report.
inline constexpr const char* report_log = "log.jsonl";

// How the program continues a text.
struct GenerateOptions {
  std::int64_t count = 0;     // of tokens to append; 0: nothing is generated
  std::string prompt = "\n";  // the text to continue
  double temperature = 1;     // divides the logits; 0: always the most probable token
  std::int64_t top_k = 0;     // draws among this number of the most probable tokens; 0: among all
  std::int64_t seed = 1;
};

// The arguments of the program.
struct CommandLine {
  std::string config;            // the YAML file
  std::vector<std::string> set;  // "training.batch_size=8"
  std::optional<std::int64_t> steps;
  bool resume = false;
  bool replace = false;  // removes the checkpoints of an earlier run that was stopped
  bool dry_run = false;
  bool print_program = false;
  std::string backend = "cpu";       // with options: "cuda:device=1"
  std::string device;                // a GPU to plan for, which need not exist: "h200"; empty: none
  std::string log;                   // file for JSON lines; empty: none
  std::string tensorboard;           // folder for event files of TensorBoard; empty: none
  std::string report;                // folder for the files of tools/runs report; empty: none
  std::string weights;               // safetensors file to start from; empty: none
  std::vector<std::string> skip;     // patterns of parameters that are not read from it
  bool evaluate = false;             // validates and exits
  bool check_gradients = false;      // compares the gradients with differences and exits
  bool find_lr = false;              // sweeps the learning rate and exits
  std::int64_t overfit = 0;          // trains on this number of samples and exits; 0: a run of its own
  bool check = false;                // goes once through all that a run needs and exits
  std::vector<std::string> predict;  // files to predict the classes of; empty: trains
  std::string images;                // folder for the images that a reconstruction predicts; empty: none
  GenerateOptions generate;          // a text to continue; a count of 0: trains
  std::string profile;               // trace file; empty: none
  // Serves clients that are jobs of their own, which find this server by this file; empty: no.
  std::string serve;
  std::string join;     // file of the server to join; empty: none
  int clients = 1;      // with serve: ends when this number of clients has left
  std::string address;  // with serve: the address to listen at; empty: for clients on this host only
  int port = 0;         // with serve: the port; 0: chosen by the system
  std::string message;  // for --help, --describe and --version: the text to print before exiting
};

// Returns the option of a mode that trains and keeps nothing, such as "--find-lr"; null if none is given.
const char* trial_of(const CommandLine& line);

// Throws UserError with one sentence for an unknown option, a missing value, or too many values.
CommandLine parse_command_line(const std::string& program, int argc, const char* const* argv);

}  // namespace plexaura
