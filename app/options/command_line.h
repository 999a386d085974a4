#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plexaura {

// What was written behind the program's name.
struct CommandLine {
  std::string config;            // the YAML file
  std::vector<std::string> set;  // "training.batch_size=8"
  std::optional<std::int64_t> steps;
  bool resume = false;
  bool replace = false;  // an earlier run that was stopped
  bool dry_run = false;
  bool print_program = false;
  std::string backend = "cpu";       // with its options: "cuda:device=1"
  std::string device;                // to plan for, which need not be there: "h200"; empty: none
  std::string log;                   // JSON lines; empty: none
  std::string weights;               // safetensors to start from; empty: none
  std::vector<std::string> skip;     // patterns of parameters that are not taken from there
  bool evaluate = false;             // validate and end
  std::vector<std::string> predict;  // files to tell the classes of; empty: train
  std::string profile;               // trace file; empty: none
  std::string serve;    // file by which clients that are jobs of their own find this server; empty: none
  std::string join;     // file of the server to join; empty: none
  int clients = 1;      // with serve: ends when so many have left
  std::string address;  // with serve: where it listens; empty: for clients of this host alone
  int port = 0;         // with serve: 0: one of the system's choice
  std::string message;  // --help, --describe, --version: to be printed instead of anything else
};

// Throws UserError in one sentence for what is no option, lacks its value, or has one too many.
CommandLine parse_command_line(const std::string& program, int argc, const char* const* argv);

}  // namespace plexaura
