#include "models/zoo/layer_list.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/config/yaml_tree.h"
#include "models/layers/convolution.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/zoo/yaml_origin.h"

namespace plexaura {

namespace {

constexpr NumberRange count{.minimum = 1, .maximum = 1 << 24};
constexpr NumberRange window{.minimum = 1, .maximum = 1 << 12};
constexpr NumberRange border{.minimum = 0, .maximum = 1 << 12};

// Returns the largest number of outputs of a layer whose weight has `each` elements for one output, so that
// all elements can be counted.
double most_outputs(std::int64_t each) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 59;
  return static_cast<double>(std::max<std::int64_t>(most_elements / each, 1));
}

std::int64_t channels_of(const Shape& x) { return x.rank() > 1 ? x[1] : 1; }

// Returns the beginning of a layer's default name, such as "conv" in "conv2".
std::string prefix_of(const std::string& type) {
  if (type == "linear") return "fc";
  return type == "batch_norm" ? "bn" : type;
}

// Returns how many inputs contribute to an output whose window has one element.
std::int64_t inputs_of(const std::string& type, const Shape& x) {
  if (type != "linear") return channels_of(x);
  return x.rank() > 0 ? x[x.rank() - 1] : 1;
}

template <class Options>
Options pool_options(const LayerKeys& keys) {
  return {.kernel = keys.kernel, .stride = keys.stride, .padding = keys.padding};
}

std::unique_ptr<layers::Layer> make_avg_pool(const LayerKeys& keys) {
  AvgPool2dOptions options = pool_options<AvgPool2dOptions>(keys);
  options.count_include_pad = keys.count_include_pad;
  return std::make_unique<layers::AvgPool2d>(options);
}

}  // namespace

std::vector<Key> layer_keys(LayerKeys& keys, const LayerPlace& place) {
  const auto with = [](std::vector<std::string> types) {
    return Need{.key = "type", .values = std::move(types)};
  };
  const Need pool = with({"max_pool", "avg_pool"});
  return {
      {.name = "type",
       .into = &keys.type,
       .words = {"conv", "linear", "max_pool", "avg_pool", "global_avg_pool", "relu", "sigmoid", "tanh",
                 "flatten", "dropout", "batch_norm", "standardise", "residual"},
       .required = true,
       .meaning =
           "the kind of the layer. `flatten` turns [C, H, W] into one axis, as `linear` requires; "
           "`standardise` scales each sample to mean 0 and variance 1 over the last axis; `residual` is "
           "relu(layers + shortcut)"},
      {.name = "name",
       .into = &keys.name,
       .late_default = {.set =
                            [&keys, numbers = place.numbers] {
                              const std::string prefix = prefix_of(keys.type);
                              const auto before = numbers.find(prefix);
                              keys.name = fmt::format("{}{}", prefix,
                                                      before == numbers.end() ? 1 : before->second + 1);
                            }},
       .meaning = "letters, digits, `_` and `-`; by default the kind and a number: `conv1`, `bn1`, `fc2`"},
      {.name = "units",
       .into = &keys.units,
       .range = count,
       .most = [x = place.input] { return most_outputs(inputs_of("linear", x)); },
       .late_default = {.set = [&keys, classes = place.classes] { keys.units = classes; }},
       .needs = with({"linear"}),
       .meaning = "number of outputs; by default the number of classes"},
      {.name = "kernel",
       .into = &keys.kernel,
       .range = window,
       .required = true,
       .needs = with({"conv", "max_pool", "avg_pool"}),
       .meaning = "height and width of the window"},
      {.name = "channels",
       .into = &keys.channels,
       .range = count,
       .most = [&keys,
                x = place.input] { return most_outputs(inputs_of("conv", x) * keys.kernel * keys.kernel); },
       .required = true,
       .needs = with({"conv"}),
       .meaning = "number of channels that go out"},
      {.name = "stride",
       .into = &keys.stride,
       .range = window,
       .needs = with({"conv"}),
       .meaning = "distance of two windows"},
      {.name = "stride",
       .into = &keys.stride,
       .range = window,
       .late_default = {.set = [&keys] { keys.stride = keys.kernel; }},
       .needs = pool,
       .meaning = "distance of two windows; by default `kernel`"},
      {.name = "padding",
       .into = &keys.padding,
       .range = border,
       .needs = with({"conv", "max_pool", "avg_pool"}),
       .meaning = "width of the border around the input"},
      {.name = "dilation",
       .into = &keys.dilation,
       .range = window,
       .needs = with({"conv"}),
       .meaning = "distance of two elements of a window"},
      {.name = "groups",
       .into = &keys.groups,
       .range = count,
       .needs = with({"conv"}),
       .meaning =
           "number of groups of channels that do not meet; divides the channels that come in and go out"},
      {.name = "bias",
       .into = &keys.bias,
       .needs = with({"conv", "linear"}),
       .meaning = "whether each output has a bias"},
      {.name = "count_include_pad",
       .into = &keys.count_include_pad,
       .needs = with({"avg_pool"}),
       .meaning = "whether the mean counts the padding"},
      {.name = "momentum",
       .into = &keys.norm.momentum,
       .range = {.minimum = 0, .maximum = 1},
       .needs = with({"batch_norm"}),
       .meaning = "weight of a batch in the running statistics"},
      {.name = "epsilon",
       .into = &keys.norm.epsilon,
       .range = {.above = 0},
       .needs = with({"batch_norm"}),
       .meaning = "added to the variance"},
      {.name = "synchronised",
       .into = &keys.norm.synchronised,
       .needs = with({"batch_norm"}),
       .meaning = "whether the statistics are over the samples of all ranks; not with `async-server` and "
                  "`downpour`, whose ranks do not make each step together"},
      {.name = "p",
       .into = &keys.p,
       .range = {.minimum = 0, .below = 1},
       .needs = with({"dropout"}),
       .meaning = "the probability that a value is dropped"},
      {.name = "layers",
       .into = &keys.layers,
       .required = true,
       .needs = with({"residual"}),
       .meaning = "the layers whose output is added to the shortcut"},
      {.name = "shortcut",
       .into = &keys.shortcut,
       .needs = with({"residual"}),
       .meaning = "the layers of the shortcut; without them, the input itself is added"},
  };
}

std::unique_ptr<layers::Sequential> LayerList::make(const std::vector<Section>& list, Node& x,
                                                    const std::string& path) {
  auto sequential = std::make_unique<layers::Sequential>();
  LayerPlace place{.classes = classes_};
  for (const Section& yaml : list) {
    LayerKeys keys;
    place.input = x.shape();
    read_keys(yaml, layer_keys(keys, place));
    ++place.numbers[prefix_of(keys.type)];
    const std::string& name = keys.name;
    if (!is_parameter_name(name) || name.find('.') != std::string::npos)
      throw yaml.error("name", fmt::format("is {}; use only letters and digits of ASCII, '_' and '-'",
                                           quoted_for_error(name)));
    if (sequential->contains(name))
      throw yaml.error("name", fmt::format("is '{}', as is that of a layer before", name));
    const std::string full = path.empty() ? name : path + '.' + name;
    const Origin origin = yaml_origin(yaml.position());
    std::unique_ptr<layers::Layer> layer = make_layer(yaml, keys, x, full);
    yaml.check_all_used();  // reports an unknown key before it lets later layers fail
    specs_of(*layer, DType::float32, full);
    const Graph::WithOrigin here(x.graph(), origin);
    x = (*layer)(x);
    sequential->add(name, std::move(layer), origin);
  }
  return sequential;
}

std::unique_ptr<layers::Layer> LayerList::make_layer(const Section& yaml, const LayerKeys& keys,
                                                     const Node& x, const std::string& path) {
  const std::string& type = keys.type;
  if (type == "conv") return make_conv(yaml, keys, x.shape());
  if (type == "linear") return make_linear(keys, x.shape());
  if (type == "max_pool") return std::make_unique<layers::MaxPool2d>(pool_options<MaxPool2dOptions>(keys));
  if (type == "avg_pool") return make_avg_pool(keys);
  if (type == "global_avg_pool") return std::make_unique<layers::GlobalAvgPool>();
  if (type == "flatten") return std::make_unique<layers::Flatten>();
  if (type == "dropout") return std::make_unique<layers::Dropout>(keys.p);
  if (type == "batch_norm") return std::make_unique<layers::BatchNorm2d>(channels_of(x.shape()), keys.norm);
  if (type == "standardise") return std::make_unique<layers::Standardise>();
  if (type == "residual") return make_residual(yaml, keys, x, path);
  return std::make_unique<layers::Activation>(type);
}

std::unique_ptr<layers::Layer> LayerList::make_linear(const LayerKeys& keys, const Shape& x) const {
  const layers::LinearOptions options{.bias = keys.bias, .weight = weight_, .bias_start = bias_start()};
  return std::make_unique<layers::Linear>(inputs_of(keys.type, x), keys.units, options);
}

std::unique_ptr<layers::Layer> LayerList::make_conv(const Section& yaml, const LayerKeys& keys,
                                                    const Shape& x) const {
  const std::int64_t in = channels_of(x);
  if (in % keys.groups != 0 || keys.channels % keys.groups != 0)
    throw yaml.error(
        "groups",
        fmt::format("is {}, which must divide the {} channels that come in and the {} that go out evenly",
                    keys.groups, in, keys.channels));
  layers::Conv2dOptions options{.weight = weight_, .bias_start = bias_start()};
  options.stride = keys.stride;
  options.padding = keys.padding;
  options.dilation = keys.dilation;
  options.groups = keys.groups;
  options.bias = keys.bias;
  return std::make_unique<layers::Conv2d>(in, keys.channels, keys.kernel, options);
}

std::unique_ptr<layers::Layer> LayerList::make_residual(const Section& yaml, const LayerKeys& keys,
                                                        const Node& x, const std::string& path) {
  Node y = x;
  std::unique_ptr<layers::Layer> body = make(keys.layers, y, path + ".body");
  if (!yaml.has("shortcut")) return std::make_unique<layers::Residual>(std::move(body));
  y = x;
  return std::make_unique<layers::Residual>(std::move(body), make(keys.shortcut, y, path + ".shortcut"));
}

// Returns PyTorch's default for biases if weights have PyTorch's default, otherwise zeros.
std::optional<Initialiser> LayerList::bias_start() const {
  if (weight_.fan == Initialiser::Fan::in && weight_.value < 1) return std::nullopt;
  return Initialiser::zeros();
}

}  // namespace plexaura
