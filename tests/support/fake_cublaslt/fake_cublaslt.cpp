#include "tests/support/fake_cublaslt/fake_cublaslt.h"

#include <algorithm>
#include <cstring>

namespace plexaura::testing::fake_cublaslt {

namespace {

struct Description {
  cublasComputeType_t computed_in;
  cudaDataType type_of_factors;
  cublasOperation_t of_a = CUBLAS_OP_N;
  cublasOperation_t of_b = CUBLAS_OP_N;
  cublasLtEpilogue_t behind = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;  // one element for each row
};

struct Layout {
  cudaDataType type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::int64_t step;  // from column to column
  std::int32_t count = 1;
  std::int64_t stride = 0;  // from matrix to matrix
};

struct Preference {
  std::uint64_t most_workspace = 0;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

Recorded last_told{};

template <class T>
T& set_in(void* object) {
  return *static_cast<T*>(object);
}
template <class T>
const T& in(const void* object) {
  return *static_cast<const T*>(object);
}

template <class T>
void multiply(const Description& how, const T* factors, const T* a, const Layout& of_a, const T* b,
              const Layout& of_b, T* d, const Layout& of_d) {
  const auto element = [](const T* matrix, const Layout& of, cublasOperation_t operation, std::uint64_t row,
                          std::uint64_t column) {
    if (operation == CUBLAS_OP_T) std::swap(row, column);
    return matrix[row + column * static_cast<std::uint64_t>(of.step)];
  };
  const std::uint64_t inner = how.of_a == CUBLAS_OP_T ? of_a.rows : of_a.columns;
  for (std::int64_t index = 0; index < of_d.count; ++index)
    for (std::uint64_t row = 0; row < of_d.rows; ++row)
      for (std::uint64_t column = 0; column < of_d.columns; ++column) {
        T sum = 0;
        for (std::uint64_t k = 0; k < inner; ++k)
          sum += element(a + index * of_a.stride, of_a, how.of_a, row, k) *
                 element(b + index * of_b.stride, of_b, how.of_b, k, column);
        T& result = d[index * of_d.stride + static_cast<std::int64_t>(row) +
                      static_cast<std::int64_t>(column) * of_d.step];
        result = factors[0] * sum;
        if (how.behind == CUBLASLT_EPILOGUE_BIAS) result += static_cast<const T*>(how.bias)[row];
      }
}

// Returns false if the extents or counts of operands do not fit, which the library refuses.
bool fits(const Description& how, const Layout& a, const Layout& b, const Layout& d) {
  const bool turned_a = how.of_a == CUBLAS_OP_T;
  const bool turned_b = how.of_b == CUBLAS_OP_T;
  const auto is_packed = [](const Layout& of) { return of.step >= static_cast<std::int64_t>(of.rows); };
  return (turned_a ? a.columns : a.rows) == d.rows && (turned_b ? b.rows : b.columns) == d.columns &&
         (turned_a ? a.rows : a.columns) == (turned_b ? b.columns : b.rows) && a.count == d.count &&
         b.count == d.count && is_packed(a) && is_packed(b) && is_packed(d);
}

}  // namespace

const Recorded& recorded() { return last_told; }

bool is_reordered = false;

}  // namespace plexaura::testing::fake_cublaslt

using namespace plexaura::testing::fake_cublaslt;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int object;
  *handle = reinterpret_cast<cublasLtHandle_t>(&object);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "the library's words"; }
size_t cublasLtGetVersion() { return 130100; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t computed_in,
                                        cudaDataType_t type_of_factors) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{computed_in, type_of_factors});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t object) {
  delete reinterpret_cast<Description*>(object);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t object,
                                              cublasLtMatmulDescAttributes_t name, const void* value,
                                              size_t bytes) {
  auto& description = set_in<Description>(object);
  const auto set = [&](auto& attribute) {
    if (bytes != sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&attribute, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description.of_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description.of_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(description.behind);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(description.bias);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, step});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t object) {
  delete reinterpret_cast<Layout*>(object);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t object,
                                                cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                size_t bytes) {
  auto& layout = set_in<Layout>(object);
  const bool is_count = name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
  if (bytes != (is_count ? sizeof layout.count : sizeof layout.stride)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(is_count ? static_cast<void*>(&layout.count) : &layout.stride, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(const cublasLtMatmulPreference_t object) {
  delete reinterpret_cast<Preference*>(object);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t object,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  auto& preference = set_in<Preference>(object);
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    std::memcpy(&preference.most_workspace, value, bytes);
  else if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    std::memcpy(&preference.reduction_schemes, value, bytes);
  else
    std::memcpy(&preference.alignments[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wanted, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  const auto& preference = in<Preference>(wanted);
  const auto& how = in<Description>(description);
  if (in<Layout>(d).rows == refused_extent) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (most < 2 || !fits(how, in<Layout>(a), in<Layout>(b), in<Layout>(d))) return CUBLAS_STATUS_INVALID_VALUE;
  last_told = {.computed_in = how.computed_in,
               .type_of_factors = how.type_of_factors,
               .most_workspace = preference.most_workspace,
               .reduction_schemes = preference.reduction_schemes,
               .least_alignment = *std::ranges::max_element(preference.alignments),
               .alignment_of_bias = reinterpret_cast<std::uintptr_t>(how.bias),
               .stream = nullptr,
               .workspace = 0};
  const int first = is_reordered ? 1 : 0;
  results[first].workspaceSize = workspace;
  results[first].algo.data[0] = 10;
  results[1 - first].workspaceSize = 0;
  results[1 - first].algo.data[0] = 20;
  *count = 2;
  if (most > 2) results[(*count)++] = results[0];  // offers the same algorithm again
  return CUBLAS_STATUS_SUCCESS;
}

// Each setting is the number of the algorithm, or that of the attribute.
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name, void* value,
                                                    size_t bytes, size_t* written) {
  const bool is_short =
      name == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || name == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  *written = is_short ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  if (bytes != *written) return CUBLAS_STATUS_INVALID_VALUE;
  const auto setting = static_cast<std::uint32_t>(algorithm->data[0] + name);
  std::memcpy(value, &setting, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t of_a, const void* b,
                              cublasLtMatrixLayout_t of_b, const void*, const void*, cublasLtMatrixLayout_t,
                              void* d, cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t*, void*,
                              size_t workspace_bytes, cudaStream_t stream) {
  const auto& how = in<Description>(description);
  last_told.stream = stream;
  last_told.workspace = workspace_bytes;
  const auto multiply_as = [&]<class T>(T) {
    multiply<T>(how, static_cast<const T*>(alpha), static_cast<const T*>(a), in<Layout>(of_a),
                static_cast<const T*>(b), in<Layout>(of_b), static_cast<T*>(d), in<Layout>(of_d));
  };
  if (in<Layout>(of_d).type == CUDA_R_64F)
    multiply_as(double());
  else
    multiply_as(float());
  return CUBLAS_STATUS_SUCCESS;
}
