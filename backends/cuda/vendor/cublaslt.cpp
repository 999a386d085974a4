// Matrix products by cuBLASLt. The library stores matrices column by column, so for it our row-major matrices
// are transposed. It therefore computes the transposed product b' a', with b as its first operand.

#include "backends/cuda/vendor/cublaslt.h"

#include <algorithm>
#include <cublasLt.h>
#include <fmt/format.h>

#include "backends/cuda/vendor/relaxed_capture.h"
#include "core/base/error.h"

namespace plexaura::cuda::vendor {

namespace {

constexpr int most_plans = 6;  // largest number of plans for one problem, since all have to be measured
// Largest workspace in bytes, as NVIDIA recommends.
constexpr std::uint64_t most_workspace = std::uint64_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(fmt::format("cuBLASLt: {} failed: {}", call, cublasLtGetStatusString(status)));
}

template <class T, cublasStatus_t (*destroy)(T)>
struct Destroy {
  void operator()(T object) const noexcept { destroy(object); }
};
template <class T, cublasStatus_t (*destroy)(T)>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;
using Description = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return CUDA_R_64F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    case DType::float16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

// Describes a product. `bias` is null if there is none. Otherwise it may be any address with the same
// alignment as the bias that the product will use.
Description describe(const MatrixProduct& problem, const Options& options, Address bias) {
  const bool wide = problem.dtype == DType::float64;
  const bool rounds = problem.dtype == DType::float32 && options.tf32;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(
            &made, wide ? CUBLAS_COMPUTE_64F : (rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F),
            wide ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Description description(made);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(made, name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (bias == nullptr) return description;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  return description;
}

// Describes a stack of row-major matrices as they are stored. If `one` is true, all products use the same
// matrix.
Matrix matrix(const MatrixProduct& problem, std::int64_t rows, std::int64_t columns, bool one) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type_of(problem.dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate");
  Matrix matrix(made);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t name, auto value) {
    check(cublasLtMatrixLayoutSetAttribute(made, name, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(problem.products));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, one ? std::int64_t{0} : rows * columns);
  return matrix;
}

// Returns preferences for plans: partial sums are kept in the type of the computation, and operands have only
// the alignment that the engine guarantees.
Preference preference() {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(name, std::uint32_t{operand_alignment});
  return preference;
}

// A product and its operands, as the library describes them.
struct Problem {
  Problem(const MatrixProduct& product, const Options& how)
      : of(product),
        options(how),
        a(matrix(of, of.transpose_a ? of.inner : of.rows, of.transpose_a ? of.rows : of.inner, of.one_a)),
        b(matrix(of, of.transpose_b ? of.columns : of.inner, of.transpose_b ? of.inner : of.columns,
                 of.one_b)),
        result(matrix(of, of.rows, of.columns, false)) {}

  MatrixProduct of;
  Options options;
  Matrix a;
  Matrix b;
  Matrix result;
};

// Returns the algorithm and its settings as a name.
std::string name_of_plan(const cublasLtMatmulAlgo_t& algorithm) {
  std::string name = "cublaslt";
  const auto add = [&]<class T>(cublasLtMatmulAlgoConfigAttributes_t attribute, T value) {
    std::size_t written = 0;
    check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written),
          "cublasLtMatmulAlgoConfigGetAttribute");
    name += fmt::format("{}{}", attribute == CUBLASLT_ALGO_CONFIG_ID ? " " : ".", value);
  };
  add(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{});
  for (const auto attribute : {CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID,
                               CUBLASLT_ALGO_CONFIG_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                               CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION})
    add(attribute, std::uint32_t{});
  add(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, std::uint16_t{});
  add(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{});
  return name;
}

class CublasltPlan final : public Plan {
 public:
  CublasltPlan(std::string name, std::shared_ptr<const Problem> problem, std::shared_ptr<void> handle,
               const cublasLtMatmulHeuristicResult_t& found)
      : name_(std::move(name)),
        problem_(std::move(problem)),
        handle_(std::move(handle)),
        algorithm_(found.algo),
        workspace_(found.workspaceSize) {}

  const std::string& name() const override { return name_; }
  std::size_t workspace() const override { return workspace_; }

  std::function<void(runtime::Stream* stream)> bind(std::span<const Address> inputs, Address output,
                                                    Address workspace) const override {
    const std::shared_ptr<cublasLtMatmulDescOpaque_t> description =
        describe(problem_->of, problem_->options, problem_->of.bias ? inputs[2] : nullptr);
    return [this, description, a = inputs[0], b = inputs[1], output, workspace](runtime::Stream* stream) {
      run(stream, description.get(), a, b, output, workspace);
    };
  }

 private:
  void run(runtime::Stream* stream, cublasLtMatmulDesc_t description, Address a, Address b, Address output,
           Address workspace) const {
    static constexpr double wide_factors[] = {1, 0};
    static constexpr float factors[] = {1, 0};
    const bool wide = problem_->of.dtype == DType::float64;
    const void* one = wide ? static_cast<const void*>(&wide_factors[0]) : &factors[0];
    const void* zero = wide ? static_cast<const void*>(&wide_factors[1]) : &factors[1];
    const RelaxedCapture relaxed;
    check(cublasLtMatmul(static_cast<cublasLtHandle_t>(handle_.get()), description, one, b, problem_->b.get(),
                         a, problem_->a.get(), zero, output, problem_->result.get(), output,
                         problem_->result.get(), &algorithm_, workspace, workspace_,
                         reinterpret_cast<cudaStream_t>(stream)),
          "cublasLtMatmul");
  }

  std::string name_;
  std::shared_ptr<const Problem> problem_;
  std::shared_ptr<void> handle_;
  cublasLtMatmulAlgo_t algorithm_;
  std::size_t workspace_;
};

}  // namespace

Cublaslt::Cublaslt(const Options& options) : options_(options) {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  handle_ =
      std::shared_ptr<void>(handle, [](void* of) { cublasLtDestroy(static_cast<cublasLtHandle_t>(of)); });
}

Plans Cublaslt::plans(const MatrixProduct& problem) const {
  // The library does not support a bias in float64.
  if (problem.bias && problem.dtype == DType::float64) return {};
  const auto prepared = std::make_shared<const Problem>(problem, options_);
  const auto any_bias = reinterpret_cast<Address>(operand_alignment);
  const Description description = describe(problem, options_, problem.bias ? any_bias : nullptr);
  cublasLtMatmulHeuristicResult_t found[most_plans] = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      static_cast<cublasLtHandle_t>(handle_.get()), description.get(), prepared->b.get(), prepared->a.get(),
      prepared->result.get(), prepared->result.get(), preference().get(), most_plans, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  Plans plans;
  for (int i = 0; i < count; ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    const std::string name = name_of_plan(found[i].algo);
    if (std::ranges::none_of(plans, [&](const auto& plan) { return plan->name() == name; }))
      plans.push_back(std::make_shared<CublasltPlan>(name, prepared, handle_, found[i]));
  }
  return plans;
}

std::string cublaslt_version() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace plexaura::cuda::vendor
