#include "training/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <doctest/doctest.h>
#include <set>

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/params/module.h"
#include "tests/support/backend.h"
#include "tests/support/broken_samples.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/small_run.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/data/dataset.h"
#include "training/data/tensor_dataset.h"

namespace plexaura::testing::trainer_test {

TEST_CASE("validation samples that cannot be read are left out of the figures, counted and named") {
  TrainerOptions options = momentum();
  options.on_error = OnError::skip;
  struct Case {
    std::set<std::int64_t> broken;
    std::shared_ptr<const SampleSource> rest;
  };
  for (const Case& at : {Case{{0, 1, 2}, points(6, 103)}, Case{{6, 7, 8}, points(6, 100)}}) {
    SmallRun all;
    SmallRun rest;
    all.train(options, points(30), with_broken(points(9, 100), at.broken));
    rest.train(options, points(30), at.rest);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      CHECK(all.seen.epochs[epoch].val_loss ==
            doctest::Approx(rest.seen.epochs[epoch].val_loss).epsilon(1e-12));
      CHECK(value_of("accuracy", all.seen.epochs[epoch].val_metrics) ==
            doctest::Approx(value_of("accuracy", rest.seen.epochs[epoch].val_metrics)).epsilon(1e-12));
    }
    CHECK(all.result.skipped_validation.count == 3);
    CHECK(all.result.skipped_validation.first ==
          "sample " + std::to_string(*at.broken.begin()) + " cannot be read");
    CHECK(all.result.skipped.count == 0);
  }
}

TEST_CASE(
    "training samples that cannot be read are counted once, and validation of none of them ends the run") {
  TrainerOptions options = momentum();
  options.on_error = OnError::skip;
  SmallRun run;
  run.train(options, with_broken(points(30), {4, 17}), points(9, 100));
  CHECK(run.result.skipped.count == 2);
  CHECK(run.result.skipped.first == "sample 4 cannot be read");
  CHECK(run.result.skipped_validation.count == 0);
  CHECK(user_error([&] {
          SmallRun().train(options, points(30), with_broken(points(2, 100), {0, 1}));
        }) == "no validation sample can be read; the first error is: sample 0 cannot be read");
}

TEST_CASE("a trainer goes on when its store was moved") {
  SmallRun run;
  run.train(momentum(), points(30), points(9, 100));
  auto store = std::make_unique<ParameterStore>(small_store());
  Trainer trainer({.model = small_model,
                   .store = *store,
                   .backend = test_backend(),
                   .train = points(30),
                   .validation = points(9, 100)},
                  momentum());
  const ParameterStore moved = std::move(*store);
  store.reset();
  trainer.run();
  CHECK(weights(moved) == weights(run.store));
}

TEST_CASE("a run reports every step and epoch, and learns") {
  SmallRun run;
  run.train(momentum(), points(30), points(9, 100));
  REQUIRE(run.seen.steps.size() == 12);
  REQUIRE(run.seen.epochs.size() == 3);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(run.seen.steps[i].step == static_cast<std::int64_t>(i) + 1);
    CHECK(run.seen.steps[i].epoch == static_cast<std::int64_t>(i) / 4);
    CHECK(run.seen.steps[i].step_in_epoch == static_cast<std::int64_t>(i) % 4 + 1);
    CHECK(run.seen.steps[i].learning_rate == 0.1);
  }
  CHECK(run.result.steps == 12);
  CHECK(run.result.steps_now == 12);
  CHECK(run.result.signal == 0);
  CHECK(run.seen.epochs[2].train_loss < run.seen.epochs[0].train_loss);
  CHECK(run.seen.epochs[2].val_loss < run.seen.epochs[0].val_loss);
  CHECK(value_of("accuracy", run.seen.epochs[2].val_metrics) >
        value_of("accuracy", run.seen.epochs[0].val_metrics));
  CHECK(!run.seen.epochs[2].waits);  // a single rank waits for no other rank
}

TEST_CASE("an epoch's loss is the mean over its samples, its short last batch included") {
  SmallRun run;
  run.train(momentum(), points(30), points(9, 100));
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (std::size_t step = 0; step < 4; ++step)
      sum += (step == 3 ? 6 : 8) * run.seen.steps[4 * epoch + step].loss;
    CHECK(run.seen.epochs[epoch].train_loss == doctest::Approx(sum / 30).epsilon(1e-12));
  }
}

TEST_CASE("what is validated on, and whether, does not change training") {
  SmallRun with;
  SmallRun without;
  with.train(momentum(), points(30), points(9, 100));
  without.train(momentum(), points(30), points(0));
  CHECK(weights(with.store) == weights(without.store));
  for (std::size_t i = 0; i < 12; ++i) CHECK(with.seen.steps[i].loss == without.seen.steps[i].loss);
  CHECK(std::isnan(without.seen.epochs[0].val_loss));
  CHECK(std::isnan(value_of("accuracy", without.seen.epochs[0].val_metrics)));
  CHECK(with.seen.epochs[0].val_loss > 0);
}

TEST_CASE("validation has neither dropout nor padding, and sees the weights of the epoch's end") {
  TrainerOptions frozen = momentum();
  frozen.learning_rate = 1e-300;
  frozen.optimizer = {};
  std::vector<double> losses;
  for (const std::int64_t batch_size : {1, 4, 9, 30}) {
    SmallRun run;
    frozen.batch_size = batch_size;
    run.train(frozen, points(30), points(9, 100));
    for (const EpochRecord& epoch : run.seen.epochs) losses.push_back(epoch.val_loss);
  }
  SmallRun cut;
  frozen.micro_batches = 4;
  cut.train(frozen, points(30), points(9, 100));
  losses.push_back(cut.seen.epochs[0].val_loss);
  frozen.micro_batches = 1;
  for (const double loss : losses) CHECK(loss == doctest::Approx(losses[0]).epsilon(1e-12));
  // Dropout must still be active after the first validation: the epochs' losses differ although no weight
  // changes.
  SmallRun run;
  frozen.batch_size = 30;
  run.train(frozen, points(30), points(9, 100));
  CHECK(run.seen.steps[0].loss != run.seen.steps[1].loss);
  CHECK(run.seen.steps[1].loss != run.seen.steps[2].loss);
}

TEST_CASE("where micro-batches save memory validation needs no more than training") {
  TrainerOptions options = momentum();
  options.batch_size = 24;
  options.micro_batches = 8;
  const auto workspace = [&](std::int64_t validation) {
    ParameterStore store = small_store();
    const Trainer trainer({small_model, store, test_backend(), points(30), points(validation, 100)}, options);
    return trainer.programs().workspace_bytes();
  };
  CHECK(workspace(24) == workspace(0));
}

TEST_CASE("a signal ends the run after the next step, with a checkpoint") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  SmallRun run;
  run.seen.after_step = [](const StepRecord& record) {
    if (record.step == 5) std::raise(SIGTERM);
  };
  run.train(options, points(30), points(9, 100));
  CHECK(run.result.signal == SIGTERM);
  CHECK(run.result.steps == 6);
  CHECK(newest_checkpoint(folder.path()) == folder / "checkpoint-000006");
}

TEST_CASE("a loss that is no number ends the run before anything is saved") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  options.replace = true;
  // If weights become NaN within an epoch, the loss of the next step shows it. After the last step of an
  // epoch, the validation loss does.
  for (const auto& [lost, first] :
       {std::pair(6, "the loss of step 7 is nan"), std::pair(8, "the validation loss after step 8 is nan")}) {
    SmallRun run;
    run.seen.after_step = [&, step = lost](const StepRecord& record) {
      if (record.step != step) return;
      const Tensor whole = run.store.read("first");
      const std::vector<double> nothing(static_cast<std::size_t>(whole.elements()), std::nan(""));
      run.store.write("first", Tensor::of(whole.shape(), nothing));
    };
    const std::string text = user_error([&] { run.train(options, points(30), points(9, 100)); });
    CHECK(text.starts_with(std::string(first) + ": training diverged; lower the learning rate"));
    CHECK(run.seen.epochs.size() == 1);
    CHECK(newest_checkpoint(folder.path()) == folder / "checkpoint-000004");
  }
}

TEST_CASE("weights that are no numbers at the end of an epoch end the run, also where none are saved") {
  TrainerOptions options = momentum();
  options.epochs = 1;
  SmallRun run;
  run.seen.after_step = [&](const StepRecord& record) {
    if (record.step != 4) return;
    Tensor whole = run.store.read("second");
    whole.as<double>()[7] = std::nan("");
    run.store.write("second", whole);
  };
  CHECK(user_error([&] {
          run.train(options, points(30), points(0));
        }).starts_with("NaN at element 7 of 'second' after the last step: training diverged"));
}

TEST_CASE("a sample that cannot be read ends the run with its error") {
  SmallRun run;
  std::vector<double> last = weights(run.store);
  run.seen.after_step = [&](const StepRecord&) { last = weights(run.store); };
  CHECK(user_error([&] { run.train(momentum(), with_broken(points(30), {17}), points(3)); }) ==
        "sample 17 cannot be read");
  CHECK(weights(run.store) == last);
  CHECK(run.seen.epochs.empty());
}

TEST_CASE("a run needs neither validation data, an observer nor a collective") {
  ParameterStore store = small_store();
  Trainer trainer({.model = small_model, .store = store, .backend = test_backend(), .train = points(30)},
                  momentum());
  CHECK(user_error([&] { trainer.validate(); }).starts_with("there are no samples for validation; give "));
  const TrainingResult result = trainer.run();
  CHECK(result.steps == 12);
  CHECK(std::isnan(result.last_epoch->val_loss));
  SmallRun empty;
  empty.train(momentum(), points(30), points(0));
  CHECK(weights(store) == weights(empty.store));
}

TEST_CASE("parts that are missing or do not fit each other are told before anything is compiled") {
  ParameterStore store = small_store();
  const auto refusal = [&](ModelBuilder model, std::shared_ptr<const SampleSource> train,
                           std::shared_ptr<const SampleSource> validation) {
    return user_error([&] {
      Trainer({std::move(model), store, test_backend(), std::move(train), std::move(validation)}, {});
    });
  };
  CHECK(refusal(nullptr, points(30), nullptr) == "the Trainer has no model; set TrainerParts::model");
  CHECK(refusal(small_model, nullptr, points(3)) ==
        "the Trainer has no training data; set TrainerParts::train");
  CHECK(
      refusal(small_model, points(30), tensor_dataset({{"x", Tensor({DType::float32, {3, 2}})}})) ==
      "samples of the training data are float32[4] samples, int64[] labels and those of the validation data "
      "float32[2] x; give both the same fields");
  CHECK(
      refusal([](const ModelInputs& inputs) { return LossOutputs{inputs["lables"]}; }, points(30), nullptr) ==
      "the model asks for 'lables', and the data has samples, labels; did you mean 'labels'?");
}

TEST_CASE("a label that names no class ends the run before the loss is NaN") {
  ParameterStore store = small_store();
  const auto data = tensor_dataset(
      {{"samples", Tensor({DType::float32, {3, 4}})}, {"labels", Tensor::of<std::int64_t>({3}, {0, 1, 3})}});
  Trainer trainer({small_model, store, test_backend(), data}, {.shuffle = false});
  CHECK(user_error([&] {
          trainer.run();
        }).starts_with("element 0 of 'labels' is the label 3 and there are 3 classes"));
}

TEST_CASE("a model of which nothing is trained is refused") {
  SmallRun run;
  for (const char* name : {"first", "second"}) run.store.set_trainable(name, false);
  CHECK(user_error([&] { run.train(momentum(), points(30), nullptr); }) ==
        "all parameters are frozen, so that nothing would be trained; leave some of them trainable");
}

TEST_CASE("options that make no run are refused by their names") {
  const auto refusal = [](const TrainerOptions& options) {
    ParameterStore store = small_store();
    return user_error([&] { Trainer({small_model, store, test_backend(), points(30)}, options); });
  };
  CHECK(refusal({.epochs = -1}) == "the Trainer's number of epochs is -1; give 0 or more");
  CHECK(refusal({.steps = -5}) == "the Trainer's number of steps is -5; give 0 or more");
  CHECK(refusal({.keep = -1}) == "the Trainer's number of checkpoints to keep is -1; give 1 or more");
  CHECK(refusal({.bucket_bytes = -1}) == "the Trainer's bucket_bytes is -1; give 1 or more");
  CHECK(refusal({.optimizer = {.weight_decay = -1}}).starts_with("the optimizer has weight_decay = -1"));
  CHECK(refusal({.batch_size = 8, .micro_batches = std::int64_t{1} << 40}) ==
        "the number of micro-batches is 1099511627776 and a batch has 8 samples; give at most one for each");
}

TEST_CASE("metrics of another order for the last batch of an epoch, or in validation, are refused") {
  const auto refusal = [](const std::function<bool(const ModelInputs&)>& swaps) {
    const ModelBuilder model = [=](const ModelInputs& inputs) {
      LossOutputs outputs = small_model(inputs);
      outputs.metrics.push_back({.name = "loss again", .mean = outputs.loss});
      if (swaps(inputs)) std::swap(outputs.metrics[0], outputs.metrics[1]);
      return outputs;
    };
    ParameterStore store = small_store();
    return user_error([&] {
      Trainer({model, store, test_backend(), points(30), points(3)}, momentum()).run();
    });
  };
  const std::string words = "the model reported the metrics [accuracy, loss again] for one size of batch";
  CHECK(refusal([](const ModelInputs& inputs) { return inputs.samples() == 6; }).starts_with(words));
  CHECK(refusal([](const ModelInputs& inputs) {
          return inputs.graph().mode() == Mode::inference;
        }).starts_with(words));
  CHECK(refusal([](const ModelInputs&) { return false; }).empty());
}

TEST_CASE("samples that get other fields after the first look are refused") {
  class Changing final : public SampleSource {
   public:
    std::int64_t size() const override { return 30; }
    std::vector<Field> fields() const override {
      std::vector<Field> fields{{"samples", {DType::float64, {4}}}, {"labels", {DType::int64, {}}}};
      if (looks_++ > 0) fields.pop_back();
      return fields;
    }
    void read_fields(std::int64_t, const SampleContext&,
                     std::span<const std::span<std::byte>> values) const override {
      for (const std::span<std::byte> value : values) std::ranges::fill(value, std::byte{0});
    }

   private:
    mutable int looks_ = 0;
  };
  SmallRun run;
  CHECK(user_error([&] { run.train(momentum(), std::make_shared<Changing>(), nullptr); }) ==
        "samples had 2 fields at first and have 1 now; SampleSource::fields() must stay the same");
}

TEST_CASE("a trainer runs once") {
  SmallRun run;
  Trainer trainer({small_model, run.store, test_backend(), points(30)}, momentum());
  trainer.run();
  CHECK(user_error([&] { trainer.run(); }).starts_with("Trainer::run was called twice; a Trainer runs once"));
}

TEST_CASE("validation by hand is that of the last epoch") {
  SmallRun run;
  Trainer trainer({small_model, run.store, test_backend(), points(30), points(9, 100)}, momentum());
  const double before = trainer.validate().loss;
  trainer.run(run.seen);
  const Validation after = trainer.validate();
  CHECK(after.loss == run.seen.epochs.back().val_loss);
  CHECK(after.metrics == run.seen.epochs.back().val_metrics);
  CHECK(after.loss < before);
}

TEST_CASE("a model has any inputs and targets, and several losses that are reported by name") {
  // y = 2 a - b, and z is 1 if y is positive
  Tensor a({DType::float32, {64, 1}});
  Tensor b({DType::float64, {64, 1}});
  Tensor y({DType::float32, {64, 1}});
  Tensor z({DType::int64, {64}});
  for (std::size_t i = 0; i < 64; ++i) {
    a.as<float>()[i] = 0.1F * static_cast<float>(i % 7);
    b.as<double>()[i] = 0.1 * static_cast<double>(i % 11);
    y.as<float>()[i] = 2 * a.as<float>()[i] - static_cast<float>(b.as<double>()[i]);
    z.as<std::int64_t>()[i] = y.as<float>()[i] > 0 ? 1 : 0;
  }
  const TensorType weight{DType::float32, {1, 1}};
  const TensorType head{DType::float32, {1, 2}};
  const auto model = [&](const ModelInputs& inputs) {
    Graph& graph = inputs.graph();
    const Node sum = matmul(inputs["a"], graph.parameter("of_a", weight)) +
                     matmul(inputs["b"], graph.parameter("of_b", weight));
    const Node logits = matmul(sum, graph.parameter("head", head));
    const Node distance = squared_error(sum, inputs["y"]);
    const Node sign = softmax_cross_entropy(logits, inputs["z"]);
    return LossOutputs{.loss = distance + 0.1 * sign,
                       .metrics = {{.name = "distance", .mean = distance},
                                   {.name = "sign", .mean = sign},
                                   {.name = "accuracy", .sum = top_k_correct(logits, inputs["z"])}}};
  };
  ParameterStore store({{"of_a", weight, ParameterRole::trainable, Initialiser::ones()},
                        {"of_b", weight, ParameterRole::trainable, Initialiser::ones()},
                        {"head", head, ParameterRole::trainable, Initialiser::normal(0.1)}});
  const auto data = tensor_dataset({{"a", a}, {"b", b}, {"y", y}, {"z", z}});
  Recorder seen;
  Trainer({.model = model, .store = store, .backend = test_backend(), .train = data, .validation = data},
          {.batch_size = 16, .epochs = 200, .learning_rate = 0.3})
      .run(seen);
  const EpochRecord& last = seen.epochs.back();
  CHECK(value_of("distance", last.val_metrics) < 0.01);
  CHECK(value_of("accuracy", last.val_metrics) > 0.9);
  CHECK(last.val_loss ==
        doctest::Approx(value_of("distance", last.val_metrics) + 0.1 * value_of("sign", last.val_metrics))
            .epsilon(1e-5));
  CHECK(
      user_error([&] { value_of("acuracy", last.val_metrics); }) ==
      "the model reports no metric 'acuracy'; it reports distance, sign, accuracy; did you mean 'accuracy'?");
  const StepRecord& first = seen.steps.front();
  CHECK(first.loss ==
        doctest::Approx(value_of("distance", first.metrics) + 0.1 * value_of("sign", first.metrics))
            .epsilon(1e-5));
}

TEST_CASE("a model without metrics trains as one with them") {
  const auto plain = [](const ModelInputs& inputs) { return LossOutputs{.loss = small_model(inputs).loss}; };
  SmallRun with;
  with.train(momentum(), points(30), points(9, 100));
  SmallRun without;
  Trainer trainer({plain, without.store, test_backend(), points(30), points(9, 100)}, momentum());
  const TrainingResult result = trainer.run(without.seen);
  CHECK(result.steps == with.result.steps);
  CHECK(weights(without.store) == weights(with.store));
  for (std::size_t i = 0; i < with.seen.epochs.size(); ++i) {
    CHECK(without.seen.epochs.at(i).val_loss == with.seen.epochs[i].val_loss);
    CHECK(without.seen.epochs[i].train_loss == with.seen.epochs[i].train_loss);
    CHECK(without.seen.epochs[i].val_metrics.empty());
  }
  for (const StepRecord& step : without.seen.steps) CHECK(step.metrics.empty());
  CHECK(trainer.validate().metrics.empty());
}

TEST_CASE("times and rates are those of this run") {
  SmallRun run;
  const auto begin = std::chrono::steady_clock::now();
  run.train(momentum(), points(32), points(8, 32));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  double epochs = 0;
  for (const EpochRecord& record : run.seen.epochs) {
    CHECK(record.seconds > 0);
    epochs += record.seconds;
  }
  CHECK(epochs <= elapsed.count());
  double steps = 0;
  for (const StepRecord& record : run.seen.steps) {
    CHECK(record.images_per_second > 0);
    steps += 8 / record.images_per_second;
  }
  CHECK(steps <= elapsed.count());
  CHECK(run.result.images_per_second > 0);
  CHECK(run.result.stall_share >= 0);
  CHECK(run.result.stall_share <= 1);
}

TEST_CASE("the second step names the parameters that are not trained, and other steps name none") {
  const auto train = [](ParameterStore store) {
    Recorder seen;
    Trainer({small_model, store, test_backend(), points(30)}, momentum()).run(seen);
    return seen.steps;
  };
  for (const StepRecord& record : train(small_store())) CHECK(record.dead_gradients.empty());
  // The first step trains weights of 0, so that the gradient of those before them is 0 in this step only.
  ParameterStore zeros = small_store();
  zeros.write("second", Tensor(zeros.spec("second").type));
  for (const StepRecord& record : train(std::move(zeros))) CHECK(record.dead_gradients.empty());
  // Weights that stay 0 let nothing through.
  std::vector<ParameterSpec> specs = small_store().specs();
  freeze(specs, "second");
  ParameterStore frozen(specs, 1);
  frozen.write("second", Tensor(frozen.spec("second").type));
  const std::vector<StepRecord> steps = train(std::move(frozen));
  CHECK(steps[1].dead_gradients == std::vector<std::string>{"'first' is zero everywhere"});
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (i != 1) CHECK(steps[i].dead_gradients.empty());
}

TEST_CASE("a second trainer on a store begins with its weights, and with no state of the first one") {
  ParameterStore used = small_store();
  const TrainerParts parts{small_model, used, test_backend(), points(30)};
  TrainerOptions options = momentum();
  options.optimizer = {.kind = OptimizerSpec::adam};
  Trainer(parts, options).run();
  ParameterStore fresh = small_store();
  for (const char* name : {"first", "second"}) fresh.write(name, used.read(name));
  Trainer(parts, options).run();
  Trainer({small_model, fresh, test_backend(), points(30)}, options).run();
  CHECK(weights(used) == weights(fresh));
}

}  // namespace plexaura::testing::trainer_test
