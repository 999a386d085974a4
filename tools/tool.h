#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace plexaura {

// The main function of a tool: reads the arguments, works, and says in one sentence what went wrong. Returns
// the exit status: 0, 2 for what the user can mend, 1 for a fault of ours or the machine's.
int run_tool(CLI::App& app, int argc, const char* const* argv, const std::function<void()>& work);

// For options that take a number.
CLI::Validator above_zero();
CLI::Validator number(double from, double to);
CLI::Validator whole_number(std::int64_t from, std::int64_t to = 1'000'000'000);

}  // namespace plexaura
