#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include "core/base/error.h"
#include "models/layer_lists/layer_keys.h"
#include "models/layer_lists/yaml_origin.h"
#include "models/zoo/model.h"
#include "models/zoo/model_kind.h"
#include "models/zoo/pixel_scale.h"
#include "models/zoo/sample.h"

namespace plexaura {

namespace {

double memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Throws if the machine has less memory than training needs at least: a store has every value twice while it
// is placed. Systems grant more memory than exists, and kill processes that use it.
void check_fits_in_memory(const Section& yaml, const std::vector<ParameterSpec>& specs) {
  const auto bytes = [](const ParameterSpec& spec) { return static_cast<double>(spec.type.bytes()); };
  double needed = 0;
  for (const ParameterSpec& spec : specs) needed += 2 * bytes(spec);
  if (needed <= memory_bytes()) return;
  const ParameterSpec& largest = *std::ranges::max_element(specs, {}, bytes);
  throw UserError(
      fmt::format("{}: the model needs {:.1f} GB of memory for its parameters and there are {:.1f} GB; the "
                  "largest is '{}', "
                  "{}; make the model smaller",
                  to_string(yaml.position("name")), needed * 1e-9, memory_bytes() * 1e-9, largest.name,
                  to_string(largest.type)));
}

// True for the models whose first layer needs numbers, and so cannot read the tokens of a text.
bool reads_numbers(const std::string& name) {
  static const std::set<std::string> names{"mlp", "resnet", "vgg", "mobilenet_v2", "convnext", "unet"};
  return names.contains(name);
}

// Builds the model for one sample, so that layers that do not fit are found before any data is read.
void try_once(Model& model) {
  Graph graph(Mode::inference);
  const Node outputs = model(one_sample(graph, model.info()));
  if (model.info().task == Task::reconstruction) {
    if (outputs.shape().elements() != model.classes())
      throw UserError(
          fmt::format("{}: the model's output for one sample is {} and model.task is reconstruction; its "
                      "last layer must make "
                      "as many values as the sample {} has, {}",
                      to_string(graph.record(outputs.id()).origin), to_string(outputs.shape()),
                      to_string(model.sample_shape()), model.classes()));
    return;
  }
  if (model.info().task == Task::segmentation) {
    const Shape& image = model.sample_shape();
    if (image.rank() == 3 && outputs.shape() == Shape{1, model.classes(), image[1], image[2]}) return;
    throw UserError(fmt::format(
        "{}: the model's output for one sample is {} and model.task is segmentation; for a sample {} it must "
        "be [1, {} classes, height, width], as of a unet or of a convnet whose layers keep height and width",
        to_string(graph.record(outputs.id()).origin), to_string(outputs.shape()),
        to_string(model.sample_shape()), model.classes()));
  }
  const bool has_positions = model.info().task == Task::language_model;
  const Shape wanted =
      has_positions ? batched(1, {model.sample_shape()[0], model.classes()}) : Shape{1, model.classes()};
  if (outputs.shape() != wanted)
    throw UserError(fmt::format(
        "{0}: the model's output for one sample is {1} and the data has {2} {3}; its last layer must be a "
        "value [1, {4}{3}]",
        to_string(graph.record(outputs.id()).origin), to_string(outputs.shape()), model.classes(),
        name_of_outputs(model.info().task), has_positions ? "positions, " : ""));
}

Key task_key(Task& task) {
  return {
      .name = "task",
      .into = one_of(task, {{"classification", Task::classification},
                            {"regression", Task::regression},
                            {"multi_label", Task::multi_label},
                            {"reconstruction", Task::reconstruction},
                            {"language_model", Task::language_model},
                            {"segmentation", Task::segmentation}}),
      .meaning =
          "what the outputs are: a score for each class of the data; a number for each column of "
          "`data.targets`; with `multi_label`, a score for each of these columns, which hold 0 or 1; "
          "with `reconstruction`, the pixels of the image, without the noise of `data.noise`, or those of "
          "its target; with `segmentation`, for each pixel a score for each class; or, with "
          "`language_model`, for each "
          "position of a text a score for each token that may follow"};
}

Key class_weights_key(std::optional<std::vector<double>>& weights) {
  return {
      .name = "class_weights",
      .into = &weights,
      .range = {.minimum = 0},
      .word = "balanced",
      .meaning =
          "the weight of each class in the loss, in the order in which the program prints the classes. The "
          "loss is the weighted sum over the samples of a step, divided by the weights of their classes. "
          "`balanced` weights a class by the number of training samples, divided by the number of classes "
          "and by "
          "the training samples of the class. An empty list: all samples count alike"};
}

// The losses that a task permits, for tasks that do not permit all losses.
struct TaskLosses {
  Loss regression = Loss::mse;
  Loss reconstruction = Loss::mse;
};

std::vector<Key> model_keys(ModelKeys& keys, TaskLosses& losses) {
  const Need softmax{.key = "loss", .values = {"softmax_cross_entropy"}};
  Key class_weights = class_weights_key(keys.class_weights);
  class_weights.needs = softmax;
  return {
      {.name = "name",
       .into = &keys.name,
       .words = names_of_models(),
       .required = true,
       .meaning = "the kind of the model; the program of a kind trains no other"},
      task_key(keys.task),
      {.name = "loss",
       .into = one_of(keys.loss, {{"softmax_cross_entropy", Loss::softmax_cross_entropy},
                                  {"squared_error", Loss::squared_error},
                                  {"binary_cross_entropy", Loss::binary_cross_entropy}}),
       .needs = {.key = "task", .values = {"classification"}},
       .meaning = "`squared_error` and `binary_cross_entropy`, of the sigmoid of each output, are against "
                  "one-hot labels and summed over the classes. All are means over the samples. With "
                  "`multi_label` it is `binary_cross_entropy`, as a mean over samples and labels; with "
                  "`language_model` it is `softmax_cross_entropy`, as a mean over all positions"},
      {.name = "loss",
       .into = one_of(losses.regression, {{"mse", Loss::mse}, {"l1", Loss::l1}, {"huber", Loss::huber}}),
       .needs = {.key = "task", .values = {"regression"}},
       .meaning = "the squared error; the absolute error; or `huber`, half the squared error for errors "
                  "below 1 and the "
                  "absolute error less 1/2 for others. All are means over samples and targets"},
      {.name = "loss",
       .into = one_of(losses.reconstruction, {{"mse", Loss::mse},
                                              {"l1", Loss::l1},
                                              {"huber", Loss::huber},
                                              {"binary_cross_entropy", Loss::binary_cross_entropy}}),
       .needs = {.key = "task", .values = {"reconstruction"}},
       .meaning = "of the outputs and the pixels from 0 to 1: the squared error; the absolute error; "
                  "`huber`, as for a regression; or `binary_cross_entropy` of the sigmoid of each output. "
                  "All are means over samples "
                  "and pixels"},
      {.name = "loss",
       .into = one_of(keys.loss, {{"softmax_cross_entropy", Loss::softmax_cross_entropy}}),
       .needs = {.key = "task", .values = {"segmentation"}},
       .meaning = "as a mean over the pixels that have a class"},
      {.name = "ignored_class",
       .into = &keys.ignored_class,
       .range = {.minimum = 0, .maximum = 255},
       .needs = {.key = "task", .values = {"segmentation"}},
       .meaning = "a number in the masks, such as 255, whose pixels count neither in the loss nor in the "
                  "metrics"},
      {.name = "label_smoothing",
       .into = &keys.label_smoothing,
       .range = {.minimum = 0, .below = 1},
       .needs = softmax,
       .meaning =
           "trains on probabilities instead of labels: this share is divided among all classes, and the "
           "rest belongs to the class of the sample"},
      std::move(class_weights)};
}

// Returns the weights of the classes for a model.
std::optional<std::vector<double>> weights_of_classes(const Section& yaml, const ModelKeys& keys,
                                                      std::int64_t classes, std::vector<double> balanced) {
  if (!keys.class_weights)
    return balanced.empty() ? std::nullopt : std::optional<std::vector<double>>(std::move(balanced));
  const std::vector<double>& weights = *keys.class_weights;
  if (weights.empty()) return weights;
  if (std::ssize(weights) != classes)
    throw yaml.error("class_weights",
                     fmt::format("has {} numbers and the data has {} classes; give one for each class",
                                 weights.size(), classes));
  for (const double weight : weights)
    if (const auto narrow = static_cast<float>(weight); weight != 0 && (narrow == 0 || std::isinf(narrow)))
      throw yaml.error("class_weights",
                       fmt::format("has the weight {}, which is {} in float32; give a {} number", weight,
                                   narrow == 0 ? "0" : "infinite", narrow == 0 ? "larger" : "smaller"));
  if (std::ranges::max(weights) == 0)
    throw yaml.error("class_weights",
                     "is 0 for every class, so that there is no loss; give one of them more");
  return weights;
}

}  // namespace

ModelKeys read_model_keys(const Section& yaml) {
  ModelKeys keys;
  TaskLosses losses;
  read_keys(yaml, model_keys(keys, losses));
  if (keys.task == Task::regression) keys.loss = losses.regression;
  if (keys.task == Task::reconstruction) keys.loss = losses.reconstruction;
  if (keys.task == Task::multi_label) keys.loss = Loss::binary_cross_entropy;
  return keys;
}

Task read_task(const Section& yaml) {
  Task task = Task::classification;
  read_keys(yaml, {task_key(task)});
  return task;
}

bool balances_classes(const Section& yaml) {
  if (!yaml.has("class_weights"))
    return false;  // read_keys() would add the default to the settings of this rank alone
  std::optional<std::vector<double>> weights = std::vector<double>{};
  read_keys(yaml, {class_weights_key(weights)});
  return !weights;
}

std::unique_ptr<Model> make_model(const Section& yaml, const Shape& sample_shape, std::int64_t classes,
                                  PixelScale pixels, std::vector<double> target_units,
                                  std::vector<double> balanced_weights) {
  const ModelKeys keys = read_model_keys(yaml);
  if (keys.task == Task::language_model && reads_numbers(keys.name))
    throw yaml.error("task",
                     fmt::format("is language_model, and model.name is {}, which reads numbers and no "
                                 "text; set that to convnet, and list the layers",
                                 keys.name));
  const std::int64_t outputs = keys.task == Task::reconstruction ? sample_shape.elements() : classes;
  ModelInfo info{.sample_shape = sample_shape,
                 .classes = outputs,
                 .loss = keys.loss,
                 .pixels = std::move(pixels),
                 .origin = yaml_origin(yaml.position("name")),
                 .task = keys.task,
                 .target_units = std::move(target_units),
                 .label_smoothing = keys.label_smoothing,
                 .class_weights = weights_of_classes(yaml, keys, classes, std::move(balanced_weights)),
                 .ignored_class = keys.ignored_class};
  std::unique_ptr<Model> model = kind_of_model(keys.name).make(yaml, std::move(info));
  check_fits_in_memory(yaml, specs_of(*model, DType::float32));
  try_once(*model);
  return model;
}

std::unique_ptr<Model> make_model(const Config& config, const Shape& sample_shape, std::int64_t classes) {
  return make_model(config.section("model"), sample_shape, classes, read_pixel_scale(config.section("data")));
}

std::vector<KeyText> model_key_texts() {
  ModelKeys keys;
  TaskLosses losses;
  std::vector<KeyText> texts = texts_of("model", model_keys(keys, losses));
  for (const std::string& name : names_of_models())
    for (KeyText& text : kind_of_model(name).describe()) {
      if (text.needs.empty()) text.needs = "only with name " + name;
      texts.push_back(std::move(text));
    }
  LayerKeys layer;
  std::ranges::move(texts_of("model.layers[]", layer_keys(layer)), std::back_inserter(texts));
  return texts;
}

}  // namespace plexaura
