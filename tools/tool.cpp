#include "tools/tool.h"

#include <csignal>
#include <exception>
#include <fmt/format.h>
#include <system_error>

#include "core/base/error.h"
#include "core/base/print.h"

namespace plexaura {

namespace {

// Makes a validator for CLI11. It returns a text about the fault of a value, or "" if there is none.
template <class Number, class Holds>
CLI::Validator number_check(const std::string& rule, Holds holds) {
  return CLI::Validator(
      [=](const std::string& text) {
        Number number{};
        return CLI::detail::lexical_cast(text, number) && holds(number)
                   ? std::string()
                   : fmt::format("'{}' must be {}", text, rule);
      },
      "");
}

// Parses the arguments. Returns false if they asked for help, which was printed.
bool parse_or_help(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    print_output(app.help());
    return false;
  }
}

}  // namespace

int run_tool(CLI::App& app, int argc, const char* const* argv, const std::function<void()>& work) {
  std::signal(SIGPIPE, SIG_IGN);  // print_output() reports a reader that goes away as an error
  try {
    if (parse_or_help(app, argc, argv)) work();
    return 0;
  } catch (const CLI::ParseError& error) {
    print_error(fmt::format("{}: {}; see --help", app.get_name(), error.what()));
    return 2;
  } catch (const Error& error) {
    print_error(fmt::format("{}: {}", app.get_name(), error.what()));
    return error.exit_status();
  } catch (const std::exception& error) {
    print_error(fmt::format("{}: {}", app.get_name(), error.what()));
    return 1;
  }
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("{}: the folder cannot be made: {}; choose another place", folder.string(),
                                error.message()));
}

CLI::Validator above_zero() {
  return number_check<double>("a number above 0", [](double number) { return number > 0; });
}

CLI::Validator number(double from, double to) {
  return number_check<double>(fmt::format("a number from {:g} to {:g}", from, to),
                              [=](double number) { return number >= from && number <= to; });
}

CLI::Validator whole_number(std::int64_t from, std::int64_t to) {
  return number_check<std::int64_t>(fmt::format("a whole number from {} to {}", from, to),
                                    [=](std::int64_t number) { return number >= from && number <= to; });
}

}  // namespace plexaura
