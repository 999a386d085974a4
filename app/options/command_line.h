#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plexaura {

// The name of the log in the folder of --report.
inline constexpr const char* report_log = "log.jsonl";

// The options for continuing a text: the mode --generate.
struct GenerateOptions {
  std::int64_t count = 0;     // number of tokens to append; 0: no text is generated
  std::string prompt = "\n";  // the text to continue
  // Number by which the logits are divided; 0: the most probable token is always chosen.
  double temperature = 1;
  std::int64_t top_k = 0;  // the next token is drawn from this number of most probable tokens; 0: from all
  std::int64_t seed = 1;
};

// The arguments of the program.
struct CommandLine {
  std::string config;            // path of the YAML file
  std::vector<std::string> set;  // values that replace those of the file: "training.batch_size=8"
  std::optional<std::int64_t> steps;
  bool resume = false;
  bool replace = false;  // true: removes the checkpoints of an earlier run that was stopped
  bool dry_run = false;
  bool print_program = false;
  std::string backend = "cpu";       // name of the backend, with its options: "cuda:device=1"
  std::string device;                // name of a GPU to plan for, which need not exist: "h200"; empty: none
  std::string log;                   // path of a file of JSON lines; empty: none
  std::string tensorboard;           // folder for event files of TensorBoard; empty: none
  std::string report;                // folder for the files of tools/runs report; empty: none
  std::string weights;               // safetensors file with the weights at the start; empty: none
  std::vector<std::string> skip;     // patterns of parameters that are not read from the file of weights
  bool evaluate = false;             // true: validates and exits
  bool check_gradients = false;      // true: compares the gradients with differences and exits
  bool find_lr = false;              // true: sweeps the learning rate and exits
  std::int64_t overfit = 0;          // trains on this number of samples and exits; 0: trains normally
  bool check = false;                // true: tries once all that a run needs, and exits
  std::vector<std::string> predict;  // files whose samples are predicted; empty: none
  std::string images;                // folder for the images or masks of --predict; empty: none
  GenerateOptions generate;          // a text to continue, if the count is not 0
  std::string profile;               // path of the trace file; empty: none
  // The file by which clients, which are jobs of their own, find this server. Empty: this job is no such
  // server.
  std::string serve;
  std::string join;  // the file of the server to join; empty: none
  int clients = 1;   // for a server: it ends when so many clients have left, and none is there
  // For a server: the address on which it listens; empty: it listens for clients on this host only.
  std::string address;
  int port = 0;         // for a server: the port; 0: chosen by the system
  std::string message;  // the text that --help, --describe or --version prints before the program exits
};

// Returns the option that selects a mode which trains and keeps nothing, such as "--find-lr". Returns null if
// none is given.
const char* trial_of(const CommandLine& line);

// Throws UserError with one sentence for an unknown option, a missing value, or too many values.
CommandLine parse_command_line(const std::string& program, int argc, const char* const* argv);

}  // namespace plexaura
