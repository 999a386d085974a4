#include "app/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>

#include "app/options/repeatable.h"
#include "app/options/run_keys.h"
#include "app/options/version.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

std::string without_end_of_line(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::string one_line(const std::string& text) {
  std::string line = without_end_of_line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// Returns the name of an example YAML file for a program.
const char* example_for(const std::string& program) {
  static const std::map<std::string, const char*> examples{
      {"convnet", "models/mnist_cnn.yaml"},         {"convnext", "models/convnext_tiny.yaml"},
      {"mobilenet_v2", "models/mobilenet_v2.yaml"}, {"resnet", "models/resnet18.yaml"},
      {"unet", "models/mnist_unet.yaml"},           {"vgg", "models/vgg16.yaml"},
  };
  const auto found = examples.find(program);
  return found == examples.end() ? "models/iris.yaml" : found->second;
}

// True if the text is a whole number from 1 to `most`.
bool is_whole_number(const std::string& text, std::int64_t most) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && number > 0 && number <= most;
}

std::string at_least_one(const std::string& text) {
  const bool is_one = is_whole_number(text, std::numeric_limits<std::int64_t>::max());
  return is_one ? "" : fmt::format("'{}' must be a whole number above 0", text);
}

std::string a_temperature(const std::string& text) {
  double value = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && rest == text.data() + text.size();
  return is_number && value >= 0 && value <= 1e6
             ? ""
             : fmt::format("'{}' must be a number from 0 to 1000000", text);
}

std::string a_port(const std::string& text) {
  constexpr std::int64_t most = 65535;
  return is_whole_number(text, most) ? ""
                                     : fmt::format("'{}' must be a whole number from 1 to {}", text, most);
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "the text is empty; give it one, or leave out the option" : "";
}

void require_file(const std::string& program, const CommandLine& line) {
  if (!line.config.empty()) return;
  if (!line.predict.empty())
    throw UserError(fmt::format(
        "{}: no YAML file was named, because --predict takes all files after it; write the YAML file "
        "first: {} FILE.yaml --predict {}",
        program, program, line.predict.front()));
  throw UserError(
      fmt::format("{}: no YAML file was named; for example: {} {}", program, program, example_for(program)));
}

// Adds the files that stand after other options to those of --predict. `others` has the words that belong to no
// option. CLI11 returns an empty text for an option without values.
void take_files(const std::string& program, CommandLine& line, const std::vector<std::string>& others,
                bool predicts) {
  if (line.predict == std::vector<std::string>{""}) line.predict.clear();
  if (!predicts && !others.empty())
    throw UserError(fmt::format(
        "{}: '{}' was not expected; a key of the file is set as --set training.epochs=3; see {} --help",
        program, others.front(), program));
  line.predict.insert(line.predict.end(), others.begin(), others.end());
  if (predicts && line.predict.empty())
    throw UserError(
        fmt::format("{}: --predict names no file; write {} FILE.yaml --predict FILE ...", program, program));
  for (const std::string& file : line.predict)
    if (const std::string text = not_empty(file); !text.empty())
      throw UserError(fmt::format("{}: --predict: {}", program, text));
}

// Throws for options without effect: a server makes no steps, and a client gets its weights from the server.
void check_visiting(const std::string& program, const CommandLine& line) {
  if (!line.serve.empty() && !line.join.empty())
    throw UserError(fmt::format("{}: --serve and --join exclude each other; give one of them", program));
  if (line.clients != 1 && line.serve.empty())
    throw UserError(fmt::format("{}: --clients needs --serve", program));
  if (!line.address.empty() && line.serve.empty())
    throw UserError(fmt::format("{}: --address needs --serve", program));
  if (line.port != 0 && line.serve.empty()) throw UserError(fmt::format("{}: --port needs --serve", program));
  const bool serves = !line.serve.empty();
  const bool joins = !line.join.empty();
  const std::pair<bool, const char*> without_effect[] = {
      {line.evaluate, "--evaluate"},
      {!line.predict.empty(), "--predict"},
      {line.check_gradients, "--check-gradients"},
      {line.find_lr, "--find-lr"},
      {line.overfit > 0, "--overfit"},
      {line.check, "--check"},
      {line.generate.count > 0, "--generate"},
      {line.dry_run, "--dry-run"},
      {serves && line.steps.has_value(), "--steps"},
      {serves && !line.log.empty(), "--log"},
      {serves && !line.tensorboard.empty(), "--tensorboard"},
      {serves && !line.profile.empty(), "--profile"},
      {serves && !line.report.empty(), "--report"},
      {joins && line.resume, "--resume"},
      {joins && line.replace, "--replace"},
      {joins && !line.weights.empty(), "--weights"}};
  for (const auto& [given, option] : without_effect)
    if (given && (serves || joins))
      throw UserError(fmt::format(
          "{}: {} {}; leave out {}", program, serves ? "--serve" : "--join",
          serves ? "only serves those that train" : "trains with the weights of its server", option));
}

std::string report_log_in(const std::string& folder) {
  return (std::filesystem::path(folder) / report_log).string();
}

// Declares an option whose value is a text that is not empty. `type` names the text in the help.
template <class Value>
CLI::Option* add_text(CLI::App& app, const char* name, Value& into, const char* type, const char* meaning) {
  return app.add_option(name, into, meaning)->type_name(type)->check(not_empty);
}

// Declares an option whose value is a whole number from 1.
template <class Value>
CLI::Option* add_count(CLI::App& app, const char* name, Value& into, const char* meaning) {
  return app.add_option(name, into, meaning)->type_name("N")->check(at_least_one);
}

// Declares --generate and the options that need it.
void declare(CLI::App& app, GenerateOptions& generate) {
  CLI::Option* const count = add_count(app, "--generate", generate.count,
                                       "continues a text by N tokens, with a language model, and exits");
  app.add_option("--prompt", generate.prompt, "with --generate: the text to continue (a new line)")
      ->type_name("TEXT")
      ->needs(count);
  app.add_option("--temperature", generate.temperature,
                 "with --generate: below 1 draws probable tokens more often; 0 takes the most probable (1)")
      ->type_name("T")
      ->check(a_temperature)
      ->needs(count);
  app.add_option("--top-k", generate.top_k, "with --generate: draws among the K most probable tokens (all)")
      ->type_name("K")
      ->check(at_least_one)
      ->needs(count);
  add_count(app, "--seed", generate.seed, "with --generate: the seed of the draws (1)")->needs(count);
}

// Throws for combinations of options in which one has no effect.
void check_modes(const std::string& program, const CommandLine& line) {
  check_visiting(program, line);
  if (!line.skip.empty() && line.weights.empty())
    throw UserError(fmt::format("{}: --skip needs --weights", program));
  const std::pair<bool, const char*> modes[] = {{line.evaluate, "--evaluate"},
                                                {!line.predict.empty(), "--predict"},
                                                {line.generate.count > 0, "--generate"},
                                                {line.check_gradients, "--check-gradients"},
                                                {line.find_lr, "--find-lr"},
                                                {line.overfit > 0, "--overfit"},
                                                {line.check, "--check"},
                                                {line.dry_run, "--dry-run"}};
  const char* mode = nullptr;
  for (const auto& [given, option] : modes) {
    if (given && mode != nullptr)
      throw UserError(
          fmt::format("{}: {} and {} exclude each other; give one of them", program, mode, option));
    if (given) mode = option;
  }
  if (mode == nullptr) return;
  const std::pair<bool, const char*> of_training[] = {
      {line.resume, "--resume"},
      {line.replace, "--replace"},
      {line.steps.has_value(), "--steps"},
      {!line.profile.empty(), "--profile"},
      {!line.check && !line.log.empty(), "--log"},
      {!line.check && !line.tensorboard.empty(), "--tensorboard"},
      {!line.check && !line.report.empty(), "--report"}};
  for (const auto& [given, option] : of_training)
    if (given)
      throw UserError(
          fmt::format("{}: {} {}; leave out {}", program, mode,
                      trial_of(line) != nullptr ? "keeps nothing that it trains" : "does not train", option));
}

}  // namespace

const char* trial_of(const CommandLine& line) {
  if (line.find_lr) return "--find-lr";
  if (line.overfit > 0) return "--overfit";
  return line.check ? "--check" : nullptr;
}

CommandLine parse_command_line(const std::string& program, int argc, const char* const* argv) {
  CommandLine line;
  bool version = false;
  std::string described;
  std::vector<std::string> others;
  CLI::App app(fmt::format(
      "Trains the {} of a YAML file, in one process or on several ranks:\n  mpirun -n 4 {} FILE.yaml",
      program, argc > 0 ? argv[0] : program));
  app.name(program);
  app.add_option("FILE.yaml", line.config, "describes the run: model, data, training, distributed, output");
  app.add_option("FILES", others)->group("");
  repeatable(app.add_option("--set", line.set,
                            "overrides a key of the file: --set training.batch_size=8; repeatable"))
      ->type_name("KEY=VALUE");
  add_count(app, "--steps", line.steps,
            "stops when the run has made N updates, including those before --resume");
  app.add_flag("--resume", line.resume, "continues from the newest checkpoint in output.dir");
  app.add_flag("--replace", line.replace,
               "starts anew if output.dir contains a run that was stopped, and removes its checkpoints");
  add_text(app, "--backend", line.backend, "NAME[:OPTION=VALUE,...]",
           "cpu, portable or a plugin; options follow its name");
  add_text(app, "--device", line.device, "NAME",
           "with --dry-run: the GPU to plan for, which need not be there: a100, h100, h200 or b200");
  add_text(app, "--log", line.log, "FILE", "appends one JSON object per step and per epoch");
  add_text(app, "--tensorboard", line.tensorboard, "FOLDER",
           "writes loss, metrics and learning rate as event files for TensorBoard");
  add_text(app, "--report", line.report, "FOLDER",
           "writes the log and what `tools/runs report FOLDER` needs to make a page of the run");
  add_text(app, "--weights", line.weights, "FILE", "starts from a safetensors file");
  repeatable(
      add_text(app, "--skip", line.skip, "PATTERN",
               "with --weights: parameters that keep their initial values ('fc.*'; '?' is any letter)"));
  app.add_flag("--evaluate", line.evaluate,
               "prints the validation loss and metrics of --weights or the newest checkpoint, and exits");
  CLI::Option* const predict =
      app.add_option("--predict", line.predict,
                     "prints class and probability (or output) of each image or row of a table, and exits")
          ->type_name("FILE ...")
          ->expected(0, -1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_text(app, "--images", line.images, "FOLDER",
           "with --predict of images or masks: writes each as a PNG file to FOLDER")
      ->needs(predict);
  declare(app, line.generate);
  app.add_flag("--check-gradients", line.check_gradients,
               "compares the gradient of each parameter with differences on the first batch, and exits");
  app.add_flag("--find-lr", line.find_lr,
               "trains 100 steps with a growing learning rate, suggests one, and exits");
  add_count(app, "--overfit", line.overfit,
            "trains on N samples, says whether it learns them by heart, and exits");
  app.add_flag("--check", line.check,
               "tries all parts of a run, keeps nothing, says how long an epoch takes, and exits");
  add_text(app, "--profile", line.profile, "FILE",
           "writes a trace for Perfetto or chrome://tracing; slows down the run");
  add_text(app, "--serve", line.serve, "FILE",
           "serves weights to clients that are separate jobs, and writes its address to FILE");
  add_count(app, "--clients", line.clients,
            "with --serve: ends when N clients have left, and none is there (1)");
  add_text(app, "--address", line.address, "ADDRESS",
           "with --serve: listens there, 0.0.0.0 or :: at all addresses of this host (127.0.0.1)");
  app.add_option("--port", line.port, "with --serve: listens at this port (one that is free)")
      ->type_name("N")
      ->check(a_port);
  add_text(app, "--join", line.join, "FILE", "trains as a client of the server that has written FILE");
  app.add_flag("--dry-run", line.dry_run,
               "prints the model, the memory plan and a description of the data, and exits");
  app.add_flag("--program", line.print_program,
               "with --dry-run: also prints every instruction of the training program");
  CLI::Option* const describe =
      app.add_option("--describe", described,
                     "prints the keys of the file: all, or those of a section such as training.optimizer")
          ->type_name("[KEY]")
          ->expected(0, 1);
  app.add_flag("--version", version, "prints the versions of this build, oneDNN, MPI and the processor");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line.message = without_end_of_line(app.help());
    return line;
  } catch (const CLI::ExtrasError& error) {
    throw UserError(fmt::format("{}: {}; a key of the file is set as --set training.epochs=3; see {} --help",
                                program, one_line(error.what()), program));
  } catch (const CLI::ParseError& error) {
    throw UserError(fmt::format("{}: {}; see {} --help", program, one_line(error.what()), program));
  }
  take_files(program, line, others, predict->count() > 0);
  if (version)
    line.message = version_text();
  else if (describe->count() > 0)
    line.message = without_end_of_line(describe_keys(described));
  else
    require_file(program, line);
  if (line.print_program && !line.dry_run)
    throw UserError(fmt::format("{}: --program needs --dry-run", program));
  if (!line.device.empty() && !line.dry_run)
    throw UserError(fmt::format(
        "{}: --device needs --dry-run, because nothing runs on a GPU that is only described; to choose "
        "a GPU of this machine, write --backend cuda:device=0",
        program));
  if (!line.report.empty() && !line.log.empty())
    throw UserError(fmt::format("{}: --report writes the log to {}; leave out --log", program,
                                report_log_in(line.report)));
  check_modes(program, line);
  if (!line.report.empty()) line.log = report_log_in(line.report);
  if (line.resume && line.replace)
    throw UserError(fmt::format("{}: --resume and --replace exclude each other; give one of them", program));
  if (line.resume && !line.weights.empty())
    throw UserError(
        fmt::format("{}: --resume and --weights exclude each other: a checkpoint has weights of its own; "
                    "give one of them",
                    program));
  return line;
}

}  // namespace plexaura
