#include "models/programs/use_model.h"

#include <fmt/format.h>

#include "backends/registry.h"
#include "core/print.h"
#include "distributed/handshake.h"
#include "models/programs/report.h"

namespace plexaura {

namespace {

std::filesystem::path weights_file(const CommandLine& line, const RunOptions& options) {
  if (!line.weights.empty()) return line.weights;
  if (const auto newest = newest_checkpoint(options.trainer.output)) return *newest / "weights.safetensors";
  throw UserError(
      fmt::format("{}: there are no weights to use; name a file with --weights, or in output.dir a "
                  "folder with a checkpoint",
                  line.config));
}

void evaluate(Trainer& trainer, const RunData& data, RunReport& report) {
  const Validation validation = trainer.validate();
  report.say(data.description);
  report.say(validation_text(validation.loss, validation.metrics));
  if (validation.skipped.count > 0)
    report.say(fmt::format("{} unreadable samples were left out; the first: {}", validation.skipped.count,
                           validation.skipped.first));
}

}  // namespace

int use_model(const CommandLine& line, Communicator& ranks, const RunData& data, const RunOptions& options,
              Model& model) {
  RunReport report(ranks.rank() == 0, "", 1);
  const auto backend = together(ranks, "opening the backend", [&] { return open_backend(line.backend); });
  ParameterStore store = together(ranks, "loading the weights", [&] {
    if (!line.predict.empty() && ranks.size() > 1)
      throw UserError("--predict is for one rank; start the program without mpirun");
    ParameterStore made = make_store(model, options.dtype);
    load_weights(weights_file(line, options), made, line.skip);
    return made;
  });
  if (line.evaluate) {
    TrainerOptions trainer_options = options.trainer;
    trainer_options.output.clear();  // nothing is written, and another run may be writing there
    Trainer trainer({.model = builder_of(model),
                     .store = store,
                     .backend = *backend,
                     .train = data.train,
                     .validation = data.validation,
                     .collective = &ranks},
                    trainer_options);
    check_agreement(ranks, trainer.facts());
    evaluate(trainer, data, report);
    return 0;
  }
  for (const std::string& file : line.predict)
    for (const std::string& text :
         predictions(data.read_samples(file), model, data.train->class_names(), store, *backend))
      print_output(text + "\n");
  return 0;
}

}  // namespace plexaura
