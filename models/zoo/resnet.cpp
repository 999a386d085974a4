#include "models/zoo/resnet.h"

#include <fmt/format.h>
#include <map>

#include "core/base/error.h"
#include "models/config/rules.h"
#include "models/zoo/image_net.h"
#include "models/zoo/residual_block.h"

namespace plexaura {

namespace {

constexpr std::int64_t widest = 1 << 16;

const std::map<std::int64_t, ResNetOptions>& known_depths() {
  static const std::map<std::int64_t, ResNetOptions> known{
      {18, {.stages = {2, 2, 2, 2}, .bottleneck = false}},
      {34, {.stages = {3, 4, 6, 3}, .bottleneck = false}},
      {50, {.stages = {3, 4, 6, 3}}},
      {101, {.stages = {3, 4, 23, 3}}},
      {152, {.stages = {3, 8, 36, 3}}},
  };
  return known;
}

std::vector<std::string> depth_words() {
  std::vector<std::string> words;
  for (const auto& [depth, options] : known_depths()) words.push_back(std::to_string(depth));
  return words;
}

// Sets the stages and the kind of blocks by the depth, or the stages by the key `stages`.
void choose_stages(const Section& yaml, ResNetKeys& keys) {
  if (keys.stages) {
    if (keys.depth) throw yaml.error("depth", "and stages are both given; give one of them");
    if (keys.stages->empty() || keys.stages->size() > 8)
      throw yaml.error("stages", "must have 1 to 8 elements");
    keys.options.stages = *keys.stages;
    return;
  }
  const auto known = ResNetOptions::of_depth(std::stoll(yaml.choice("depth", depth_words())));
  keys.options.stages = known.stages;
  keys.options.bottleneck = known.bottleneck;
}

}  // namespace

ResNetOptions ResNetOptions::of_depth(std::int64_t depth) {
  const auto found = known_depths().find(depth);
  if (found != known_depths().end()) return found->second;
  throw UserError(fmt::format("there is no ResNet{}; depth is {}, and others are described by stages", depth,
                              joined_with_or(depth_words())));
}

ResNet::ResNet(ModelInfo info, const ResNetOptions& options)
    : Model(std::move(info)),
      conv1_(
          image_channels(sample_shape(), "resnet"), options.width, {7, 7},
          {.stride = {2, 2}, .padding = {3, 3}, .bias = false, .weight = Initialiser::he_normal_fan_out()}),
      bn1_(options.width, {.synchronised = options.synchronised_batch_norm}),
      max_pool_({.kernel = {3, 3}, .stride = Size2d{2, 2}, .padding = {1, 1}}) {
  std::int64_t in = options.width;
  std::int64_t width = options.width;
  for (const std::int64_t blocks : options.stages) {
    Stage& stage = stages_.emplace_back();
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && stages_.size() > 1 ? 2 : 1;
      stage.push_back(std::make_unique<ResidualBlock>(
          ResidualBlock::Options{.in = in,
                                 .width = width,
                                 .stride = stride,
                                 .bottleneck = options.bottleneck,
                                 .zero_init = options.zero_init_residual,
                                 .synchronised = options.synchronised_batch_norm}));
      in = ResidualBlock::out_channels(width, options.bottleneck);
    }
    width *= 2;
  }
  fc_ = std::make_unique<layers::Linear>(in, classes());
}

void ResNet::members(MemberVisitor& visit) {
  visit("conv1", conv1_);
  visit("bn1", bn1_);
  visit("relu", relu_);
  visit("maxpool", max_pool_);
  for (std::size_t i = 0; i < stages_.size(); ++i) visit(fmt::format("layer{}", i + 1), stages_[i]);
  visit("avgpool", global_avg_pool_);
  visit("fc", fc_);
}

Node ResNet::forward(Operand x) const {
  Node y = max_pool_(relu_(bn1_(conv1_(x))));
  for (const Stage& stage : stages_)
    for (const auto& block : stage) y = (*block)(y);
  return (*fc_)(global_avg_pool_(y));
}

std::vector<Key> resnet_keys(ResNetKeys& keys) {
  const Need stages{.key = "stages"};
  return {
      {.name = "depth",
       .into = &keys.depth,
       .words = depth_words(),
       .meaning = "number of layers; either this key or `stages` is required"},
      {.name = "stages",
       .into = &keys.stages,
       .range = {.minimum = 1, .maximum = 1000},
       .meaning = "number of blocks in each stage, for example `[3, 4, 6, 3]`; each stage after the first "
                  "halves height and width and doubles the number of channels"},
      {.name = "block",
       .into = one_of(keys.options.bottleneck, {{"basic", false}, {"bottleneck", true}}),
       .needs = stages,
       .meaning = "the kind of the blocks"},
      {.name = "width",
       .into = &keys.options.width,
       .range = {.minimum = 1, .maximum = widest},
       .needs = stages,
       .meaning = "width of the first stage"},
      {.name = "zero_init_residual",
       .into = &keys.options.zero_init_residual,
       .meaning = "sets the initial scale of the last batch norm of each block to 0"},
      synchronised_batch_norm_key(keys.options.synchronised_batch_norm),
  };
}

std::unique_ptr<Model> make_resnet(ModelInfo info, ResNetKeys keys, const Section& yaml) {
  choose_stages(yaml, keys);
  require_images(yaml, info.sample_shape, "resnet");
  return std::make_unique<ResNet>(std::move(info), keys.options);
}

}  // namespace plexaura
