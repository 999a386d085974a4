// Exports a model to an ONNX file, runs ONNX files, and checks which of their ops are supported.

#include "tools/onnx_parts/commands.h"
#include "tools/tool.h"

#include "app/options/repeatable.h"

namespace plexaura {

namespace {

void declare_export(CLI::App& app, OnnxExport& command) {
  declare(app, command.model);
  app.add_option("OUT.onnx", command.file, "the file to write")->required();
  app.add_option(
      "--weights", command.weights,
      "safetensors file with the weights; by default those of the newest checkpoint in output.dir");
  app.add_flag("--untrained", command.untrained, "exports the initial values of the parameters");
  CLI::Option* batch = app.add_option("--batch", command.batch, "number of samples")
                           ->check(whole_number(1))
                           ->capture_default_str();
  app.add_flag("--open-batch", command.open_batch, "leaves the number of samples open")->excludes(batch);
  app.add_flag("--external", command.external,
               "writes weights to OUT.onnx.HASH.data, as is done for models that would have 2 GiB or more");
}

void declare_run(CLI::App& app, OnnxRun& command) {
  app.add_option("FILE.onnx", command.file, "the model")->required();
  repeatable(
      app.add_option("--input", command.inputs, "the value of an input: NAME=FILE.npy or NAME=FILE.pb"))
      ->type_name("NAME=FILE");
  app.add_option("--seed", command.seed, "of the random numbers that all other inputs get")
      ->check(whole_number(0))
      ->capture_default_str();
  app.add_option("--open", command.open, "extents that the file leaves open, of random inputs")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--save", command.save, "folder in which each output is written as NAME.npy");
  app.add_option("--backend", command.backend, "the backend that computes")->capture_default_str();
}

void declare_check(CLI::App& app, OnnxCheck& command) {
  app.add_option("PATH", command.path,
                 "a file; or a folder with one file and folders test_data_set_N, which have input_N.pb and "
                 "output_N.pb")
      ->required();
  app.add_option("--backend", command.backend, "the backend that computes")->capture_default_str();
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Exports models to ONNX files, and runs and checks such files", "onnx");
  app.require_subcommand(1);
  OnnxExport exported;
  OnnxRun run;
  OnnxCheck check;
  CLI::App& export_command = *app.add_subcommand("export", "writes the model of a YAML file to an ONNX file");
  CLI::App& run_command = *app.add_subcommand("run", "computes the outputs of an ONNX file, and prints them");
  CLI::App& check_command =
      *app.add_subcommand("check", "lists the ops of an ONNX file, and compares its outputs with test data");
  declare_export(export_command, exported);
  declare_run(run_command, run);
  declare_check(check_command, check);
  return run_tool(app, argc, argv, [&] {
    if (export_command.parsed()) export_onnx(exported);
    if (run_command.parsed()) run_onnx(run);
    if (check_command.parsed()) check_onnx(check);
  });
}
