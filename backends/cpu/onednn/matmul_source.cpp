#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <optional>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/regions/matmul_regions.h"
#include "backends/regions/region_match.h"
#include "core/base/error.h"
#include "core/graph/leaf.h"
#include "core/host/costs.h"
#include "core/ops/matmul.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

// Describes an operand as matrices [..., rows, columns] with `rank` axes, as many as the result has. The
// strides express a transposition.
memory::desc operand_desc(const Shape& shape, bool transpose, std::int64_t rank, DType dtype) {
  std::vector<std::int64_t> extents = shape.extents();
  std::vector<std::int64_t> strides = shape.strides();
  if (transpose) {
    std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const auto missing = static_cast<std::size_t>(rank - shape.rank());
  extents.insert(extents.begin(), missing, 1);
  strides.insert(strides.begin(), missing, shape.elements());
  return strided(extents, strides, dtype);
}

DType dtype_of_product(const RegionQuery& query) { return query.type(query.region.outputs[0]).dtype; }

// Returns the number of products that are added for an element of the result.
std::int64_t inner_extent(const RegionQuery& query) {
  const Shape& a = query.type(query.region.inputs[0]).shape;
  return a[a.rank() - (op_cast<MatMul>(query.op()).options().transpose_a ? 2 : 1)];
}

MatMulDescs descs_of(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, product] = matmul_shapes(query);
  const DType dtype = dtype_of_product(query);
  MatMulDescs descs{operand_desc(a, options.transpose_a, product.rank(), dtype),
                    operand_desc(b, options.transpose_b, product.rank(), dtype), std::nullopt,
                    row_major(product.extents(), dtype)};
  if (query.region.kind == matmul_with_bias) {
    std::vector<std::int64_t> bias(static_cast<std::size_t>(product.rank()), 1);
    bias.back() = product[product.rank() - 1];
    descs.bias = row_major(bias, dtype);
  }
  return descs;
}

// The layout of b: row-major as in the graph (plain), or chosen by the library (packed).
enum class Factor : std::uint8_t { plain, packed };

dnnl::matmul::primitive_desc describe(const RegionQuery& query, Factor b) {
  MatMulDescs descs = descs_of(query);
  if (b == Factor::packed)
    descs.weights = any_layout({inner_extent(query), matmul_shapes(query).product.extents().back()},
                               dtype_of_product(query));
  return describe_matmul(descs, attributes_with({}));
}

double seconds_of(const RegionQuery& query) {
  const auto outputs = static_cast<double>(query.type(query.region.outputs[0]).shape.elements());
  return costs::seconds_of_launch + costs::seconds_of_library_call +
         2 * static_cast<double>(inner_extent(query)) * outputs / costs::operations;
}

std::shared_ptr<const Kernel> make_matmul(const RegionQuery& query, Factor b) {
  const auto primitive = describe(query, b);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 0},
                                  {DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 1},
                                  {DNNL_ARG_DST, primitive.dst_desc(), Space::output, 0},
                                  scratchpad_of(primitive)};
  if (query.region.kind == matmul_with_bias)
    arguments.push_back({DNNL_ARG_BIAS, *descs_of(query).bias, Space::input, 2});
  return std::make_shared<PrimitiveKernel>(dnnl::matmul(primitive), std::move(arguments));
}

// Returns the leaf that a value is, or the parameter of which it is a cast; null if it is computed in another way.
const Leaf* leaf_of(const Graph& graph, Value value) {
  const NodeRecord& record = graph.record(value.node);
  if (record.op->name() != "cast") return as_leaf(*record.op);
  const Leaf* leaf = as_leaf(*graph.record(record.inputs[0].node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::parameter ? leaf : nullptr;
}

// Returns true if b may have a layout of its own. An operand of a loop's body may: the compiler adds the time of the
// reorder, which runs once if the operand is the same in all steps, and in each step if it is not. Then the reorder takes
// longer than the library's copy. A parameter may if only programs for inference read it, and it has no layout yet, or that
// layout already. In training a parameter's layout would have to suit its gradient and the update, too.
// A cast of a parameter has the parameter's layout if it is the shadow of the store, and is row-major otherwise.
bool may_be_packed(const RegionQuery& query) {
  const Leaf* leaf = leaf_of(query.graph, query.region.inputs[1]);
  if (leaf == nullptr) return false;
  if (leaf->kind() == LeafKind::operand) return true;
  const bool is_row_major = query.given.size() > 1 && query.given[1] && query.given[1]->is_row_major();
  return leaf->kind() == LeafKind::parameter && query.graph.mode() == Mode::inference && !is_row_major;
}

// True if more than a fifth of the memory is padding, which a product would read for nothing. A b of one column takes 64 times
// its memory in blocks of 64 columns.
bool is_padded(const Layout& layout, const Shape& shape) {
  return 4 * layout.elements(shape) > 5 * shape.elements();
}

// Returns the layout that the library wants for b [inner, columns] or, if it is transposed, b [columns, inner].
// Returns nothing if it wants no blocks, or blocks that b does not fill.
std::optional<Layout> packed_layout(const RegionQuery& query) {
  const bool transposed = op_cast<MatMul>(query.op()).options().transpose_b;
  const Shape& b = query.type(query.region.inputs[1]).shape;
  std::optional<Layout> layout;
  try {
    layout = layout_of(describe(query, Factor::packed).weights_desc(), transposed ? Shape{b[1], b[0]} : b);
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  if (!layout || layout->blocks().empty() || is_padded(*layout, transposed ? Shape{b[1], b[0]} : b))
    return std::nullopt;
  if (!transposed) return layout;
  std::vector<std::int64_t> order = layout->order();
  for (std::int64_t& axis : order) axis = 1 - axis;
  std::vector<Layout::Block> blocks = layout->blocks();
  for (Layout::Block& block : blocks) block.axis = 1 - block.axis;
  return Layout(std::move(order), std::move(blocks));
}

// Returns the seconds in which a kernel copies a row-major b to the layout of its inner loops, as it does in each run. For
// few rows that is up to two thirds of its time.
double seconds_of_copy(const RegionQuery& query) {
  // The kernel has to read b anyway, and it copies small blocks to a buffer that stays in a cache. So the copy takes a
  // quarter of the time in which memory would read b and write it, which is 2 * bytes / bytes_of_memory.
  constexpr double bytes_in_a_second = 2 * costs::bytes_of_memory;
  return static_cast<double>(query.type(query.region.inputs[1]).bytes()) / bytes_in_a_second;
}

// Offers a product that reads b in the layout of the library's kernel.
std::optional<Candidate> propose_packed(const RegionQuery& query, const Candidate& plain) {
  if (query.type(query.region.inputs[1]).shape.rank() != 2 || matmul_shapes(query).product.rank() != 2 ||
      !may_be_packed(query))
    return std::nullopt;
  const std::optional<Layout> layout = packed_layout(query);
  if (!layout) return std::nullopt;
  Candidate candidate = plain;
  candidate.implementation += ", packed";
  candidate.inputs[1] = *layout;
  candidate.make = [query] { return make_matmul(query, Factor::packed); };
  return candidate;
}

// The product of a [rows, inner] and b [inner, columns], or b [columns, inner] if it is transposed.
struct RowProduct {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
  bool transpose_b;
  double nanoseconds_of_row() const {
    return 2e9 * static_cast<double>(inner) * static_cast<double>(columns) / costs::operations;
  }
};

// Each thread packs all of b for its vector registers, which pays for this number of rows or more.
constexpr std::int64_t fewest_rows_of_thread = 32;

// Returns the sizes of a product of two float32 matrices without a bias. Returns nothing for other products, if a row
// of a is not contiguous, or if there are too few rows for several threads.
std::optional<RowProduct> row_product(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, result] = matmul_shapes(query);
  if (query.region.kind != "matmul" || dtype_of_product(query) != DType::float32 || options.transpose_a ||
      a.rank() != 2 || b.rank() != 2)
    return std::nullopt;
  const RowProduct product{a[0], a[1], result[1], options.transpose_b};
  const int threads = fast::thread_count(product.rows, product.nanoseconds_of_row());
  if (threads == 1 || product.rows < threads * fewest_rows_of_thread) return std::nullopt;
  return product;
}

void multiply_rows(const RowProduct& product, const Binding& at) {
  const float* a = fast::floats(at.inputs[0]);
  const float* b = fast::floats(at.inputs[1]);
  float* c = fast::floats(at.outputs[0]);
  std::atomic<dnnl_status_t> status = dnnl_success;
  fast::parallel_pieces(product.rows, product.nanoseconds_of_row(),
                        [&](std::int64_t begin, std::int64_t end) {
                          const dnnl_status_t of_rows =
                              dnnl_sgemm('N', product.transpose_b ? 'T' : 'N', end - begin, product.columns,
                                         product.inner, 1, a + begin * product.inner, product.inner, b,
                                         product.transpose_b ? product.inner : product.columns, 0,
                                         c + begin * product.columns, product.columns);
                          if (of_rows != dnnl_success) status = of_rows;
                        });
  if (status != dnnl_success)
    throw DeviceError(
        fmt::format("{}: oneDNN failed with status {}", *at.name, static_cast<int>(status.load())));
}

// Offers a product of which each thread computes neighbouring rows. The kernels before and after it, most of which divide
// rows among the threads in the same way, find these rows in the cache of their own core. The library divides the columns
// of a product of few rows, so that each core reads what the others have written. Where cores share no cache, such reads
// take longer than the product of a small matrix.
std::optional<Candidate> propose_rows(const RegionQuery& query) {
  const std::optional<RowProduct> product = row_product(query);
  if (!product) return std::nullopt;
  Candidate candidate = fast::row_major_candidate(query);
  candidate.implementation = "onednn gemm of each thread's rows";
  const double bytes_of_b = sizeof(float) * static_cast<double>(product->inner * product->columns);
  const int threads = fast::thread_count(product->rows, product->nanoseconds_of_row());
  candidate.seconds = seconds_of(query) + bytes_of_b * (threads - 1) / (threads * costs::bytes_of_memory);
  candidate.make = [product = *product] {
    return fast::make_kernel([product](const Binding& at) { multiply_rows(product, at); });
  };
  return candidate;
}

class MatMulSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  bool knows(const std::string& kind) const override { return is_matmul_kind(kind); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_matmul(query) || !multiplies(dtype_of_product(query)) ||
        !is_dense(query, dtype_of_product(query)))
      return {};
    Candidate candidate;
    try {
      candidate.implementation = std::string("onednn ") + describe(query, Factor::plain).impl_info_str();
      if (is_reference(candidate.implementation)) return {};
    } catch (const dnnl::error&) {
      return {};
    }
    for (const Value input : query.region.inputs)
      candidate.inputs.push_back(Layout::row_major(query.type(input).shape.rank()));
    candidate.outputs = {Layout::row_major(query.type(query.region.outputs[0]).shape.rank())};
    candidate.seconds = seconds_of(query);
    candidate.make = [query] { return make_matmul(query, Factor::plain); };
    std::vector<Candidate> candidates{std::move(candidate)};
    if (std::optional<Candidate> rows = propose_rows(query)) candidates.push_back(std::move(*rows));
    // The time of the copy decides between kernels that copy and one that does not. Where all of the library's kernels
    // copy, it decides nothing between them, and their estimates leave it out.
    if (std::optional<Candidate> packed = propose_packed(query, candidates[0])) {
      for (Candidate& copying : candidates) copying.seconds += seconds_of_copy(query);
      candidates.push_back(std::move(*packed));
    }
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_matmul_source() { return std::make_unique<MatMulSource>(); }

}  // namespace plexaura::onednn
