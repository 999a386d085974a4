#include "app/train_or_serve.h"

#include <algorithm>
#include <fmt/format.h>

#include "app/check_run.h"
#include "app/choices/automatic_compression.h"
#include "app/choices/automatic_exchange.h"
#include "app/choices/automatic_precision.h"
#include "app/choices/device_exchange.h"
#include "app/choices/kernel_choice.h"
#include "app/choices/shared_cores.h"
#include "app/described_step.h"
#include "app/observed_metrics.h"
#include "app/options/distributed_config.h"
#include "app/options/outputs.h"
#include "app/report/memory_text.h"
#include "app/report/report.h"
#include "app/survivors.h"
#include "app/trials/find_learning_rate.h"
#include "app/trials/overfit_samples.h"
#include "app/write_profile.h"
#include "app/write_report.h"
#include "backends/registry.h"
#include "core/base/print.h"
#include "core/base/profile.h"
#include "distributed/choices/choose_compression.h"
#include "distributed/communicator/handshake.h"
#include "distributed/communicator/roles.h"
#include "distributed/strategies/rebroadcast.h"
#include "distributed/strategies/strategies.h"
#include "models/zoo/summary.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/loop/signals.h"
#include "training/programs/memory_limit.h"

namespace plexaura {

namespace {

// Switches off tuning for a device that does not exist, because nothing can be measured on it.
std::unique_ptr<Backend> open_device(const CommandLine& line, RunOptions& options) {
  if (line.device.empty()) return open_backend(line.backend);
  options.tuning = Tuning::off;
  return open_described_backend(line.backend, line.device);
}

std::string plan_text(const Setup& setup, const Trainer& trainer, const CommandLine& line) {
  const Program& program = trainer.programs().largest();
  std::string text = summary(*setup.model) + "\n";
  text += printable(fmt::format("data         {}", setup.data.description)) + "\n";
  text += printable(fmt::format("{:<13}{}", setup.data.kind_of_outputs(), setup.data.outputs)) + "\n";
  text += printable(fmt::format("samples      {}", setup.data.preparation)) + "\n";
  text += activations_text(program);
  text += fmt::format("program      {} instructions, {} reorders\n", program.instructions.size(),
                      program.reorders);
  if (line.print_program) text += program.to_text() + "\n";
  return text;
}

void say_choice(RunReport& report, const ChoiceReport& choice) {
  if (choice.sentence.empty()) return;
  report.say(choice.sentence);
  report.log(choice.fields);
}

// Returns a text about how the run that wrote the checkpoint may have differed.
std::string_view difference_of(const Trainer& trainer) {
  return trainer.has_other_buckets()
             ? "had another distributed.bucket_bytes, which cuts updates into other pieces, or took other "
               "kernels"
             : "took other kernels, as with another processor, build, number of ranks or batch";
}

// Returns a remark for users who expect more speed from 16-bit floats on a CPU.
std::string remark_on_speed(const RunOptions& options, const Backend& backend) {
  const ArenaTypes& types = options.types;
  if (!types.is_mixed() || options.finds_precision || !backend.info().host_memory) return {};
  return fmt::format(
      "training.precision {} needs less memory than float32; on a CPU it is not faster where operations "
      "convert their operands to float32",
      name_of(types.precision()));
}

// The objects of a rank that trains, or may have to train later.
struct Work {
  std::unique_ptr<RunReport> report;
  std::unique_ptr<Profile> profile;  // records the profile; null: no profile is written
  std::unique_ptr<Backend> backend;
  ParameterStore store;
  KernelChoice choice;
};

// Returns the last step of a run that is not stopped before.
std::int64_t last_step_of(const Setup& setup) {
  const TrainerOptions& trainer = setup.options.trainer;
  const BatchPlan plan{setup.data.train->size(), trainer.batch_size};
  const std::int64_t all =
      trainer.epochs * (setup.data.stream ? trainer.steps_per_epoch : plan.steps_per_epoch());
  return std::min(all, trainer.steps.value_or(all));
}

RecordFiles files_of(const CommandLine& line) { return {line.log, line.tensorboard}; }

// Makes the objects of a rank. A spare gets its weights later, when it is needed. `backend` is null if it is
// not open yet.
Work prepare(const CommandLine& line, const Roles& roles, Setup& setup, std::unique_ptr<Backend> backend) {
  Communicator& ranks = roles.candidates();
  auto report = together(ranks, "opening the outputs", [&] {
    const bool speaks = ranks.rank() == 0;
    if (speaks) prepare_outputs(line, setup.options.trainer.output.string(), last_step_of(setup));
    return std::make_unique<RunReport>(speaks, files_of(line), setup.options.trainer.epochs);
  });
  auto profile = line.profile.empty() ? nullptr : std::make_unique<Profile>();
  if (profile) align_clocks(ranks, *profile);
  if (!backend)
    backend = together(ranks, "opening the backend", [&] { return open_device(line, setup.options); });
  ParameterStore store = together(ranks, "making the parameters", [&] {
    ParameterStore made = make_store_of(setup);
    if (!line.weights.empty() && !roles.is_spare())
      check_vocabulary(load_weights(line.weights, made, line.skip), line.weights,
                       setup.options.trainer.notes);
    return made;
  });
  if (setup.visit)
    report->say(
        together(ranks, "joining the server", [&] { return setup.visit->join(setup.options, store); }));
  KernelChoice choice = kernel_choice(ranks, line, setup.options);
  setup.options.trainer.number_of_rank = roles.number();
  setup.options.trainer.profile = profile.get();
  setup.options.trainer.tuner = choice.tuner.get();
  return {std::move(report), std::move(profile), std::move(backend), std::move(store), std::move(choice)};
}

TrainerParts parts_of(const Setup& setup, Work& work) {
  return {.model = builder_of(*setup.model),
          .store = work.store,
          .backend = *work.backend,
          .train = setup.data.stream ? nullptr : setup.data.train,
          .validation = setup.data.validation,
          .stream = setup.data.stream};
}

// Checks the names of the metrics that decide about the learning rate or the end of the run. Builds a graph
// and compiles nothing.
void check_observed_metrics(const Setup& setup, Work& work) {
  SingleProcess alone;
  Evaluator evaluator(builder_of(*setup.model), setup.data.train->fields(), work.store, *work.backend, alone);
  evaluator.know_metrics();
  std::vector<std::string> names;
  for (const MetricValue& metric : evaluator.values_of(std::vector<double>(evaluator.sum_count()), 1))
    names.push_back(metric.name);
  check_observed_metrics(*setup.config, setup.options.trainer, std::move(names));
}

// Waits for the other ranks. Returns the exit status. The summary of a rank that serves is printed last, so
// that an error of printing cannot lose a checkpoint.
int end_with_others(const Survivors& survivors, const TrainingResult& result) {
  const int status = survivors.share_status(result.signal == 0 ? 0 : 128 + result.signal);
  print_output(survivors.strategy().account());
  return status;
}

// Reports the result. Returns the exit status.
int conclude(const CommandLine& line, const Setup& setup, const Survivors& survivors, Work& work,
             const Trainer& trainer, const TrainingResult& result) {
  if (survivors.trains()) {
    work.report->summary(result, work.store, line.log, setup.options.trainer);
    if (work.profile) write_profile(survivors.ranks(), *work.profile, line.profile);
    if (!line.report.empty())
      write_report(survivors.ranks(),
                   {line, setup, result, work.store, *work.backend, trainer.programs().largest()});
  }
  return end_with_others(survivors, result);
}

// Does the work of a spare. Returns the exit status.
int stand_by(const CommandLine& line, const Roles& roles, Setup& setup) {
  Work work = prepare(line, roles, setup, nullptr);
  Survivors survivors(roles, nullptr, setup.options, work.backend->info().kind, files_of(line));
  setup.options.trainer.is_spare = true;
  Trainer trainer(parts_of(setup, work), setup.options.trainer);
  const TrainingResult result = survivors.run(work.store, *work.backend, &trainer, work.report.get());
  return conclude(line, setup, survivors, work, trainer, result);
}

// Does the work of a rank that trains. Returns the exit status.
int train(const CommandLine& line, const Roles& roles, const Communicator& exchange, Strategy* strategy,
          Setup& setup, std::unique_ptr<Backend> opened) {
  Communicator& ranks = roles.training();
  const std::string output = setup.options.trainer.output.string();
  Work work = prepare(line.check ? without_records(line) : line, roles, setup, std::move(opened));
  together(ranks, "the names of metrics", [&] { check_observed_metrics(setup, work); });
  const auto& report = work.report;
  const auto& backend = work.backend;
  const ParameterStore& store = work.store;
  const KernelChoice& choice = work.choice;
  const std::string unlike = find_difference(ranks, "the kind of processor", backend->info().kind);
  std::optional<Rebroadcast> realigning;
  if (!unlike.empty()) strategy = realign(strategy, ranks, setup.options.rebroadcast_every, realigning);
  report->say(choice.remark);
  report->say(remark_on_speed(setup.options, *backend));
  report->say(remark_on_shared_cores(ranks, roles.number(), backend->info().host_memory));
  for (const ChoiceReport& choice : setup.choices) say_choice(*report, choice);
  Survivors survivors(roles, strategy, setup.options, backend->info().kind, files_of(line));
  TrainerParts parts = parts_of(setup, work);
  parts.collective = &ranks;
  parts.strategy = strategy;
  if (line.check) return end_with_others(survivors, check_run(ranks, line, setup, parts));
  if (line.find_lr || line.overfit > 0) {
    TrainingResult trial;
    trial.signal = line.find_lr ? find_learning_rate(ranks, *setup.config, parts, setup.options.trainer)
                                : overfit_samples(ranks, parts, setup.options.trainer);
    return end_with_others(survivors, trial);
  }
  Trainer trainer(std::move(parts), setup.options.trainer);
  if (choice.tuner && ranks.rank() == 0) report->say(keep_kernel_choice(*choice.tuner));
  report->say(memory_sentence(trainer, setup.options.trainer));
  for (const std::string& op : trainer.programs().ops_on_host()) report->say(host_op_sentence(op, *backend));
  if (line.dry_run) {
    together(ranks, "printing", [&] {
      if (ranks.rank() == 0) print_output(plan_text(setup, trainer, line));
      if (auto* const described = dynamic_cast<DescribedBackend*>(backend.get()))
        print_output(
            text_of(account_of_step(*described, trainer), *described, setup.options.trainer.batch_size));
    });
    return 0;
  }
  const bool resumed = line.resume && together(ranks, "resuming", [&] { return trainer.resume(); });
  if (line.resume) check_all_or_none(ranks, resumed, "a checkpoint in output.dir");
  const bool replaces = !line.resume && newest_step(output).has_value();
  check_agreement(ranks, trainer.facts());
  report->say(fmt::format("{} parameters, {}, {} {}", with_commas(store.trainable_elements()),
                          setup.data.description, ranks.size(), ranks.size() == 1 ? "rank" : "ranks"));
  report->say(fmt::format("{}: {}", setup.data.kind_of_outputs(), setup.data.outputs));
  if (const std::optional<double>& ema = setup.options.trainer.optimizer.ema)
    report->say(
        fmt::format("validation and files of weights have averages of the weights (training.ema {})", *ema));
  if (replaces)
    report->say("the checkpoints in " + output +
                " will be removed as this run writes its own; --resume continues from the newest");
  if (line.resume)
    report->say(resumed ? "resumed from the newest checkpoint in " + output
                        : "no checkpoint in " + output + " yet; starting afresh");
  if (trainer.has_other_kernels())
    report->say(fmt::format("the run that wrote this checkpoint {}, so that rounding may differ",
                            difference_of(trainer)));
  if (setup.options.on_loss == OnLoss::end && exchange.size() > 1 && exchange.could_outlive_ranks())
    report->say(why_others_end(*setup.config, setup.options));
  if (realigning)
    report->say(fmt::format("{}, so that rounding may differ: all take the weights of rank 0 every {} steps",
                            unlike, setup.options.rebroadcast_every));
  if (const std::string& why = trainer.programs().why_not_late(); !why.empty())
    report->say("distributed.overlap is both, but no exchange overlaps with the forward pass, because " +
                why);
  if (has_parameter_server(setup.options.strategy.name) && !setup.visit)
    report->say(push_limit_sentence(setup.options.strategy.async_server));
  if (!keeps_order(exchange, setup.options))
    report->say(fmt::format(
        "distributed.algorithm is '{}', which adds in an order of its own: another number of hosts, "
        "or another division into buckets, may round differently",
        setup.options.algorithm));
  const TrainingResult result = survivors.run(work.store, *work.backend, &trainer, work.report.get());
  return conclude(line, setup, survivors, work, trainer, result);
}

// Does the work of a rank that serves. It gets the weights from the ranks that train. It ignores signals to
// stop: mpirun sends them to all ranks, the ranks that train decide when a run stops, and this rank is needed
// until they have saved.
int serve(const CommandLine& line, const Roles& roles, Strategy& strategy, const Setup& setup) {
  const auto backend = open_backend(line.backend);
  ParameterStore store = make_store_of(setup);
  if (line.dry_run) return 0;
  const StopSignals signals;
  Survivors survivors(roles, &strategy, setup.options, backend->info().kind, files_of(line));
  return end_with_others(survivors, survivors.run(store, *backend));
}

// Checks that an explicit on_loss is possible in this job. The default value needs no check.
void check_survival(const Communicator& ranks, const Setup& setup) {
  if (setup.options.on_loss == OnLoss::end || ranks.size() == 1 || ranks.outlives_ranks()) return;
  if (!setup.config->section("distributed").has("on_loss")) return;
  throw setup.config->section("distributed")
      .error("on_loss",
             fmt::format("is not 'end', and this job of {} ends when a rank dies; start it with "
                         "tools/run --survive, or mpirun --with-ft ulfm, of Open MPI 5, or set it to end",
                         message_passing_library()));
}

// Throws for --find-lr, --overfit and --check if a rank serves: that rank would wait for a run.
void check_all_train(const CommandLine& line, const Roles& roles, const Setup& setup) {
  if (roles.serving().empty()) return;
  throw setup.config->section("distributed")
      .error("strategy",
             fmt::format(
                 "is '{}', with which a rank serves, and {} is for strategies with which all ranks train; "
                 "choose allreduce",
                 setup.options.strategy.name, trial_of(line)));
}

// Makes the remaining choices: the compression of gradients, and the algorithm and buckets by which they are
// exchanged. Leaves the exchange as it is if there are spares, because these take no part and would not know
// the size of buckets.
void decide_on_hosts(Communicator& exchange, const CommandLine& line, bool has_spares, Setup& setup) {
  const bool compresses = setup.options.strategy.compression.name == automatic_compression;
  if ((exchange.size() == 1 && !compresses) || setup.options.algorithm == device_algorithm) return;
  const auto parameters = together(exchange, "making the parameters", [&] { return parameters_of(setup); });
  if (compresses) setup.choices.push_back(decide_compression(exchange, line, parameters, setup.options));
  if (!has_spares) setup.choices.push_back(decide_exchange(exchange, parameters, setup.options));
}

// Returns the step by which `training.precision: auto` is decided. The batch is divided among `ranks`. Ranks that serve are
// among them, because only the strategy, which is made later, knows them.
StepToTime step_to_time(const Setup& setup, int ranks) {
  const TrainerOptions& options = setup.options.trainer;
  const std::int64_t batch =
      setup.data.stream ? options.batch_size : std::min(options.batch_size, setup.data.train->size());
  const BatchPlan plan{batch, batch, ranks, options.micro_batches};
  return {*setup.model, parameters_of(setup), setup.data.train->fields(), plan.micro_batch_sizes(0).back()};
}

// Sets the options of a run that depend on the ranks instead of the file.
void fit_to_ranks(const Communicator& ranks, const Communicator& exchange, RunOptions& options) {
  if (ranks.outlives_ranks()) options.strategy.update = BucketSum::Update::by_step;
  options.trainer.parts_may_move = ranks.outlives_ranks() && options.on_loss == OnLoss::exact;
  options.trainer.buckets_change_bits = buckets_change_bits(exchange, options);
}

// Calls a function that trains. Adds the position of training.memory to the error that a step needs more.
template <class Phase>
int with_limit_of_memory(const Setup& setup, const Phase& phase) {
  try {
    return phase();
  } catch (const StepMemoryError& error) {
    throw memory_error(*setup.config, error);
  }
}

}  // namespace

int train_or_serve(const CommandLine& line, Communicator& ranks, Setup setup, int spares) {
  together(ranks, "reading the configuration", [&] { check_survival(ranks, setup); });
  if (setup.options.finds_precision) {
    StepToTime step =
        together(ranks, "making the parameters", [&] { return step_to_time(setup, ranks.size() - spares); });
    setup.choices.push_back(decide_precision(line, ranks, std::move(step), setup.options));
  }
  // Gradients have a communicator of their own, apart from that of collective ops in a graph. So the order of calls on
  // one communicator does not depend on the calls on the other.
  const bool is_spare = ranks.rank() >= ranks.size() - spares;
  const auto exchange = spares == 0 ? ranks.duplicate("the exchange of gradients")
                                    : ranks.split(is_spare ? 1 : 0, "the exchange of gradients");
  exchange->choose_algorithm(algorithm_of_hosts(setup.options));
  DeviceExchange devices;
  if (!is_spare)
    devices = decide_device_exchange(
        *exchange, [&] { return open_device(line, setup.options); }, setup.options);
  // Spares need these options too, because they may write a checkpoint later. They take no part in the
  // choices below.
  fit_to_ranks(ranks, *exchange, setup.options);
  if (is_spare)
    return with_limit_of_memory(setup, [&] { return stand_by(line, Roles(ranks, nullptr, true), setup); });
  setup.choices.push_back(std::move(devices.report));
  decide_on_hosts(*exchange, line, spares > 0, setup);
  const auto strategy = devices.strategy ? std::move(devices.strategy)
                        : setup.visit    ? setup.visit->strategy(setup.options)
                                         : make_strategy(setup.options.strategy, *exchange);
  const Roles roles(ranks, strategy.get());
  if (trial_of(line) != nullptr)  // reached by all ranks: a trial has no spares
    together(ranks, "reading the configuration", [&] { check_all_train(line, roles, setup); });
  if (roles.trainers() + spares < ranks.size()) {
    const ArenaTypes chosen = setup.options.types;
    together(ranks, "reading the configuration", [&] { read_run_options(setup, line, roles.trainers()); });
    setup.options.types = chosen;
    fit_to_ranks(ranks, *exchange, setup.options);
  }
  if (roles.serves()) return serve(line, roles, *strategy, setup);
  return with_limit_of_memory(setup, [&] {
    return train(line, roles, *exchange, strategy.get(), setup, std::move(devices.backend));
  });
}

}  // namespace plexaura
