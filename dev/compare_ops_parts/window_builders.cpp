#include "dev/compare_ops_parts/op_builders.h"
#include "plexaura/core.h"

namespace plexaura {

namespace {

Size2d size_of(const OpCall& call, const std::string& name, std::int64_t otherwise, Size2d) {
  return call.size_2d(name, otherwise);
}

Size3d size_of(const OpCall& call, const std::string& name, std::int64_t otherwise, Size3d) {
  return call.size_3d(name, otherwise);
}

std::int64_t size_of(const OpCall& call, const std::string& name, std::int64_t otherwise, std::int64_t) {
  return call.integer(name, otherwise);
}

// Sets `field`, which has one of the types of sizes.
template <class Size>
void read(const OpCall& call, const std::string& name, Size& field) {
  if (call.has(name)) field = size_of(call, name, 1, field);
}

template <class Size>
void read(const OpCall& call, const std::string& name, std::optional<Size>& field) {
  if (call.has(name)) field = size_of(call, name, 1, Size{});
}

template <class Options>
Options convolution(const OpCall& call) {
  Options options;
  read(call, "stride", options.stride);
  read(call, "padding", options.padding);
  read(call, "dilation", options.dilation);
  options.groups = call.integer("groups", 1);
  return options;
}

template <class Options>
Options transposed(const OpCall& call) {
  Options options = convolution<Options>(call);
  read(call, "output_padding", options.output_padding);
  return options;
}

template <class Options>
Options max_pool(const OpCall& call) {
  Options options;
  read(call, "kernel", options.kernel);
  read(call, "stride", options.stride);
  read(call, "padding", options.padding);
  options.ceil_mode = call.flag("ceil_mode");
  return options;
}

template <class Options>
Options avg_pool(const OpCall& call) {
  Options options = max_pool<Options>(call);
  options.count_include_pad = call.flag("count_include_pad");
  return options;
}

template <class Options>
Options lp_pool(const OpCall& call) {
  Options options;
  read(call, "kernel", options.kernel);
  read(call, "stride", options.stride);
  options.ceil_mode = call.flag("ceil_mode");
  options.p = call.number("p", 2);
  return options;
}

#define PLEXAURA_CONVOLUTION(name, read_options, Options)                                 \
  builders[#name] = [](const OpCall& call) {                                              \
    const auto options = read_options<Options>(call);                                     \
    return std::vector{call.inputs.size() == 3 ? name(call[0], call[1], call[2], options) \
                                               : name(call[0], call[1], options)};        \
  }
#define PLEXAURA_POOL(name, read_options, Options) \
  builders[#name] = [](const OpCall& call) { return std::vector{name(call[0], read_options<Options>(call))}; }

void add_convolutions(OpBuilders& builders) {
  PLEXAURA_CONVOLUTION(conv1d, convolution, Conv1dOptions);
  PLEXAURA_CONVOLUTION(conv2d, convolution, Conv2dOptions);
  PLEXAURA_CONVOLUTION(conv3d, convolution, Conv3dOptions);
  PLEXAURA_CONVOLUTION(conv_transpose1d, transposed, ConvTranspose1dOptions);
  PLEXAURA_CONVOLUTION(conv_transpose2d, transposed, ConvTranspose2dOptions);
  PLEXAURA_CONVOLUTION(conv_transpose3d, transposed, ConvTranspose3dOptions);
}

void add_pools(OpBuilders& builders) {
  PLEXAURA_POOL(max_pool1d, max_pool, MaxPool1dOptions);
  PLEXAURA_POOL(max_pool2d, max_pool, MaxPool2dOptions);
  PLEXAURA_POOL(max_pool3d, max_pool, MaxPool3dOptions);
  PLEXAURA_POOL(avg_pool1d, avg_pool, AvgPool1dOptions);
  PLEXAURA_POOL(avg_pool2d, avg_pool, AvgPool2dOptions);
  PLEXAURA_POOL(avg_pool3d, avg_pool, AvgPool3dOptions);
  PLEXAURA_POOL(lp_pool1d, lp_pool, LpPool1dOptions);
  PLEXAURA_POOL(lp_pool2d, lp_pool, LpPool2dOptions);
  PLEXAURA_POOL(lp_pool3d, lp_pool, LpPool3dOptions);
  builders["global_avg_pool"] = [](const OpCall& call) { return std::vector{global_avg_pool(call[0])}; };
  builders["global_max_pool"] = [](const OpCall& call) { return std::vector{global_max_pool(call[0])}; };
  builders["adaptive_avg_pool1d"] = [](const OpCall& call) {
    return std::vector{adaptive_avg_pool1d(call[0], call.integer("output"))};
  };
  builders["adaptive_max_pool1d"] = [](const OpCall& call) {
    return std::vector{adaptive_max_pool1d(call[0], call.integer("output"))};
  };
  builders["adaptive_avg_pool2d"] = [](const OpCall& call) {
    return std::vector{adaptive_avg_pool2d(call[0], call.size_2d("output", 1))};
  };
  builders["adaptive_max_pool2d"] = [](const OpCall& call) {
    return std::vector{adaptive_max_pool2d(call[0], call.size_2d("output", 1))};
  };
  builders["adaptive_avg_pool3d"] = [](const OpCall& call) {
    return std::vector{adaptive_avg_pool3d(call[0], call.size_3d("output", 1))};
  };
  builders["adaptive_max_pool3d"] = [](const OpCall& call) {
    return std::vector{adaptive_max_pool3d(call[0], call.size_3d("output", 1))};
  };
}

Window2d window_2d(const OpCall& call) {
  return {.kernel = call.size_2d("kernel", 1),
          .stride = call.size_2d("stride", 1),
          .padding = call.size_2d("padding", 0),
          .dilation = call.size_2d("dilation", 1)};
}

void add_images(OpBuilders& builders) {
  builders["interpolate"] = [](const OpCall& call) {
    const std::map<std::string, InterpolateMode> modes{
        {"nearest", InterpolateMode::nearest}, {"nearest-exact", InterpolateMode::nearest_exact},
        {"linear", InterpolateMode::linear},   {"bilinear", InterpolateMode::bilinear},
        {"bicubic", InterpolateMode::bicubic}, {"trilinear", InterpolateMode::trilinear}};
    return std::vector{interpolate(call[0], {.size = call.integers("size"),
                                             .scale = call.numbers("scale"),
                                             .mode = modes.at(call.text("mode")),
                                             .align_corners = call.flag("align_corners")})};
  };
  builders["pixel_shuffle"] = [](const OpCall& call) {
    return std::vector{pixel_shuffle(call[0], call.integer("factor"))};
  };
  builders["pixel_unshuffle"] = [](const OpCall& call) {
    return std::vector{pixel_unshuffle(call[0], call.integer("factor"))};
  };
  builders["im2col"] = [](const OpCall& call) { return std::vector{im2col(call[0], window_2d(call))}; };
  builders["col2im"] = [](const OpCall& call) {
    return std::vector{col2im(call[0], call.size_2d("size", 1), window_2d(call))};
  };
}

void add_norms(OpBuilders& builders) {
  builders["layer_norm"] = [](const OpCall& call) {
    return std::vector{layer_norm(call[0], call[1], call[2])};
  };
  builders["standardise"] = [](const OpCall& call) {
    return std::vector{standardise(call[0], call.integer("axes"))};
  };
  builders["rms_norm"] = [](const OpCall& call) { return std::vector{rms_norm(call[0], call[1])}; };
  builders["batch_norm"] = [](const OpCall& call) {
    const BatchNormResult found = batch_norm(call[0], call[1], call[2]);
    return std::vector{found.y, found.mean, found.variance};
  };
  builders["batch_norm_inference"] = [](const OpCall& call) {
    return std::vector{batch_norm_inference(call[0], call[1], call[2], call[3], call[4])};
  };
  builders["group_norm"] = [](const OpCall& call) {
    return std::vector{group_norm(call[0], call.integer("groups"), call[1], call[2])};
  };
  builders["instance_norm"] = [](const OpCall& call) {
    return std::vector{instance_norm(call[0], call[1], call[2])};
  };
  builders["local_response_norm"] = [](const OpCall& call) {
    return std::vector{local_response_norm(
        call[0], call.integer("size"),
        {.alpha = call.number("alpha", 1e-4), .beta = call.number("beta", 0.75), .k = call.number("k", 1)})};
  };
  builders["softmax"] = [](const OpCall& call) {
    return std::vector{softmax(call[0], call.integer("axis", -1))};
  };
  builders["log_softmax"] = [](const OpCall& call) {
    return std::vector{log_softmax(call[0], call.integer("axis", -1))};
  };
  builders["scaled_dot_product_attention"] = [](const OpCall& call) {
    AttentionOptions options{.is_causal = call.flag("is_causal")};
    if (call.has("scale")) options.scale = call.number("scale", 1);
    return std::vector{call.inputs.size() == 4
                           ? scaled_dot_product_attention(call[0], call[1], call[2], call[3], options)
                           : scaled_dot_product_attention(call[0], call[1], call[2], options)};
  };
}

}  // namespace

void add_window_builders(OpBuilders& builders) {
  add_convolutions(builders);
  add_pools(builders);
  add_images(builders);
  add_norms(builders);
}

}  // namespace plexaura
