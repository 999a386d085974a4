#include "dev/compare_ops_parts/op_builders.h"
#include "plexaura/core.h"

namespace plexaura {

namespace {

void add_shapes(OpBuilders& builders) {
  builders["reshape"] = [](const OpCall& call) {
    return std::vector{reshape(call[0], call.integers("shape"))};
  };
  builders["flatten"] = [](const OpCall& call) { return std::vector{flatten(call[0])}; };
  builders["broadcast_to"] = [](const OpCall& call) {
    return std::vector{broadcast_to(call[0], Shape(call.integers("shape")))};
  };
  builders["permute"] = [](const OpCall& call) {
    return std::vector{permute(call[0], call.integers("axes"))};
  };
  builders["squeeze"] = [](const OpCall& call) {
    return std::vector{squeeze(call[0], call.integers("axes"))};
  };
  builders["unsqueeze"] = [](const OpCall& call) {
    return std::vector{unsqueeze(call[0], call.integer("axis"))};
  };
  builders["transpose"] = [](const OpCall& call) {
    return std::vector{transpose(call[0], call.integer("a"), call.integer("b"))};
  };
  builders["tile"] = [](const OpCall& call) { return std::vector{tile(call[0], call.integers("repeats"))}; };
  builders["expand_as"] = [](const OpCall& call) { return std::vector{expand_as(call[0], call[1])}; };
}

void add_pieces(OpBuilders& builders) {
  builders["slice"] = [](const OpCall& call) {
    return std::vector{slice(call[0], {.axis = call.integer("axis"),
                                       .start = call.optional_integer("start"),
                                       .stop = call.optional_integer("stop"),
                                       .step = call.integer("step", 1)})};
  };
  builders["concat"] = [](const OpCall& call) {
    return std::vector{concat({call.inputs.begin(), call.inputs.end()}, call.integer("axis"))};
  };
  builders["stack"] = [](const OpCall& call) {
    return std::vector{stack({call.inputs.begin(), call.inputs.end()}, call.integer("axis"))};
  };
  builders["split"] = [](const OpCall& call) {
    return split(call[0], call.integer("size"), call.integer("axis"));
  };
  builders["split_with_sizes"] = [](const OpCall& call) {
    return split_with_sizes(call[0], call.integers("sizes"), call.integer("axis"));
  };
  builders["chunk"] = [](const OpCall& call) {
    return chunk(call[0], call.integer("count"), call.integer("axis"));
  };
}

void add_indexing(OpBuilders& builders) {
  builders["gather"] = [](const OpCall& call) {
    return std::vector{gather(call[0], call[1], {.axis = call.integer("axis")})};
  };
  builders["embedding"] = [](const OpCall& call) {
    return std::vector{embedding(call[0], call[1], call.optional_integer("padding"))};
  };
  builders["take_along_axis"] = [](const OpCall& call) {
    return std::vector{take_along_axis(call[0], call[1], call.integer("axis"))};
  };
  builders["index_select"] = [](const OpCall& call) {
    return std::vector{index_select(call[0], call.integer("axis"), call[1])};
  };
  builders["scatter"] = [](const OpCall& call) {
    return std::vector{scatter(call[0], call[1], call[2], call.integer("axis"))};
  };
  builders["scatter_add"] = [](const OpCall& call) {
    return std::vector{scatter_add(call[0], call[1], call[2], call.integer("axis"))};
  };
}

void add_arrangements(OpBuilders& builders) {
  builders["flip"] = [](const OpCall& call) { return std::vector{flip(call[0], call.integers("axes"))}; };
  builders["roll"] = [](const OpCall& call) {
    return std::vector{roll(call[0], call.integers("shifts"), call.integers("axes"))};
  };
  builders["triu"] = [](const OpCall& call) {
    return std::vector{triu(call[0], call.integer("diagonal", 0))};
  };
  builders["tril"] = [](const OpCall& call) {
    return std::vector{tril(call[0], call.integer("diagonal", 0))};
  };
  builders["diagonal"] = [](const OpCall& call) {
    return std::vector{
        diagonal(call[0], call.integer("offset"), call.integer("row_axis"), call.integer("column_axis"))};
  };
  builders["unfold"] = [](const OpCall& call) {
    return std::vector{unfold(
        call[0], {.axis = call.integer("axis"), .size = call.integer("size"), .step = call.integer("step")})};
  };
}

void add_padding(OpBuilders& builders) {
  // Reads `widths`, which has three numbers for each axis: the axis, and the numbers of elements before and
  // after it.
  builders["pad"] = [](const OpCall& call) {
    const std::map<std::string, PadMode> modes{{"constant", PadMode::constant},
                                               {"reflect", PadMode::reflect},
                                               {"replicate", PadMode::replicate},
                                               {"circular", PadMode::circular}};
    const std::vector<std::int64_t> numbers = call.integers("widths");
    std::vector<AxisPadding> widths;
    for (std::size_t i = 0; i + 2 < numbers.size(); i += 3)
      widths.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    return std::vector{
        pad(call[0], widths, {.mode = modes.at(call.text("mode")), .value = call.number("value", 0)})};
  };
  builders["iota"] = [](const OpCall& call) {
    return std::vector{iota(call.graph, call.integer("count"), call.dtype())};
  };
  builders["eye"] = [](const OpCall& call) {
    return std::vector{eye(call.graph, call.integer("rows"), call.integer("columns"), call.dtype())};
  };
}

}  // namespace

void add_moving_builders(OpBuilders& builders) {
  add_shapes(builders);
  add_pieces(builders);
  add_indexing(builders);
  add_arrangements(builders);
  add_padding(builders);
}

}  // namespace plexaura
