#include "app/use_model.h"

#include <cmath>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "app/report/report.h"
#include "app/use/confusion.h"
#include "app/use/generate.h"
#include "app/use/predict.h"
#include "backends/registry.h"
#include "core/base/print.h"
#include "distributed/communicator/handshake.h"
#include "models/zoo/multi_label.h"
#include "models/zoo/regression.h"
#include "models/zoo/segmentation.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/data/loader.h"
#include "training/files/safetensors.h"
#include "training/files/shortage.h"
#include "training/optimizers/averaged_weights.h"
#include "training/programs/evaluation.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

fs::path weights_file(const CommandLine& line, const fs::path& output) {
  if (!line.weights.empty()) {
    require_weights_file(line.weights);
    return line.weights;
  }
  if (const auto newest = newest_checkpoint(output)) return *newest / "weights.safetensors";
  throw UserError(
      fmt::format("{}: there are no weights to use; name a file with --weights, or in output.dir a "
                  "folder with a checkpoint",
                  line.config));
}

// Returns the result of `read` for the weights file. Tries again if a running job has replaced the checkpoint
// by a newer one before it was read.
template <class Read>
auto read_weights(const CommandLine& line, const fs::path& output, const Read& read) {
  for (;;) {
    const fs::path file = weights_file(line, output);
    try {
      return read(file);
    } catch (const UserError&) {
      if (weights_file(line, output) == file) throw;
    }
  }
}

// Checks that the table and its split are those of the training. The split decides which rows were trained
// on, and these decide the scale of all rows. Throws UserError if the table or the split differs. Returns a
// remark if the file does not say with which table and split it was made.
std::string check_origin(const fs::path& file, const Metadata& metadata, const CommandLine& line,
                         const RunData& data) {
  if (line.evaluate ? !data.is_cut : !data.is_measured) return "";
  const char* consequence =
      line.evaluate ? "samples that are held out now may be samples on which it was trained"
                    : "the mean and deviation by which rows are scaled may not be those of its training";
  const std::optional<std::uint64_t> origin = data_origin_in(metadata, file);
  if (!origin)
    return fmt::format("{} does not say with what table and split it was made: {}", file.string(),
                       consequence);
  if (*origin == data.origin) return "";
  throw UserError(fmt::format(
      "{} was made with another table, text or split than the section data describes now, so "
      "that {}; give the same data.path, label, folds and fold or validation_share, split_seed and "
      "sampling{}",
      file.string(), consequence,
      trained_data_in(metadata, file) ? ", or evaluate all rows of a table with data.validation_share=1"
                                      : ""));
}

// Returns a sentence if the weights are averages over updates.
std::string remark_on_averages(const fs::path& file, const Metadata& metadata) {
  const auto found = metadata.find(averaged_key);
  if (found == metadata.end()) return "";
  return fmt::format("{} holds averages of the weights (training.ema {})", file.string(), found->second);
}

void require_no_skipped(const ParameterStore& store, const CommandLine& line) {
  if (const auto skipped = first_skipped(store, line.skip))
    throw UserError(
        fmt::format("--skip leaves out '{}', and a model that is used needs all of its parameters; skip "
                    "nothing but what the model lacks",
                    *skipped));
}

std::string lines_of_labels(const Validation& validation, const std::vector<std::string>& names) {
  std::string text;
  const std::vector<LabelFigures> figures = label_figures(validation.totals);
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("label {}  precision {:.4f}  recall {:.4f}  f1 {:.4f}\n", printable(names[i]),
                        figures[i].precision, figures[i].recall, figures[i].f1);
  return text;
}

std::string lines_of_classes(const Validation& validation, std::optional<std::int64_t> ignored) {
  std::string text;
  const std::vector<double> ious = class_ious(validation.totals, ignored);
  for (std::size_t i = 0; i < ious.size(); ++i)
    text += ignored == static_cast<std::int64_t>(i) ? fmt::format("class {}  is ignored\n", i)
            : std::isnan(ious[i]) ? fmt::format("class {}  in no mask and no prediction\n", i)
                                  : fmt::format("class {}  iou {:.4f}\n", i, ious[i]);
  return text;
}

// Returns a line for each label, for each class of a segmentation, or for each target of a regression with several targets.
std::string lines_of_targets(const Validation& validation, const RunData& data, const ModelInfo& model) {
  const std::vector<std::string>& names = data.trained.targets;
  if (model.task == Task::multi_label) return lines_of_labels(validation, names);
  if (model.task == Task::segmentation) return lines_of_classes(validation, model.ignored_class);
  if (names.size() < 2) return "";
  std::string text;
  const auto figures = target_figures(validation.totals,
                                      static_cast<double>(data.validation->size() - validation.skipped.count),
                                      model.target_units);
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("target {}  mae {:.4f}  rmse {:.4f}  r2 {:.4f}\n", printable(names[i]),
                        figures[i].mae, figures[i].rmse, figures[i].r2);
  return text;
}

bool counts_confusions(const Model& model) {
  return model.info().task == Task::classification && model.classes() <= most_confused_classes;
}

std::string text_of(const Validation& validation, const RunData& data, const Model& model) {
  std::string text =
      printable(data.description) + "\n" + validation_text(validation.loss, validation.metrics) + "\n";
  text += lines_of_targets(validation, data, model.info());
  if (counts_confusions(model)) text += confusion_text(validation.totals, data.trained.classes);
  if (validation.skipped.count > 0)
    text += printable(fmt::format("unreadable samples that were left out: {}; the first: {}",
                                  validation.skipped.count, validation.skipped.first)) +
            "\n";
  return text;
}

void report_ops_on_host(const std::set<std::string>& ops, const Backend& backend) {
  for (const std::string& op : ops) print_error(host_op_sentence(op, backend));
}

void evaluate(Communicator& ranks, const RunData& data, const TrainerOptions& options, Model& model,
              ParameterStore& store, Backend& backend) {
  check_agreement(ranks, {{"initial weights", fmt::format("{:016x}", weights_hash(store))}});
  Evaluator evaluator(counts_confusions(model) ? builder_with_confusion(model) : builder_of(model),
                      data.train->fields(), store, backend, ranks, options.watch, nullptr, nullptr,
                      options.strict);
  const Validation validation = validate(evaluator, data.validation, ranks,
                                         {.batch_size = options.batch_size,
                                          .micro_batches = options.micro_batches,
                                          .workers = options.workers,
                                          .prefetch = options.prefetch,
                                          .on_error = options.on_error});
  if (!std::isfinite(validation.loss))  // reached on all ranks, since all have the same loss
    agree_on_error(ranks,
                   std::make_exception_ptr(UserError(fmt::format(
                       "the validation loss is {}: the weights, or a sample, lead beyond what numbers can "
                       "hold; set training.watch=true to see which op made the first such number",
                       std::isnan(validation.loss) ? "nan" : "infinite"))),
                   "validation");
  together(ranks, "printing", [&] {
    if (ranks.rank() != 0) return;
    print_output(text_of(validation, data, model));
    report_ops_on_host(evaluator.ops_on_host(), backend);
  });
}

// Returns the samples of a file. Returns nothing if it cannot be read and may be skipped. A table may not be
// skipped, because it contains many samples.
std::optional<NamedSamples> read_file(const std::string& file, const RunData& data, OnError on_error,
                                      Skipped& skipped) {
  try {
    return data.read_samples(file);
  } catch (const LimitReached&) {
    throw;
  } catch (const UserError& error) {
    if (on_error == OnError::fail || !data.trained.columns.empty()) throw;
    if (skipped.count++ == 0) skipped.first = error.what();
    return std::nullopt;
  }
}

void predict(const CommandLine& line, const RunData& data, const TrainerOptions& options, Model& model,
             ParameterStore& store, Backend& backend) {
  const std::vector<std::string>& files = line.predict;
  std::optional<PredictedImages> images;
  if (!line.images.empty()) {
    if (!returns_images(model.info().task))
      throw UserError(
          fmt::format("--images writes the images of a reconstruction or segmentation, and model.task is {}; "
                      "leave it out",
                      name_of(model.info().task)));
    images.emplace(line.images, model.sample_shape());
    images->check_names(files);
  }
  Skipped skipped;
  std::set<std::string> ops_on_host;
  for (const std::string& file : files) {
    const std::optional<NamedSamples> samples = read_file(file, data, options.on_error, skipped);
    if (!samples) continue;
    for (const std::string& text : predictions(*samples, model, data.trained, store, backend, options.strict,
                                               ops_on_host, images ? &*images : nullptr))
      print_output(text + "\n");
  }
  report_ops_on_host(ops_on_host, backend);
  if (skipped.count == std::ssize(files))
    throw UserError(fmt::format("no file could be read; the first: {}", skipped.first));
  if (skipped.count > 0)
    print_error(
        fmt::format("unreadable files that were left out: {}; the first: {}", skipped.count, skipped.first));
}

// Frees the store, whose weights are copied.
void generate(const GenerateOptions& generate, const RunData& data, const TrainerOptions& options,
              Model& model, std::optional<ParameterStore>& store, Backend& backend) {
  NextTokenLogits next_logits(model, *store, backend, options.strict, generate.count);
  store.reset();
  print_output(generated_text(generate, next_logits, *data.trained.vocabulary) + "\n");
  report_ops_on_host(next_logits.ops_on_host(), backend);
}

}  // namespace

bool uses_model(const CommandLine& line) {
  return line.evaluate || !line.predict.empty() || line.generate.count > 0;
}

std::optional<TrainedData> trained_data(const CommandLine& line, const Config& config) {
  return read_weights(line, read_output_folder(config), [](const fs::path& file) {
    return trained_data_in(read_safetensors_header(file).metadata, file);
  });
}

int use_model(const CommandLine& line, Communicator& ranks, const RunData& data, const RunOptions& options,
              Model& model) {
  const auto backend = together(ranks, "opening the backend", [&] { return open_backend(line.backend); });
  std::string remark;
  std::string averages;
  std::optional<ParameterStore> store = together(ranks, "loading the weights", [&] {
    if (!line.evaluate && ranks.size() > 1)
      throw UserError(fmt::format("{} is for one rank; start the program without mpirun",
                                  line.predict.empty() ? "--generate" : "--predict"));
    ParameterStore loaded = make_store(model, options.types.values);
    loaded.set_types(options.types);
    require_no_skipped(loaded, line);
    read_weights(line, options.trainer.output, [&](const fs::path& file) {
      const Metadata metadata = load_weights(file, loaded, line.skip);
      check_settings(file, metadata, options.trainer.settings, "give the same",
                     line.evaluate ? WeightsUse::samples_of_data : WeightsUse::files);
      if (const auto trained = trained_data_in(metadata, file); trained && *trained != data.trained)
        throw UserError(fmt::format("{} was replaced while it was read; start again", file.string()));
      remark = check_origin(file, metadata, line, data);
      averages = remark_on_averages(file, metadata);
    });
    return loaded;
  });
  if (line.evaluate) evaluate(ranks, data, options.trainer, model, *store, *backend);
  if (!line.predict.empty()) predict(line, data, options.trainer, model, *store, *backend);
  if (line.generate.count > 0) generate(line.generate, data, options.trainer, model, store, *backend);
  for (const std::string& sentence : {averages, remark})
    if (!sentence.empty() && ranks.rank() == 0) print_error(sentence);
  return 0;
}

}  // namespace plexaura
