#include "models/zoo/layer_list.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "models/config/yaml_tree.h"
#include "models/layers/batch_norm2d.h"
#include "models/layers/conv2d.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/zoo/yaml_origin.h"

namespace plexaura {

namespace {

constexpr IntegerRange count{.minimum = 1, .maximum = 1 << 24};
constexpr IntegerRange window{.minimum = 1, .maximum = 1 << 12};
constexpr IntegerRange border{.minimum = 0, .maximum = 1 << 12};

// How many outputs a layer may have whose weight holds `each` elements for one, so that all can be counted.
IntegerRange outputs_of(std::int64_t each) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 59;
  return {.minimum = 1, .maximum = std::clamp<std::int64_t>(most_elements / each, 1, count.maximum)};
}

std::int64_t channels_of(const Shape& x) { return x.rank() > 1 ? x[1] : 1; }

// What a layer is called unless it says so: its kind and a number, as in "conv2".
std::string prefix_of(const std::string& type) {
  if (type == "linear") return "fc";
  return type == "batch_norm" ? "bn" : type;
}

template <class Options>
Options pool_options(const Section& yaml) {
  const std::int64_t kernel = yaml.integer("kernel", window);
  return {.kernel = kernel,
          .stride = yaml.integer_or("stride", kernel, window),
          .padding = yaml.integer_or("padding", 0, border)};
}

std::unique_ptr<layers::Layer> make_batch_norm(const Section& yaml, const Shape& x) {
  layers::BatchNorm2dOptions options;
  options.momentum = yaml.number_or("momentum", options.momentum, {.minimum = 0, .maximum = 1});
  options.epsilon = yaml.number_or("epsilon", options.epsilon, {.above = 0});
  options.synchronised = yaml.flag_or("synchronised", false);
  return std::make_unique<layers::BatchNorm2d>(channels_of(x), options);
}

std::unique_ptr<layers::Layer> make_avg_pool(const Section& yaml) {
  AvgPool2dOptions options = pool_options<AvgPool2dOptions>(yaml);
  options.count_include_pad = yaml.flag_or("count_include_pad", true);
  return std::make_unique<layers::AvgPool2d>(options);
}

}  // namespace

const std::vector<std::string>& LayerList::types() {
  static const std::vector<std::string> types{
      "conv", "linear",  "max_pool", "avg_pool",   "global_avg_pool", "relu",    "sigmoid",
      "tanh", "flatten", "dropout",  "batch_norm", "standardise",     "residual"};
  return types;
}

std::unique_ptr<layers::Sequential> LayerList::make(const std::vector<Section>& list, Node& x,
                                                    const std::string& path) {
  auto sequential = std::make_unique<layers::Sequential>();
  std::map<std::string, int> numbers;
  for (const Section& yaml : list) {
    const std::string type = yaml.choice("type", types());
    const std::string name =
        yaml.text_or("name", fmt::format("{}{}", prefix_of(type), ++numbers[prefix_of(type)]));
    if (!is_parameter_name(name) || name.find('.') != std::string::npos)
      throw yaml.error("name", fmt::format("is {}; use letters and digits of ASCII, '_' and '-' alone",
                                           quoted_for_error(name)));
    if (sequential->contains(name))
      throw yaml.error("name", fmt::format("is '{}', as is that of a layer before", name));
    const std::string full = path.empty() ? name : path + '.' + name;
    const Origin origin = yaml_origin(yaml.position());
    std::unique_ptr<layers::Layer> layer = make_layer(type, yaml, x, full);
    yaml.check_all_used();  // before a key that is none lets the next layers fail
    specs_of(*layer, DType::float32, full);
    const Graph::WithOrigin here(x.graph(), origin);
    x = (*layer)(x);
    sequential->add(name, std::move(layer), origin);
  }
  return sequential;
}

std::unique_ptr<layers::Layer> LayerList::make_layer(const std::string& type, const Section& yaml,
                                                     const Node& x, const std::string& path) {
  if (type == "conv") return make_conv(yaml, x.shape());
  if (type == "linear") return make_linear(yaml, x.shape());
  if (type == "max_pool") return std::make_unique<layers::MaxPool2d>(pool_options<MaxPool2dOptions>(yaml));
  if (type == "avg_pool") return make_avg_pool(yaml);
  if (type == "global_avg_pool") return std::make_unique<layers::GlobalAvgPool>();
  if (type == "flatten") return std::make_unique<layers::Flatten>();
  if (type == "dropout")
    return std::make_unique<layers::Dropout>(yaml.number_or("p", 0.5, {.minimum = 0, .below = 1}));
  if (type == "batch_norm") return make_batch_norm(yaml, x.shape());
  if (type == "standardise") return std::make_unique<layers::Standardise>();
  if (type == "residual") return make_residual(yaml, x, path);
  return std::make_unique<layers::Activation>(type);
}

std::unique_ptr<layers::Layer> LayerList::make_linear(const Section& yaml, const Shape& x) const {
  const std::int64_t in = x.rank() > 0 ? x[x.rank() - 1] : 1;
  layers::LinearOptions options{.weight = weight_, .bias_start = bias_start()};
  options.bias = yaml.flag_or("bias", true);
  return std::make_unique<layers::Linear>(in, yaml.integer_or("units", classes_, outputs_of(in)), options);
}

std::unique_ptr<layers::Layer> LayerList::make_conv(const Section& yaml, const Shape& x) const {
  const std::int64_t in = channels_of(x);
  const std::int64_t kernel = yaml.integer("kernel", window);
  const std::int64_t out = yaml.integer("channels", outputs_of(in * kernel * kernel));
  layers::Conv2dOptions options{.weight = weight_, .bias_start = bias_start()};
  options.stride = yaml.integer_or("stride", 1, window);
  options.padding = yaml.integer_or("padding", 0, border);
  options.dilation = yaml.integer_or("dilation", 1, window);
  options.groups = yaml.integer_or("groups", 1, count);
  options.bias = yaml.flag_or("bias", true);
  if (in % options.groups != 0 || out % options.groups != 0)
    throw yaml.error(
        "groups",
        fmt::format("is {}, which must divide the {} channels that come in and the {} that go out evenly",
                    options.groups, in, out));
  return std::make_unique<layers::Conv2d>(in, out, kernel, options);
}

std::unique_ptr<layers::Layer> LayerList::make_residual(const Section& yaml, const Node& x,
                                                        const std::string& path) {
  Node y = x;
  std::unique_ptr<layers::Layer> body = make(yaml.sections("layers"), y, path + ".body");
  if (!yaml.has("shortcut")) return std::make_unique<layers::Residual>(std::move(body));
  y = x;
  return std::make_unique<layers::Residual>(std::move(body),
                                            make(yaml.sections("shortcut"), y, path + ".shortcut"));
}

// PyTorch's default with PyTorch's default of the weights; zeros with all others.
std::optional<Initialiser> LayerList::bias_start() const {
  if (weight_.fan == Initialiser::Fan::in && weight_.value < 1) return std::nullopt;
  return Initialiser::zeros();
}

}  // namespace plexaura
