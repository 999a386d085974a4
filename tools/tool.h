#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace plexaura {

// Runs a tool: reads the arguments, calls `work`, and prints one sentence for an error. Returns the exit
// status: 0, 2 for an error that the user can fix, 1 for a fault of the program or the machine.
int run_tool(CLI::App& app, int argc, const char* const* argv, const std::function<void()>& work);

// Makes a folder and those around it, unless they exist. Throws UserError, which names the folder.
void make_folder(const std::filesystem::path& folder);

// Return checks for the number that an option takes.
CLI::Validator above_zero();
CLI::Validator number(double from, double to);
CLI::Validator whole_number(std::int64_t from, std::int64_t to = 1'000'000'000);

}  // namespace plexaura
