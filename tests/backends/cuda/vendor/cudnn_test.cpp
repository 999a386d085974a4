// Tests cuDNN itself without a GPU: it makes plans for GPUs that are described to it.

#include "backends/cuda/vendor/cudnn.h"

#include <algorithm>
#include <cudnn.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "backends/cuda/described/gpus.h"
#include "core/base/error.h"

namespace plexaura::testing::cudnn_test {

namespace {

using cuda::described::find_gpu;
using cuda::described::Gpu;
using cuda::described::json_of;
using cuda::vendor::Convolution;
using cuda::vendor::Cudnn;
using cuda::vendor::Plans;
using Kind = Convolution::Kind;

// Records the last execution that cuDNN was asked for.
struct Recorded {
  int runs;
  cudaStream_t stream;
  std::vector<std::int64_t> operands;
  std::vector<void*> addresses;
  void* workspace;
  std::vector<cudnnConvolutionMode_t> modes;
  std::vector<double> alphas;
  std::vector<double> betas;
};
Recorded recorded;

// If set, every engine of cuDNN reports this numerical note and no other.
std::optional<cudnnBackendNumericalNote_t> forged_note;
// The number of next plans that fail in cuDNN, although they are valid.
int forged_failures = 0;
std::set<cudnnBackendDescriptor_t> plans_in_the_making;
int plans_made = 0;  // number of all plans

double factor(cudnnBackendAttributeType_t type, const void* value) {
  return type == CUDNN_TYPE_DOUBLE ? *static_cast<const double*>(value) : *static_cast<const float*>(value);
}

template <class T>
std::vector<T> values(const void* first, std::int64_t count) {
  return {static_cast<const T*>(first), static_cast<const T*>(first) + count};
}

// A square convolution that keeps the size of the image if its stride is 1 and it pads.
struct Square {
  std::int64_t channels;
  std::int64_t image;
  std::int64_t outputs;
  std::int64_t kernel;
  std::int64_t stride = 1;
  bool pads = true;
};

// Returns the different convolutions of ResNet50 for images of 224 pixels. A block that halves the image does
// so in its 3x3 convolution.
std::vector<Square> resnet50() {
  std::vector<Square> all{
      {3, 224, 64, 7, 2}, {64, 56, 64, 1}, {64, 56, 64, 3}, {64, 56, 256, 1}, {256, 56, 64, 1}};
  std::int64_t image = 56;
  for (const std::int64_t channels : {128, 256, 512}) {
    all.push_back({2 * channels, image, channels, 1});
    all.push_back({channels, image, channels, 3, 2});
    all.push_back({2 * channels, image, 4 * channels, 1, 2});
    image /= 2;
    all.push_back({channels, image, 4 * channels, 1});
    all.push_back({4 * channels, image, channels, 1});
    all.push_back({channels, image, channels, 3});
  }
  return all;
}

// Returns the additional convolutions in blocks of ResNet18 and ResNet34: two 3x3 convolutions, of which the
// first may halve the image.
std::vector<Square> basic_blocks() {
  std::vector<Square> all;
  for (const auto& [channels, image] : {std::pair(64, 56), std::pair(128, 28), std::pair(256, 14)}) {
    all.push_back({channels, image, 2 * channels, 3, 2});
    all.push_back({channels, image, 2 * channels, 1, 2});
  }
  return all;
}

// Returns the convolutions of the net for digits, which have no padding.
std::vector<Square> mnist_cnn() {
  return {{.channels = 1, .image = 28, .outputs = 32, .kernel = 3, .pads = false},
          {.channels = 32, .image = 13, .outputs = 128, .kernel = 3, .pads = false},
          {.channels = 128, .image = 5, .outputs = 256, .kernel = 3, .pads = false}};
}

std::vector<Square> convolutions_of_zoo() {
  std::vector<Square> all = resnet50();
  for (const auto& more : {basic_blocks(), mnist_cnn()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

Convolution problem(Kind kind, DType dtype, std::int64_t batch, const Square& of,
                    bool channels_last = false) {
  const std::int64_t padding = of.pads ? of.kernel / 2 : 0;
  const std::int64_t image = (of.image + 2 * padding - of.kernel) / of.stride + 1;
  return {kind,
          dtype,
          {batch, of.channels, of.image, of.image},
          {of.outputs, of.channels, of.kernel, of.kernel},
          {batch, of.outputs, image, image},
          {.stride = {of.stride, of.stride}, .padding = {padding, padding}},
          channels_last};
}

constexpr Kind kinds[] = {Kind::forward, Kind::input_grad, Kind::weight_grad};

void check_zoo(const Gpu& gpu, bool channels_last) {
  const Cudnn cudnn({.tf32 = channels_last}, json_of(gpu));
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16})
    for (const Kind kind : kinds)
      for (const Square& square : convolutions_of_zoo()) {
        INFO(fmt::format("{}, {}, kind {}, {} channels of {} pixels to {}, kernel {}, stride {}",
                         gpu.full_name, name_of(dtype), static_cast<int>(kind), square.channels, square.image,
                         square.outputs, square.kernel, square.stride));
        const Plans plans = cudnn.plans(problem(kind, dtype, 64, square, channels_last));
        CHECK_FALSE(plans.empty());
        std::vector<std::string> names;
        for (const auto& plan : plans) names.push_back(plan->name());
        std::ranges::sort(names);
        CHECK(std::ranges::adjacent_find(names) == names.end());
      }
}

std::vector<std::string> names_of(const Plans& plans) {
  std::vector<std::string> names;
  for (const auto& plan : plans) names.push_back(plan->name());
  return names;
}

}  // namespace

TEST_CASE(
    "cuDNN has plans for each convolution of the zoo and its gradients, on an A100, an H200 and a B200") {
  REQUIRE(resnet50().size() == 23);
  for (const bool channels_last : {false, true})
    for (const char* const gpu : {"a100", "h200", "b200"}) check_zoo(find_gpu(gpu), channels_last);
}

TEST_CASE("cuDNN plans the odd convolutions of the tests, in float64 too") {
  const Cudnn cudnn({}, json_of(find_gpu("h200")));
  const Conv2dOptions odd{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}};
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    for (const Kind kind : kinds) {
      CAPTURE(name_of(dtype));
      CHECK_FALSE(cudnn.plans({kind, dtype, {2, 2, 5, 4}, {3, 2, 3, 2}, {2, 3, 3, 6}, odd}).empty());
      CHECK_FALSE(
          cudnn.plans({kind, dtype, {1, 4, 3, 3}, {6, 2, 2, 2}, {1, 6, 2, 2}, {.groups = 2}}).empty());
    }
}

TEST_CASE("cuDNN gets the addresses of its operands, its scratch memory and the stream") {
  const Cudnn cudnn({}, json_of(find_gpu("h200")));
  std::byte inputs[2];
  std::byte output{};
  std::byte workspace{};
  int stream = 0;
  std::byte* const first = &inputs[0];
  std::byte* const second = &inputs[1];
  for (const auto& [kind, x, weights, y] : {std::tuple(Kind::forward, first, second, &output),
                                            std::tuple(Kind::input_grad, &output, first, second),
                                            std::tuple(Kind::weight_grad, first, &output, second)}) {
    const Plans plans = cudnn.plans(problem(kind, DType::float32, 64, {64, 56, 64, 3}));
    REQUIRE_FALSE(plans.empty());
    const Address given[] = {first, second};
    recorded = {};
    const auto work = plans[0]->bind(given, &output, &workspace);
    CHECK(recorded.runs == 0);
    work(reinterpret_cast<cuda::runtime::Stream*>(&stream));
    CHECK(recorded.runs == 1);
    CHECK(static_cast<void*>(recorded.stream) == &stream);
    CHECK(recorded.workspace == &workspace);
    std::map<std::int64_t, void*> addresses;
    for (std::size_t i = 0; i < recorded.operands.size(); ++i)
      addresses[recorded.operands[i]] = recorded.addresses.at(i);
    CHECK(addresses == std::map<std::int64_t, void*>{{1, x}, {2, weights}, {3, y}});
  }
}

TEST_CASE("cuDNN's result replaces what was there, and the weights are not turned") {
  const Cudnn cudnn({}, json_of(find_gpu("h200")));
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16})
    for (const Kind kind : kinds) {
      recorded = {};
      cudnn.plans(problem(kind, dtype, 2, {3, 8, 4, 3}));
      CHECK(recorded.modes == std::vector{CUDNN_CROSS_CORRELATION});
      CHECK(recorded.alphas == std::vector{1.0});
      CHECK(recorded.betas == std::vector{0.0});
    }
}

TEST_CASE("engines of cuDNN that calculate in fewer bits, or otherwise each time, are left out") {
  const auto is_taken = [](cudnnBackendNumericalNote_t note, DType dtype, bool tf32) {
    forged_note = note;
    const Plans plans = Cudnn({.tf32 = tf32}, json_of(find_gpu("h200")))
                            .plans(problem(Kind::forward, dtype, 2, {3, 8, 4, 3}));
    forged_note.reset();
    return !plans.empty();
  };
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    for (const bool tf32 : {false, true}) {
      CAPTURE(name_of(dtype));
      CHECK_FALSE(is_taken(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, dtype, tf32));
      CHECK_FALSE(is_taken(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, dtype, tf32));
      CHECK_FALSE(is_taken(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, dtype, tf32));
      CHECK_FALSE(is_taken(CUDNN_NUMERICAL_NOTE_WINOGRAD, dtype, tf32));
      CHECK(is_taken(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, dtype, tf32));
      for (const auto note : {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_FFT})
        CHECK(is_taken(note, dtype, tf32) == (dtype != DType::float32 || tf32));
    }
}

TEST_CASE("an engine of cuDNN that fails is left out, and only where all fail that is an error") {
  const Cudnn cudnn({}, json_of(find_gpu("h200")));
  const Convolution of = problem(Kind::forward, DType::float32, 2, {3, 8, 4, 3});
  const std::size_t all = cudnn.plans(of).size();
  forged_failures = 1;
  const Plans others = cudnn.plans(of);
  CHECK(forged_failures == 0);
  CHECK(others.size() >= all - 1);
  CHECK_FALSE(others.empty());
  forged_failures = 1000;
  CHECK_THROWS_WITH_AS(cudnn.plans(of), doctest::Contains("CUDNN_STATUS_EXECUTION_FAILED"), DeviceError);
  forged_failures = 0;
}

TEST_CASE("cuDNN has other plans where it may round float32 to TF32") {
  const Convolution of = problem(Kind::forward, DType::float32, 64, {64, 56, 64, 3});
  const Plans strict = Cudnn({}, json_of(find_gpu("h200"))).plans(of);
  const Plans rounding = Cudnn({.tf32 = true}, json_of(find_gpu("h200"))).plans(of);
  CHECK(names_of(strict) != names_of(rounding));
  // Tensor cores need channels last, so these plans copy to that layout.
  const auto has_large_workspace = [](const auto& plan) {
    return plan->workspace() > (std::size_t{1} << 20);
  };
  CHECK(std::ranges::none_of(strict, has_large_workspace));
  CHECK(std::ranges::any_of(rounding, has_large_workspace));
}

TEST_CASE("cuDNN's first plan for images that lie channels last copies none of them") {
  const Square square{64, 56, 256, 1};
  for (const Kind kind : kinds) {
    const auto bytes = [&](bool channels_last) {
      const Plans plans = Cudnn({}, json_of(find_gpu("h200")))
                              .plans(problem(kind, DType::bfloat16, 64, square, channels_last));
      REQUIRE_FALSE(plans.empty());
      return plans[0]->workspace();
    };
    constexpr std::size_t bytes_of_x = std::size_t{64} * 64 * 56 * 56 * 2;
    CAPTURE(static_cast<int>(kind));
    CHECK(bytes(false) > bytes_of_x);
    CHECK(bytes(true) < bytes_of_x / 4);
  }
}

TEST_CASE("cuDNN copies images of three channels in 16 bits, and those of eight not") {
  const auto bytes = [](Kind kind, std::int64_t channels) {
    const Plans plans = Cudnn({}, json_of(find_gpu("h200")))
                            .plans(problem(kind, DType::bfloat16, 64, {channels, 224, 64, 7, 2}, true));
    REQUIRE_FALSE(plans.empty());
    return plans[0]->workspace();
  };
  constexpr std::size_t bytes_of_eight = std::size_t{64} * 8 * 224 * 224 * 2;
  for (const Kind kind : {Kind::forward, Kind::weight_grad}) {
    CAPTURE(static_cast<int>(kind));
    for (const std::int64_t channels : {3, 4}) CHECK(bytes(kind, channels) >= bytes_of_eight);
    CHECK(bytes(kind, 8) < bytes_of_eight / 4);
  }
}

TEST_CASE("cuDNN's plans are the same each time") {
  const Convolution of = problem(Kind::weight_grad, DType::bfloat16, 64, {64, 56, 64, 3});
  CHECK(names_of(Cudnn({}, json_of(find_gpu("h200"))).plans(of)) ==
        names_of(Cudnn({}, json_of(find_gpu("h200"))).plans(of)));
}

TEST_CASE("cuDNN's plans are named by their engines and settings, each once") {
  const Cudnn cudnn({}, json_of(find_gpu("h100")));
  const Plans plans = cudnn.plans(problem(Kind::forward, DType::bfloat16, 64, {64, 56, 64, 3}, true));
  const std::vector<std::string> names = names_of(plans);
  CHECK(names.size() > 6);
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  for (const std::string& name : names) CHECK(name.starts_with("cudnn engine "));
  CHECK(std::ranges::any_of(names, [](const std::string& name) { return name.find('=') != name.npos; }));
}

TEST_CASE("cuDNN makes the plans behind the first one when they are asked for") {
  const Cudnn cudnn({}, json_of(find_gpu("h100")));
  plans_made = 0;
  const Plans plans = cudnn.plans(problem(Kind::forward, DType::bfloat16, 64, {64, 56, 64, 3}, true));
  REQUIRE(plans.size() > 2);
  CHECK(plans_made == 1);
  plans[0]->workspace();
  CHECK(plans_made == 1);
  plans[1]->workspace();
  plans[1]->workspace();
  CHECK(plans_made == 2);
  forged_failures = 1;
  CHECK_THROWS_WITH_AS(plans[2]->workspace(), doctest::Contains("CUDNN_STATUS_EXECUTION_FAILED"),
                       DeviceError);
}

TEST_CASE("what cuDNN refuses has no plans") {
  const Cudnn cudnn({}, json_of(find_gpu("h200")));
  CHECK(cudnn.plans({Kind::forward, DType::float32, {1, 2, 5, 5}, {3, 2, 3, 3}, {1, 3, 4, 4}, {}}).empty());
}

TEST_CASE("a description that cuDNN does not read is refused with its words") {
  CHECK_THROWS_WITH_AS(Cudnn({}, "{}"), doctest::Contains("CUDNN_STATUS_BAD_PARAM"), DeviceError);
}

}  // namespace plexaura::testing::cudnn_test

using namespace plexaura::testing::cudnn_test;

// These functions replace those of cuDNN. Calls that would need a GPU are only recorded.
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* first) {
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) recorded.operands = values<std::int64_t>(first, count);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) recorded.addresses = values<void*>(first, count);
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) recorded.workspace = values<void*>(first, count).at(0);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) plans_in_the_making.insert(descriptor);
  if (name == CUDNN_ATTR_CONVOLUTION_CONV_MODE) recorded.modes = values<cudnnConvolutionMode_t>(first, count);
  if (name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA ||
      name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA ||
      name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)
    recorded.alphas.push_back(factor(type, first));
  if (name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA ||
      name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA ||
      name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)
    recorded.betas.push_back(factor(type, first));
  static const auto real =
      reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  return real(descriptor, name, type, count, first);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       std::int64_t most, std::int64_t* count, void* first) {
  static const auto real =
      reinterpret_cast<decltype(&cudnnBackendGetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendGetAttribute"));
  const cudnnStatus_t status = real(descriptor, name, type, most, count, first);
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && forged_note) {
    *count = 1;
    *static_cast<cudnnBackendNumericalNote_t*>(first) = *forged_note;
  }
  return status;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  static const auto real =
      reinterpret_cast<decltype(&cudnnBackendFinalize)>(dlsym(RTLD_NEXT, "cudnnBackendFinalize"));
  const bool is_plan = plans_in_the_making.erase(descriptor) > 0;
  plans_made += is_plan ? 1 : 0;
  if (!is_plan || forged_failures == 0) return real(descriptor);
  --forged_failures;
  return CUDNN_STATUS_EXECUTION_FAILED;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  recorded.stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  ++recorded.runs;
  return CUDNN_STATUS_SUCCESS;
}
