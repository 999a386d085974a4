// The printed form of an op is the key of kernel times in checkpoints and of the hash of a plan, so it must not change.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "core/graph/structure.h"
#include "core/ops/activations.h"
#include "core/ops/all_reduce.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/cummax.h"
#include "core/ops/cumsum.h"
#include "core/ops/dropout.h"
#include "core/ops/element_losses.h"
#include "core/ops/elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/labels.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/matmul.h"
#include "core/ops/normalise_image.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/ordering.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/random.h"
#include "core/ops/recurrence.h"
#include "core/ops/reduce.h"
#include "core/ops/reorder.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/special_functions.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "tests/support/cases.h"
#include "tests/support/option_types.h"

namespace plexaura::testing::printed_forms_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Node value(Graph& graph, Shape shape, DType dtype = DType::float32) {
  return graph.input(fmt::format("x{}", graph.size()), {dtype, std::move(shape)});
}

Node vector(Graph& graph) { return value(graph, {3}); }
Node matrix(Graph& graph, DType dtype = DType::float32) { return value(graph, {2, 3}, dtype); }
Node image(Graph& graph) { return value(graph, {1, 4, 6, 5}); }
Node scalar(Graph& graph) { return value(graph, {}); }
Node indices(Graph& graph) { return value(graph, {2}, DType::int64); }
Node index_matrix(Graph& graph) { return matrix(graph, DType::int64); }
Node index_of(Graph& graph, const Shape& shape) { return value(graph, shape, DType::uint8); }

constexpr Conv2dOptions convolution{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2};
constexpr MaxPool2dOptions max_window{.kernel = {3, 2}, .stride = Size2d{2, 1}, .padding = {1, 0}};
constexpr AvgPool2dOptions mean_window{
    .kernel = {3, 2}, .stride = Size2d{1, 2}, .padding = {0, 1}, .count_include_pad = false};
constexpr SliceOptions odd_rows{.axis = -2, .start = -5, .stop = 7, .step = 2};
constexpr CrossEntropyOptions without_255{.reduction = Reduction::sum, .ignore = 255};
const std::vector<StepSegment> decay{{.offset = 0, .count = 2, .decay = 1e-4},
                                     {.offset = 2, .count = 1, .decay = 0}};

// The name and options of an op, as graphs and the keys of kernel times print them.
struct PrintedForm {
  std::string_view name;
  std::string_view options;
  std::function<void(Graph& graph)> build;
};

std::vector<PrintedForm> elementwise_forms() {
  return {
      {"weighted_sum", "weight_a=0.25, weight_b=-3",
       [](Graph& g) { weighted_sum(matrix(g), 0.25, matrix(g), -3); }},
      {"pow_log", "order=2", [](Graph& g) { pow_log(matrix(g), matrix(g), 2); }},
      {"huber", "delta=2, divisor=1", [](Graph& g) { huber(matrix(g), matrix(g), 2, Reduction::none); }},
      {"leaky_relu", "slope=0.1", [](Graph& g) { leaky_relu(matrix(g), 0.1); }},
      {"clip", "low=-inf, high=1e-20", [](Graph& g) { clip(matrix(g), -infinity, 1e-20); }},
      {"elu", "alpha=0.5, rate=1", [](Graph& g) { elu(matrix(g), 0.5); }},
      {"elu", "alpha=0.5, rate=2", [](Graph& g) { celu(matrix(g), 0.5); }},
      {"hard_tanh", "low=0, high=6", [](Graph& g) { relu6(matrix(g)); }},
      {"polygamma", "order=1", [](Graph& g) { polygamma(1, matrix(g)); }},
      {"cast", "dtype=bfloat16", [](Graph& g) { cast(matrix(g), DType::bfloat16); }},
      {"normalise_image", "mean=[0.5,0.25,0.1], stddev=[2], dtype=float64",
       [](Graph& g) {
         normalise_image(matrix(g, DType::uint8),
                         {.scale = {.mean = {0.5, 0.25, 0.1}, .stddev = {2}}, .dtype = DType::float64});
       }},
      {"dropout", "p=0.1, batch=false, stream=560978562166922777",
       [](Graph& g) {
         dropout(matrix(g));
         dropout(matrix(g), {.p = 0.1, .batch = false});
       }},
      {"dropout_grad", "p=0.3", [](Graph& g) { dropout_grad(matrix(g), matrix(g, DType::boolean), 0.3); }},
      {"uniform", "dtype=float32, shape=[2,3], first=-2, second=0.5, batch=false, stream=560977462655294566",
       [](Graph& g) {
         uniform(g, {DType::float32, {2, 3}}, -2, 0.5, {.batch = false});
       }},
      {"normal", "dtype=float64, shape=[], first=1, second=0.01, batch=false, stream=560977462655294566",
       [](Graph& g) {
         normal(g, {DType::float64, {}}, 1, 0.01, {.batch = false});
       }},
  };
}

std::vector<PrintedForm> moving_forms() {
  return {
      {"reshape", "shape=[3,-1]",
       [](Graph& g) {
         reshape(matrix(g), {3, -1});
       }},
      {"broadcast_to", "shape=[4,2,3]",
       [](Graph& g) {
         broadcast_to(matrix(g), {4, 2, 3});
       }},
      {"permute", "axes=[1,0]",
       [](Graph& g) {
         permute(matrix(g), {-1, 0});
       }},
      {"slice", "axis=-2, start=-5, stop=7, step=2", [](Graph& g) { slice(matrix(g), odd_rows); }},
      {"slice", "axis=0, step=1", [](Graph& g) { slice(matrix(g), {}); }},
      {"slice_grad", "axis=-2, start=-5, stop=7, step=2, extent=5",
       [](Graph& g) {
         slice_grad(value(g, {3, 3}), 5, odd_rows);
       }},
      {"concat", "axis=1",
       [](Graph& g) {
         concat({matrix(g), matrix(g)}, 1);
       }},
      {"gather", "axis=-1", [](Graph& g) { gather(matrix(g), indices(g), {.axis = -1}); }},
      {"gather_grad", "axis=1, extent=9",
       [](Graph& g) {
         gather_grad(value(g, {3, 2}), indices(g), 9, {.axis = -1});
       }},
      {"take_along_axis", "axis=1", [](Graph& g) { take_along_axis(matrix(g), index_matrix(g), -1); }},
      {"take_along_axis_grad", "axis=0, extent=9",
       [](Graph& g) {
         apply(std::make_shared<TakeAlongAxisGrad>(TakeAlongAxisGradOptions{{.axis = 0}, 9}),
               {matrix(g), index_matrix(g)});
       }},
      {"scatter", "axis=1", [](Graph& g) { scatter(matrix(g), index_matrix(g), matrix(g), -1); }},
      {"unfold", "axis=1, size=2, step=3, dilation=1",
       [](Graph& g) { unfold(matrix(g), {.axis = -1, .size = 2, .step = 3}); }},
      {"fold", "axis=0, size=3, step=1, dilation=2, extent=6",
       [](Graph& g) { fold(matrix(g), 6, {.axis = -1, .size = 3, .dilation = 2}); }},
      {"one_hot", "classes=7, dtype=int32", [](Graph& g) { one_hot(indices(g), 7, DType::int32); }},
  };
}

std::vector<PrintedForm> reducing_forms() {
  return {
      {"sum", "axes=[0,1], keepdims=true", [](Graph& g) { sum(matrix(g), {.keepdims = true}); }},
      {"mean", "axes=[1], keepdims=false", [](Graph& g) { mean(matrix(g), {.axes = {-1}}); }},
      {"max", "axes=[0], keepdims=true", [](Graph& g) { max(matrix(g), {.axes = {0}, .keepdims = true}); }},
      {"min", "axes=[], keepdims=false", [](Graph& g) { min(scalar(g)); }},
      {"argmax", "axes=[1], keepdims=true", [](Graph& g) { argmax(matrix(g), -1, true); }},
      {"cumsum", "axis=1, exclusive=true, reverse=false",
       [](Graph& g) { cumsum(matrix(g), {.axis = -1, .exclusive = true}); }},
      {"linear_recurrence", "axis=1, reverse=true",
       [](Graph& g) { linear_recurrence(matrix(g), matrix(g), {.axis = -1, .reverse = true}); }},
      {"argcummax", "axis=1, smallest=true", [](Graph& g) { argcummin(matrix(g), -1); }},
      {"argsort", "descending=true, count=2", [](Graph& g) { topk(matrix(g), 2); }},
      {"argsort", "descending=false", [](Graph& g) { argsort(matrix(g)); }},
      {"searchsorted", "right=true", [](Graph& g) { searchsorted(vector(g), matrix(g), true); }},
      {"triangular_solve", "upper=true, transpose=false, unit_diagonal=true",
       [](Graph& g) {
         triangular_solve(value(g, {3, 3}), value(g, {3, 2}), {.upper = true, .unit_diagonal = true});
       }},
      {"lu_solve", "transpose=false",
       [](Graph& g) {
         solve(value(g, {3, 3}), value(g, {3, 2}));
       }},
      {"lu_det", "logarithm=true",
       [](Graph& g) {
         logdet(value(g, {3, 3}));
       }},
      {"matmul", "transpose_a=true, transpose_b=false",
       [](Graph& g) { matmul(matrix(g), matrix(g), {.transpose_a = true}); }},
      {"softmax", "axis=1", [](Graph& g) { softmax(matrix(g)); }},
      {"log_softmax", "axis=1", [](Graph& g) { log_softmax(matrix(g)); }},
      {"softmax_cross_entropy", "reduction=sum, ignore=255",
       [](Graph& g) { softmax_cross_entropy(matrix(g), indices(g), without_255); }},
      {"softmax_cross_entropy", "reduction=mean",
       [](Graph& g) { softmax_cross_entropy(matrix(g), indices(g)); }},
      {"softmax_cross_entropy_grad", "reduction=sum, ignore=255",
       [](Graph& g) {
         apply(std::make_shared<SoftmaxCrossEntropyGrad>(without_255),
               {matrix(g), indices(g), matrix(g), scalar(g)});
       }},
      {"top_k_correct", "k=2", [](Graph& g) { top_k_correct(matrix(g), indices(g), 2); }},
      {"sgd_step", "momentum=0.9, nesterov=true, decay_counts=[2,1], decay=[0.0001,0]",
       [](Graph& g) {
         sgd_step(vector(g), vector(g), vector(g), scalar(g),
                  {.momentum = 0.9, .nesterov = true, .segments = decay});
       }},
      {"sgd_step", "momentum=0, nesterov=false, decay_counts=[2,1], decay=[0,0], rates=[0.5,1]",
       [](Graph& g) {
         sgd_step(vector(g), vector(g), Node(), scalar(g), {.segments = {{0, 2, 0, 0.5}, {2, 1}}});
       }},
      {"adam_step",
       "beta1=0.8, beta2=0.95, epsilon=1e-06, decoupled=true, decay_counts=[2,1], decay=[0.0001,0]",
       [](Graph& g) {
         adam_step(vector(g), vector(g), vector(g), vector(g), scalar(g), scalar(g),
                   {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .decoupled = true, .segments = decay});
       }},
      {"rms_step",
       "kept=0.9, added=0.1, initial=0.2, epsilon=1e-06, momentum=0, centered=true, decay_counts=[2,1], "
       "decay=[0.0001,0]",
       [](Graph& g) {
         rms_step(vector(g), vector(g), {.square = vector(g), .mean = vector(g)}, scalar(g),
                  {.kept = 0.9,
                   .added = 0.1,
                   .initial = 0.2,
                   .epsilon = 1e-6,
                   .centered = true,
                   .segments = decay});
       }},
  };
}

std::vector<PrintedForm> image_forms() {
  return {
      {"conv2d", "stride=[2,1], padding=[1,0], dilation=[1,2], groups=2",
       [](Graph& g) {
         conv2d(image(g), value(g, {6, 2, 3, 2}), convolution);
       }},
      {"conv2d", "stride=[1,1], padding=[1,0], dilation=[1,1], groups=1, padding_end=[0,2]",
       [](Graph& g) {
         conv2d(image(g), value(g, {6, 4, 3, 2}), {.padding = {1, 0}, .padding_end = Size2d{0, 2}});
       }},
      {"conv2d_input_grad", "input=[6,5], stride=[2,1], padding=[1,0], dilation=[1,2], groups=2",
       [](Graph& g) {
         conv2d_input_grad(value(g, {6, 2, 3, 2}), value(g, {1, 6, 3, 3}), {6, 5}, convolution);
       }},
      {"conv2d_weight_grad", "kernel=[3,2], stride=[2,1], padding=[1,0], dilation=[1,2], groups=2",
       [](Graph& g) {
         conv2d_weight_grad(image(g), value(g, {1, 6, 3, 3}), {3, 2}, convolution);
       }},
      {"conv3d", "stride=[1,1,1], padding=[0,1,2], dilation=[1,1,1], groups=1",
       [](Graph& g) {
         conv3d(value(g, {1, 1, 2, 3, 3}), value(g, {1, 1, 1, 1, 1}), {.padding = {0, 1, 2}});
       }},
      {"conv3d_input_grad", "input=[2,3,3], stride=[1,1,1], padding=[0,0,0], dilation=[1,1,1], groups=1",
       [](Graph& g) {
         conv3d_input_grad(value(g, {1, 1, 1, 1, 1}), value(g, {1, 1, 2, 3, 3}), {2, 3, 3}, {});
       }},
      {"conv3d_weight_grad",
       "kernel=[1,1,1], stride=[1,1,1], padding=[0,0,0], dilation=[1,1,1], groups=1, padding_end=[0,1,0]",
       [](Graph& g) {
         conv3d_weight_grad(value(g, {1, 1, 2, 3, 3}), value(g, {1, 1, 2, 4, 3}), 1,
                            {.padding_end = Size3d{0, 1, 0}});
       }},
      {"max_pool2d", "kernel=[3,2], stride=[2,1], padding=[1,0], input=[0,0]",
       [](Graph& g) { max_pool2d(image(g), max_window); }},
      {"max_pool2d_grad", "kernel=[3,2], stride=[2,1], padding=[1,0], input=[6,5]",
       [](Graph& g) {
         max_pool2d_grad(value(g, {1, 4, 3, 4}), index_of(g, {1, 4, 3, 4}), {6, 5}, max_window);
       }},
      {"max_pool2d_gather", "kernel=[3,2], stride=[2,1], padding=[1,0], input=[0,0]",
       [](Graph& g) {
         max_pool2d_gather(image(g), index_of(g, {1, 4, 3, 4}), max_window);
       }},
      {"avg_pool2d", "kernel=[3,2], stride=[1,2], padding=[0,1], input=[0,0], count_include_pad=false",
       [](Graph& g) { avg_pool2d(image(g), mean_window); }},
      {"avg_pool2d", "kernel=[2,2], stride=[2,2], padding=[0,0], input=[0,0]",
       [](Graph& g) { avg_pool2d(image(g), {.kernel = 2}); }},
      {"avg_pool2d_grad", "kernel=[3,2], stride=[1,2], padding=[0,1], input=[6,5], count_include_pad=false",
       [](Graph& g) {
         avg_pool2d_grad(value(g, {1, 4, 4, 3}), {6, 5}, mean_window);
       }},
      {"max_pool3d", "kernel=[1,3,2], stride=[1,3,2], padding=[0,0,0], ceil_mode=true, input=[0,0,0]",
       [](Graph& g) {
         max_pool3d(value(g, {1, 1, 2, 5, 4}), {.kernel = {1, 3, 2}, .ceil_mode = true});
       }},
      {"max_pool3d_grad",
       "kernel=[1,1,1], stride=[1,1,1], padding=[0,0,0], ceil_mode=false, output=[1,2,3], input=[2,5,4]",
       [](Graph& g) {
         apply(std::make_shared<MaxPool3dGrad>(Pool3dOptions{.output = Size3d{1, 2, 3}, .input = {2, 5, 4}}),
               {value(g, {1, 1, 1, 2, 3}), value(g, {1, 1, 1, 2, 3}, DType::int64)});
       }},
      {"max_pool3d_gather",
       "kernel=[1,1,1], stride=[1,1,1], padding=[0,0,0], ceil_mode=false, output=[1,2,3], input=[0,0,0]",
       [](Graph& g) {
         apply(std::make_shared<MaxPool3dGather>(Pool3dOptions{.output = Size3d{1, 2, 3}}),
               {value(g, {1, 1, 2, 5, 4}), value(g, {1, 1, 1, 2, 3}, DType::int64)});
       }},
      {"avg_pool3d",
       "kernel=[2,2,2], stride=[1,1,1], padding=[1,1,1], ceil_mode=false, input=[0,0,0], "
       "count_include_pad=false",
       [](Graph& g) {
         avg_pool3d(value(g, {1, 1, 2, 5, 4}),
                    {.kernel = 2, .stride = Size3d{1}, .padding = 1, .count_include_pad = false});
       }},
      {"avg_pool3d_grad",
       "kernel=[1,1,1], stride=[1,1,1], padding=[0,0,0], ceil_mode=false, output=[1,2,3], input=[2,5,4]",
       [](Graph& g) {
         apply(std::make_shared<AvgPool3dGrad>(Pool3dOptions{.output = Size3d{1, 2, 3}, .input = {2, 5, 4}}),
               {value(g, {1, 1, 1, 2, 3})});
       }},
      {"moments", "epsilon=0.001", [](Graph& g) { moments(matrix(g), {.epsilon = 1e-3}); }},
  };
}

// Returns the forms of ops and leaves without a line in ops.def.
std::vector<PrintedForm> other_forms() {
  return {
      {"all_reduce_sum", "", [](Graph& g) { all_reduce_sum(matrix(g)); }},
      {"reorder", "to=aBcd16b",
       [](Graph& g) {
         apply(std::make_shared<Reorder>(Layout({0, 1, 2, 3}, {{1, 16}})), {image(g)});
       }},
      {"input", "name=x0, dtype=float32, shape=[2,3]", [](Graph& g) { matrix(g); }},
      {"parameter", "name=w, dtype=float16, shape=[]",
       [](Graph& g) {
         g.parameter("w", {DType::float16, {}});
       }},
      {"buffer", "name=mean, dtype=int64, shape=[4]",
       [](Graph& g) {
         g.buffer("mean", {DType::int64, {4}});
       }},
      {"constant", "value=2.5", [](Graph& g) { g.constant(Tensor::of<float>({}, {2.5F})); }},
      {"constant", "value=float32[2]",
       [](Graph& g) {
         g.constant(Tensor::of<float>({2}, {1, 2}));
       }},
      {"step_scalar", "name=learning_rate, dtype=float32, shape=[]",
       [](Graph& g) { g.step_scalar(StepScalar::learning_rate, DType::float32); }},
      {"arena_slice", "arena=state, state=1, offset=16, count=5",
       [](Graph& g) {
         g.arena_slice({.arena = ArenaKind::state, .state = 1, .offset = 16, .count = 5}, DType::float32);
       }},
  };
}

// Returns the forms of the ops in ops.def that have options.
std::vector<PrintedForm> op_forms() {
  std::vector<PrintedForm> all = elementwise_forms();
  for (const auto& forms : {moving_forms(), reducing_forms(), image_forms()})
    all.insert(all.end(), forms.begin(), forms.end());
  return all;
}

// Returns the last op of this name in the graph that the form builds.
std::shared_ptr<const Op> op_of(const PrintedForm& form) {
  Graph graph;
  form.build(graph);
  for (NodeId id = graph.size(); id-- > 0;)
    if (graph.record(id).op->name() == form.name) return graph.record(id).op;
  FAIL(fmt::format("the graph of the form of {} holds no such op", form.name));
  return nullptr;
}

Description with_texts(const Description& description) {
  Description texts;
  for (const auto& [key, value] : description.fields()) texts.add(key, text_of(value));
  return texts;
}

// Returns empty options to read into. A function's options have a number for each name.
template <class Options>
Options blank(const Options& options) {
  if constexpr (std::is_same_v<Options, FunctionOptions>)
    return {options.names, std::vector<double>(options.values.size())};
  else
    return {};
}

// Checks that options are read from values and from their texts.
template <class Options>
void check_reading(const Op& op, const Options& options) {
  const Description description = op.description();
  for (const Description& given : {description, with_texts(description)})
    CHECK(description_of(options_from(given, op.name(), blank(options))) == description);
}

}  // namespace

TEST_CASE("every op of ops.def with options has a printed form in this file") {
  const std::vector<PrintedForm> forms = op_forms();
  for (const OpCase& op_case : all_cases()) {
    const auto op = op_in(op_case, op_case.dtypes.front());
    if (op != nullptr && !op->description().fields().empty())
      CHECK_MESSAGE(
          std::ranges::find(forms, op_case.op, &PrintedForm::name) != forms.end(),
          fmt::format("{} has no printed form in tests/ops/printed_forms_test.cpp; add one", op_case.op));
  }
}

TEST_CASE("the printed form of an op does not change") {
  for (const auto& forms : {op_forms(), other_forms()})
    for (const PrintedForm& form : forms) {
      CAPTURE(form.name);
      CHECK(to_string(op_of(form)->description()) == form.options);
    }
}

TEST_CASE("the options of every op can be read from values and from their texts") {
  for (const PrintedForm& form : op_forms()) {
    CAPTURE(form.name);
    const auto op = op_of(form);
    const bool is_listed =
        AllOptionTypes::visit(*op, [&](const auto& options) { check_reading(*op, options); });
    CHECK_MESSAGE(
        is_listed,
        fmt::format("the type of the options of {} is missing in tests/support/option_types.h", form.name));
  }
}

TEST_CASE("the hash of a graph does not change") {
  Graph graph;
  const Node y = conv2d(image(graph), value(graph, {6, 2, 3, 2}), convolution);
  sum(clip(y, -infinity, 0.5) * graph.constant(Tensor::of<float>({3}, {1, 2, 3})), {.axes = {0, 2}});
  CHECK(structure_hash(graph) == 4857151198132151982U);
}

}  // namespace plexaura::testing::printed_forms_test
