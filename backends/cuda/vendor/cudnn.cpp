// Convolutions by cuDNN's graph API, through the library's own C header. Each graph has one operation. The
// library's heuristics name engines for it, and each allowed engine becomes a plan.

#include "backends/cuda/vendor/cudnn.h"

#include <algorithm>
#include <cudnn.h>
#include <exception>
#include <fmt/format.h>
#include <optional>

#include "backends/cuda/vendor/cudnn_descriptor.h"
#include "backends/cuda/vendor/relaxed_capture.h"
#include "core/base/error.h"

namespace plexaura::cuda::vendor {

// The target for which plans are made: a handle of the library, or the description of a GPU.
struct Cudnn::Target {
  ~Target() {
    if (handle != nullptr) cudnnDestroy(handle);
  }

  cudnnHandle_t handle = nullptr;
  std::optional<Descriptor> description;
};

namespace {

// Returns the largest number of plans for one problem, since all of them have to be measured. For images with
// channels last, the heuristics name many settings of one engine, which differ by a few percent and need
// little workspace.
std::size_t most_plans(const Convolution& problem) { return problem.channels_last ? 12 : 6; }

enum Tensor : std::int64_t { x = 1, weights = 2, y = 3 };

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return CUDNN_DATA_DOUBLE;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::float16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// Returns the type in which products are added up: at least 32 bits.
cudnnDataType_t computed_in(DType dtype) {
  return dtype == DType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

std::vector<std::int64_t> strides_of(const Shape& shape, bool channels_last) {
  if (!channels_last) return shape.strides();
  return {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
}

Descriptor tensor(Tensor id, const Shape& shape, const Convolution& problem) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  return tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::int64_t{id})
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(problem.dtype))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{operand_alignment})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape.extents())
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides_of(shape, problem.channels_last))
      .finalize();
}

Descriptor window(const Convolution& problem) {
  const auto pair = [](Size2d size) { return std::vector<std::int64_t>{size.h, size.w}; };
  const Conv2dOptions& options = problem.options;
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  return window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed_in(problem.dtype))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pair(options.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
           pair(options.padding_end.value_or(options.padding)))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, pair(options.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, pair(options.dilation))
      .finalize();
}

// Describes a kind of convolution to cuDNN: its descriptor, the names of the descriptor's attributes, and its
// operands.
struct Operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window;
  cudnnBackendAttributeName_t x;
  cudnnBackendAttributeName_t weights;
  cudnnBackendAttributeName_t y;
  cudnnBackendAttributeName_t alpha;
  cudnnBackendAttributeName_t beta;
  std::vector<std::int64_t> operands;  // the inputs of the op, and its output
};

const Operation& operation_of(Convolution::Kind kind) {
  static const Operation forward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                 {Tensor::x, Tensor::weights, Tensor::y}};
  static const Operation input_grad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                    {Tensor::weights, Tensor::y, Tensor::x}};
  static const Operation weight_grad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                     {Tensor::x, Tensor::y, Tensor::weights}};
  switch (kind) {
    case Convolution::Kind::input_grad:
      return input_grad;
    case Convolution::Kind::weight_grad:
      return weight_grad;
    default:
      return forward;
  }
}

Descriptor operation(const Convolution& problem) {
  const Operation& of = operation_of(problem.kind);
  Descriptor operation(of.type);
  operation.set(of.window, window(problem))
      .set(of.x, tensor(Tensor::x, problem.x, problem))
      .set(of.weights, tensor(Tensor::weights, problem.weights, problem))
      .set(of.y, tensor(Tensor::y, problem.y, problem));
  if (problem.dtype == DType::float64)
    operation.set(of.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(of.beta, CUDNN_TYPE_DOUBLE, 0.0);
  else
    operation.set(of.alpha, CUDNN_TYPE_FLOAT, 1.0F).set(of.beta, CUDNN_TYPE_FLOAT, 0.0F);
  return operation.finalize();
}

Descriptor graph_of(const Convolution& problem, cudnnHandle_t handle) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  return graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation(problem)).finalize();
}

// Returns engines for the graph with their settings, beginning with the one that the library considers
// fastest.
std::vector<Descriptor> configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                       const std::optional<Descriptor>& description) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (description) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *description);
  if (!heuristics.try_to_finalize()) return {};
  return heuristics.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

// False for engines whose results differ from run to run, that compute in fewer bits than requested, or by
// Winograd's method. For float32 without TF32 also false for engines with tensor cores, which round factors to TF32,
// and with Fourier transforms, in which the largest elements of an image cause errors in all of its elements.
bool is_allowed(const Descriptor& engine, DType dtype, const Options& options) {
  const auto notes = engine.values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::vector<cudnnBackendNumericalNote_t> refused{
      CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
      CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_WINOGRAD};
  if (dtype == DType::float32 && !options.tf32)
    refused.insert(refused.end(), {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_FFT});
  return std::ranges::find_first_of(notes, refused) == notes.end();
}

// Returns the engine and its settings as a name.
std::string name_of_plan(const Descriptor& engine, const Descriptor& configuration) {
  std::string name = fmt::format("cudnn engine {}", engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  for (const Descriptor& knob : configuration.parts(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type =
        knob.values<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1).at(0);
    name += fmt::format(" {}={}", static_cast<int>(type), knob.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return name;
}

// A plan. cuDNN makes its executable form at the first use, since most plans never run.
class CudnnPlan final : public Plan {
 public:
  CudnnPlan(std::string name, Descriptor graph, Descriptor configuration,
            std::shared_ptr<const Cudnn::Target> target, const std::vector<std::int64_t>& operands)
      : name_(std::move(name)),
        graph_(std::move(graph)),
        configuration_(std::move(configuration)),
        target_(std::move(target)),
        operands_(operands) {}

  const std::string& name() const override { return name_; }
  std::size_t workspace() const override {
    return static_cast<std::size_t>(made().number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }

  // Makes the executable plan. Returns false if the engine turns out not to support the problem.
  bool try_to_make() const {
    if (plan_) return true;
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target_->handle != nullptr)
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_->handle);
    else
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_->description);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration_);
    if (!plan.try_to_finalize()) return false;
    plan_ = std::move(plan);
    return true;
  }

  std::function<void(runtime::Stream* stream)> bind(std::span<const Address> inputs, Address output,
                                                    Address workspace) const override {
    std::vector<void*> addresses(inputs.begin(), inputs.end());
    addresses.push_back(output);
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, operands_)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, static_cast<void*>(workspace))
        .finalize();
    return [this, plan = made(), pack](runtime::Stream* stream) { run(stream, plan, pack); };
  }

 private:
  const Descriptor& made() const {
    if (!try_to_make()) throw DeviceError(fmt::format("cuDNN: {} cannot do what it was named for", name_));
    return *plan_;
  }

  void run(runtime::Stream* stream, const Descriptor& plan, const Descriptor& pack) const {
    const RelaxedCapture relaxed;
    check_cudnn(cudnnSetStream(target_->handle, reinterpret_cast<cudaStream_t>(stream)), "cudnnSetStream");
    check_cudnn(cudnnBackendExecute(target_->handle, plan.get(), pack.get()), "cudnnBackendExecute");
  }

  std::string name_;
  Descriptor graph_;  // graph to which the configuration belongs
  Descriptor configuration_;
  std::shared_ptr<const Cudnn::Target> target_;
  const std::vector<std::int64_t>& operands_;
  mutable std::optional<Descriptor> plan_;
};

}  // namespace

Cudnn::Cudnn(const Options& options) : options_(options) {
  auto target = std::make_shared<Target>();
  check_cudnn(cudnnCreate(&target->handle), "cudnnCreate");
  target_ = std::move(target);
}

Cudnn::Cudnn(const Options& options, const std::string& described_gpu) : options_(options) {
  auto target = std::make_shared<Target>();
  Descriptor description(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const std::vector<char> text(described_gpu.begin(), described_gpu.end());
  description.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text);
  check_cudnn(cudnnBackendFinalize(description.get()), "cudnnBackendFinalize of the description of a GPU");
  target->description = std::move(description);
  target_ = std::move(target);
}

Cudnn::~Cudnn() = default;

Plans Cudnn::plans(const Convolution& problem) const {
  Plans plans;
  std::exception_ptr failure;  // an engine's error, which is thrown if no other engine works
  try {
    const Descriptor graph = graph_of(problem, target_->handle);
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (const Descriptor& configuration : configurations(graph, mode, target_->description)) {
        if (plans.size() == most_plans(problem)) return plans;
        try {
          add_plan(plans, graph, configuration, problem);
        } catch (const DeviceError&) {
          failure = std::current_exception();
        }
      }
  } catch (const Refused&) {
  }
  if (plans.empty() && failure) std::rethrow_exception(failure);
  return plans;
}

// Adds a plan, unless the engine is not allowed, or a plan with the same settings exists. The first plan may
// be chosen without a measurement, so it must be one that cuDNN can make. The measurement of the other plans
// shows if cuDNN cannot make them.
void Cudnn::add_plan(Plans& plans, const Descriptor& graph, const Descriptor& configuration,
                     const Convolution& problem) const {
  const Descriptor engine = configuration.part(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!is_allowed(engine, problem.dtype, options_)) return;
  const std::string name = name_of_plan(engine, configuration);
  if (std::ranges::any_of(plans, [&](const auto& plan) { return plan->name() == name; })) return;
  auto plan =
      std::make_shared<CudnnPlan>(name, graph, configuration, target_, operation_of(problem.kind).operands);
  if (!plans.empty() || plan->try_to_make()) plans.push_back(std::move(plan));
}

std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace plexaura::cuda::vendor
