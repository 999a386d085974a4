#include "app/check_run.h"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "app/options/outputs.h"
#include "app/report/report.h"
#include "app/trials/read_samples.h"
#include "app/trials/temporary_folder.h"
#include "app/write_report.h"
#include "core/base/clock.h"
#include "core/base/print.h"
#include "distributed/communicator/handshake.h"
#include "models/zoo/summary.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/json_log.h"
#include "training/files/tensorboard_log.h"
#include "training/loop/signals.h"
#include "training/loop/trainer.h"
#include "training/ranks/on_rank_0.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr double seconds_of_reading =
    5;  // seconds for which each rank reads training samples, and again validation samples
constexpr std::int64_t most_validated = 256;
constexpr std::int64_t most_steps = 20;
constexpr std::int64_t fewest_steps = 3;
constexpr double seconds_of_steps = 5;  // seconds after which the current step becomes the last one

// Prints a line for each working part of a run, with the seconds that it took.
class WorkingParts {
 public:
  explicit WorkingParts(Collective& ranks) : ranks_(ranks) {}

  // Collective. Prints that a part works. Returns the seconds that it took.
  double works(std::string_view part, const std::string& facts) {
    const double seconds = seconds_now() - begin_;
    works(part, facts, seconds);
    begin_ = seconds_now();
    return seconds;
  }

  void begin() { begin_ = seconds_now(); }

  void works(std::string_view part, const std::string& facts, double seconds) {
    print(fmt::format("{:<11} works  {:>9}  {}", part, seconds_text(seconds), facts));
  }

  void print(const std::string& text) {
    together(ranks_, "printing", [&] {
      if (ranks_.rank() == 0) print_output(printable(text) + "\n");
    });
  }

 private:
  Collective& ranks_;
  double begin_ = seconds_now();
};

std::string long_seconds_text(double seconds) {
  if (seconds < 120) return seconds_text(seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

// Reads samples on all ranks that have the data. Returns a text such as "all 120 training samples".
std::string read_everywhere(Communicator& ranks, const Setup& setup, const SampleSource& source,
                            const char* kind) {
  const TrainerOptions& options = setup.options.trainer;
  const bool has_data = !setup.data_is_sent || ranks.rank() == 0;
  const double end = seconds_now() + seconds_of_reading;
  ReadSampleCount mine;
  on_some_ranks(ranks, has_data, fmt::format("reading {} samples", kind), [&] {
    mine = read_samples(source, setup.data_is_sent ? 0 : ranks.rank(), setup.data_is_sent ? 1 : ranks.size(),
                        static_cast<std::uint64_t>(options.seed), options.on_error,
                        [&] { return seconds_now() >= end || StopSignals::received() != 0; });
  });
  std::int64_t sums[] = {mine.read, mine.unreadable};
  ranks.sum(DType::int64, reinterpret_cast<std::byte*>(sums), 2, "the number of samples that were read");
  std::string text = sums[0] == source.size() ? fmt::format("all {} {} samples", with_commas(sums[0]), kind)
                                              : fmt::format("{} of {} {} samples", with_commas(sums[0]),
                                                            with_commas(source.size()), kind);
  if (sums[1] == 0) return text;
  std::string error;
  for (const std::string& first : ranks.gather_all(mine.first_error, "the first sample that cannot be read"))
    if (error.empty()) error = first;
  return fmt::format("{}, of which {} cannot be read and will be skipped ({})", text, with_commas(sums[1]),
                     error);
}

fs::path folder_of_temporary_files() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error)
    throw UserError(fmt::format(
        "the folder of temporary files cannot be used: {}; set TMPDIR to a folder that exists, or give "
        "output.dir",
        error.message()));
  return folder;
}

// The temporary folders of rank 0 beside the places that a run would write to.
class OutputPlaces {
 public:
  OutputPlaces(const CommandLine& line, const fs::path& output) {
    check_outputs(line, output.string());
    if (output.empty())
      checkpoints_.emplace(folder_of_temporary_files(), [](const fs::path&) {});
    else
      checkpoints_.emplace(output, prepare_checkpoints);
    if (!line.report.empty())
      report_.emplace(line.report, [](const fs::path& folder) { make_output_folder("--report", folder); });
    if (!line.tensorboard.empty())
      tensorboard_.emplace(line.tensorboard,
                           [](const fs::path& folder) { make_output_folder("--tensorboard", folder); });
    if (!line.log.empty() && line.report.empty())
      log_.emplace(folder_of_log(line.log), [](const fs::path&) {});
    for (const fs::path& file : {fs::path(line.log), fs::path(line.report) / report_facts})
      check_writable(file);
  }

  const fs::path& checkpoints() const { return checkpoints_->path(); }
  const fs::path* report() const { return report_ ? &report_->path() : nullptr; }
  const fs::path* tensorboard() const { return tensorboard_ ? &tensorboard_->path() : nullptr; }
  // Returns the folder of the log; null if none is written.
  const fs::path* log() const { return log_ ? &log_->path() : report(); }

 private:
  static fs::path folder_of_log(const fs::path& log) {
    fs::path folder = log.has_parent_path() ? log.parent_path() : fs::path(".");
    std::error_code error;
    if (!fs::is_directory(folder, error))
      throw UserError(fmt::format("--log: the folder of '{}' does not exist; make it, or name another file",
                                  log.string()));
    return folder;
  }

  static void check_writable(const fs::path& file) {
    std::error_code error;
    if (!file.empty() && fs::exists(file, error) && ::access(file.c_str(), W_OK) != 0)
      throw UserError(fmt::format("cannot write '{}': {}; name another file", file.string(),
                                  std::generic_category().message(errno)));
  }

  std::optional<TemporaryFolder> checkpoints_, report_, tensorboard_, log_;
};

// Ends the run after some steps, and writes their records on rank 0.
class FewSteps final : public TrainingObserver {
 public:
  FewSteps(Trainer& trainer, const OutputPlaces* places) : trainer_(trainer) {
    if (places != nullptr && places->log() != nullptr) log_.emplace(*places->log() / report_log);
    if (places != nullptr && places->tensorboard() != nullptr) tensorboard_.emplace(*places->tensorboard());
  }

  void step(const StepRecord& record, std::int64_t) override {
    if (log_) log_->step(record);
    if (tensorboard_) tensorboard_->step(record);
    if (!record.dead_gradients.empty()) dead_gradients_ = record.dead_gradients;
    if (steps_++ == 0) first_loss_ = record.loss;
    last_loss_ = record.loss;
    seconds_ = seconds_now() - begin_;
    if (steps_ >= fewest_steps && seconds_ >= seconds_of_steps) trainer_.end_early();
  }

  void epoch(const EpochRecord& record) override {
    if (log_) log_->epoch(record);
    if (tensorboard_) tensorboard_->epoch(record);
  }

  double seconds() const { return seconds_; }  // seconds until the end of the last step
  std::string text() const {
    std::string text = fmt::format("{} step{}, the loss went from {:.4g} to {:.4g}", steps_,
                                   steps_ == 1 ? "" : "s", first_loss_, last_loss_);
    return dead_gradients_.empty() ? text : text + "; " + dead_gradients_sentence(dead_gradients_);
  }

 private:
  Trainer& trainer_;
  std::optional<JsonLog> log_;
  std::optional<TensorBoardLog> tensorboard_;
  std::vector<std::string> dead_gradients_;
  double begin_ = seconds_now();
  double seconds_ = 0;
  std::int64_t steps_ = 0;
  double first_loss_ = 0, last_loss_ = 0;
};

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder))
    if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

// Writes the initial weights to the store, so that loading a checkpoint has to change them.
void forget_training(const Setup& setup, ParameterStore& store) {
  const ParameterStore initial = make_store_of(setup);
  for (const ParameterSpec& spec : store.specs()) store.write(spec.name, initial.read(spec.name));
}

std::string bits_of(const ParameterStore& store) {
  return fmt::format("{:016x} {:016x}", weights_hash(store), states_hash(store));
}

// True if all ranks can see the folder. Ranks on other hosts cannot if it lies in the memory of the host of rank 0.
bool all_see(Collective& ranks, const fs::path& folder) {
  std::error_code error;
  for (const std::string& sees :
       ranks.gather_all(fs::exists(folder, error) ? "yes" : "no", "a checkpoint's folder"))
    if (sees != "yes") return false;
  return true;
}

// The check of --check: tries each part of a run once.
class RunCheck {
 public:
  RunCheck(Communicator& ranks, const CommandLine& line, Setup& setup, TrainerParts parts)
      : ranks_(ranks),
        line_(line),
        setup_(setup),
        parts_(std::move(parts)),
        options_(setup.options.trainer),
        validated_(setup.data.validation),
        printed_(ranks) {}

  TrainingResult run() {
    read_data();
    open_outputs();
    const std::string bits = train();
    if (result_.signal == 0) load(bits);
    if (result_.signal == 0) printed_.print(epoch_text());
    return result_;
  }

 private:
  void read_data() {
    std::string text = read_everywhere(ranks_, setup_, *parts_.train, "training");
    if (validates()) text += " and " + read_everywhere(ranks_, setup_, *parts_.validation, "validation");
    printed_.works("data", text);
    parts_.validation = setup_.data.validation = some_samples(validated_, most_validated);
  }

  void open_outputs() {
    const fs::path output = read_output_folder(*setup_.config);
    saves_ = !output.empty();
    together(ranks_, "opening the outputs", [&] {
      if (ranks_.rank() == 0) places_ = std::make_unique<OutputPlaces>(line_, output);
    });
    options_.output =
        ranks_.gather_all(places_ ? places_->checkpoints().string() : "", "the folder of the check").front();
    options_.steps = most_steps;
    std::vector<std::string> names;
    for (const std::string& name : {output.string(), line_.log, line_.tensorboard})
      if (!name.empty()) names.push_back(fmt::format("'{}'", name));
    printed_.works("outputs", fmt::format("{}{}", fmt::join(names, " and "),
                                          names.empty() ? "a run saves nothing, because output.dir is empty"
                                                        : " can be written"));
  }

  // Trains a few steps. Returns the bits of the weights and the optimizer's state at the end.
  std::string train() {
    Trainer trainer(parts_, options_);
    check_agreement(ranks_, trainer.facts());
    printed_.works("model", fmt::format("{} parameters", with_commas(parts_.store.trainable_elements())));
    if (validates()) {
      const Validation validation = trainer.validate();
      validation_seconds_ =
          printed_.works("validation", fmt::format("{} samples, {}", with_commas(parts_.validation->size()),
                                                   validation_text(validation.loss, validation.metrics)));
    }
    const double begin = seconds_now();
    auto steps = together(ranks_, "opening the log",
                          [&] { return std::make_unique<FewSteps>(trainer, places_.get()); });
    result_ = trainer.run(*steps);
    if (result_.signal != 0) return "";
    save_seconds_ = seconds_now() - begin - steps->seconds();
    printed_.works("training", steps->text(), steps->seconds());
    const std::string bytes = together(ranks_, "reading the size of the checkpoint", [&] {
      return places_ ? bytes_text(static_cast<double>(bytes_in(places_->checkpoints()))) : "";
    });
    printed_.works("checkpoint", fmt::format("{} saved", bytes), save_seconds_);
    write_facts(trainer);
    return bits_of(parts_.store);
  }

  void write_facts(const Trainer& trainer) {
    if (line_.report.empty()) return;
    CommandLine line = line_;
    if (places_) line.report = places_->report()->string();
    printed_.begin();
    write_report(ranks_, {line, setup_, result_, parts_.store, parts_.backend, trainer.programs().largest()});
    printed_.works("report", line_.report);
  }

  // Loads the checkpoint, and compares the bits on rank 0, which has saved them. The agreement of all ranks
  // then compares the other ranks with rank 0, as at the start of a run.
  void load(const std::string& saved_bits) {
    if (!all_see(ranks_, options_.output)) {
      if (saves_)
        throw UserError(
            "output.dir is not the same folder on all hosts, and every rank reads the checkpoint when a run "
            "is resumed; name a folder that all hosts share");
      return;
    }
    forget_training(setup_, parts_.store);
    printed_.begin();
    Trainer trainer(parts_, options_);
    const bool found = together(ranks_, "loading the checkpoint", [&] { return trainer.resume(); });
    const std::string bits = bits_of(parts_.store);
    together(ranks_, "comparing the checkpoint", [&] {
      if (!found || (ranks_.rank() == 0 && bits != saved_bits))
        throw UserError(
            "the checkpoint has other weights or another state of the optimizer than the run that saved it; "
            "the disk or its file system may change files: try another folder in output.dir");
    });
    check_agreement(ranks_, trainer.facts());
    printed_.works("resuming", "the weights and the optimizer's state have the bits that were saved");
  }

  bool validates() const { return validated_ != nullptr && validated_->size() > 0; }

  std::string epoch_text() const {
    const auto samples = static_cast<double>(parts_.train->size());
    const double training = result_.images_per_second > 0 ? samples / result_.images_per_second : 0;
    const double validation = validates() ? validation_seconds_ * static_cast<double>(validated_->size()) /
                                                static_cast<double>(parts_.validation->size())
                                          : 0;
    const double epoch = training + validation + (saves_ ? save_seconds_ : 0);
    const BatchPlan plan{parts_.train->size(), options_.batch_size};
    return fmt::format(
        "an epoch is expected to take about {}: {} for {} steps, {} for the validation{}; all {} epochs "
        "about {}",
        long_seconds_text(epoch), long_seconds_text(training), with_commas(plan.steps_per_epoch()),
        long_seconds_text(validation),
        saves_ ? fmt::format(", {} for the checkpoint", long_seconds_text(save_seconds_)) : "",
        with_commas(options_.epochs), long_seconds_text(epoch * static_cast<double>(options_.epochs)));
  }

  Communicator& ranks_;
  const CommandLine& line_;
  Setup& setup_;
  TrainerParts parts_;
  TrainerOptions options_;
  std::shared_ptr<const SampleSource> validated_;  // all samples that a run validates with
  WorkingParts printed_;
  bool saves_ = false;                    // true if output.dir is given
  std::unique_ptr<OutputPlaces> places_;  // the temporary folders on rank 0; null on other ranks
  TrainingResult result_;
  double validation_seconds_ = 0;  // duration of a validation with a part of the samples
  double save_seconds_ = 0;
};

}  // namespace

CommandLine without_records(CommandLine line) {
  line.log.clear();
  line.tensorboard.clear();
  line.report.clear();
  return line;
}

TrainingResult check_run(Communicator& ranks, const CommandLine& line, Setup& setup, TrainerParts parts) {
  const StopSignals signals;
  return RunCheck(ranks, line, setup, std::move(parts)).run();
}

}  // namespace plexaura
