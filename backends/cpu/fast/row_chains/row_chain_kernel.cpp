#include "backends/cpu/fast/row_chains/row_chain_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "backends/cpu/fast/elementwise/elementwise_ops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/row_chains/row_chain_regions.h"
#include "core/base/error.h"
#include "core/ops/slice.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t alignment = 64;             // bytes; alignment of results in the memory of a thread
constexpr std::int64_t bytes_of_batch = 32 << 10;  // results of a batch of rows; they stay in the first cache

// Where the first column of a value lies. A thread computes a batch of rows at a time, and holds the results that are
// no wanted outputs in its own memory.
struct RowPlace {
  std::size_t base = 0;        // index of an input or output; or memory() or zeros()
  std::int64_t slot = 0;       // in a thread's memory: bytes of the results placed before it, per row
  std::int64_t offset = 0;     // bytes to the first column
  std::int64_t row_bytes = 0;  // bytes from a row to the next one; 0 if all rows are the same
};

struct RowOperand {
  RowPlace place;
  std::int64_t bytes = 1;  // bytes of an element
  std::int64_t step = 1;   // 0: one element for the whole row
};

// Calls an innermost loop: once for each row, or once for a batch if the rows follow each other in all operands.
struct RowStep {
  Inner inner;
  std::vector<RowOperand> operands;
  RowOperand result{};
  std::int64_t count = 0;  // elements of a row of the result
  bool joins_rows = false;
};

struct RowProgram {
  std::vector<RowStep> steps;
  std::vector<std::int64_t> row_bytes;  // distance between rows, in bytes, of each input and output
  std::int64_t rows = 0;
  std::int64_t rows_of_batch = 1;
  double nanoseconds = 0;  // time for a row
};

void clear(const std::byte* const*, const std::int64_t*, std::byte* y, std::int64_t bytes) {
  std::memset(y, 0, static_cast<std::size_t>(bytes));
}

void copy(const std::byte* const* x, const std::int64_t*, std::byte* y, std::int64_t bytes) {
  std::memcpy(y, x[0], static_cast<std::size_t>(bytes));
}

std::int64_t bytes_of_element(const TensorType& type) {
  return static_cast<std::int64_t>(size_of(type.dtype));
}
std::int64_t bytes_of_row(const TensorType& type) { return columns_of(type.shape) * bytes_of_element(type); }

RowPlace columns_from(RowPlace place, std::int64_t bytes) {
  place.offset += bytes;
  return place;
}

bool joins_rows(const RowStep& step) {
  const auto joins = [&](const RowOperand& operand) {
    return operand.place.row_bytes == operand.step * step.count * operand.bytes;
  };
  return joins(step.result) && std::ranges::all_of(step.operands, joins);
}

// A range of columns of an assembled value, and where it is copied from.
struct Columns {
  std::int64_t start;
  std::int64_t count;
  RowPlace from;
};

// A value that consists of columns of other values, with zeros between them: the gradient of a slice, or a sum of such
// gradients.
struct Assembly {
  std::vector<Columns> parts;  // in the order of their starts; parts do not overlap
  // The addition, if the value is a sum: it adds 0 to each part, so that -0 becomes 0. Empty: the parts are copied.
  Inner add;
};

// Translates the ops of a chain into steps. A slice is a range of columns of its operand, so it needs no step unless
// its result is wanted. The gradient of a slice is assembled before the first step that reads it, or as an output.
class RowProgramBuilder {
 public:
  explicit RowProgramBuilder(const RegionQuery& query) : query_(query) {
    const Region& region = query.region;
    program_.rows = rows_of(query.type(region.outputs[0]).shape);
    for (const Value input : region.inputs) places_[input] = add_operand(input);
    for (std::size_t i = 0; i < region.outputs.size(); ++i) {
      const RowPlace place = add_operand(region.outputs[i]);
      if (query.wanted[i]) wanted_[region.outputs[i]] = place;
    }
  }

  RowProgram build() {
    for (const NodeId node : query_.region.nodes) {
      if (query_.graph.record(node).op->name() == "slice")
        append_slice(node);
      else if (takes_columns(query_.graph, node))
        append_slice_grad(node);
      else
        append_op(node);
      if (const Value result{node, 0}; wanted_.contains(result)) place_of(result);
    }
    divide_memory();
    return std::move(program_);
  }

 private:
  std::size_t memory() const { return program_.row_bytes.size(); }
  std::size_t zeros() const { return memory() + 1; }

  RowPlace add_operand(Value value) {
    const TensorType& type = query_.type(value);
    program_.row_bytes.push_back(rows_of(type.shape) == 1 ? 0 : bytes_of_row(type));
    return {.base = program_.row_bytes.size() - 1, .row_bytes = program_.row_bytes.back()};
  }

  // Returns where to write a result.
  RowPlace new_place(Value value) {
    if (const auto found = wanted_.find(value); found != wanted_.end()) return found->second;
    const std::int64_t bytes = bytes_of_row(query_.type(value));
    const RowPlace place{.base = memory(), .slot = memory_bytes_, .row_bytes = bytes};
    memory_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return place;
  }

  // Returns where a value is. First assembles the value if no step has written it yet.
  RowPlace place_of(Value value) {
    if (const auto found = places_.find(value); found != places_.end()) return found->second;
    const RowPlace place = new_place(value);
    assemble(assemblies_.at(value), query_.type(value), place);
    return places_[value] = place;
  }

  void assemble(const Assembly& assembly, const TensorType& type, RowPlace to) {
    const std::int64_t bytes = bytes_of_element(type);
    std::int64_t end = 0;
    const auto clear_until = [&](std::int64_t column) {
      if (column > end) append({clear, {}, {columns_from(to, end * bytes)}, (column - end) * bytes});
    };
    for (const auto& [start, count, from] : assembly.parts) {
      clear_until(start);
      const RowPlace part = columns_from(to, start * bytes);
      if (assembly.add)
        append({assembly.add, {{from, bytes}, {{.base = zeros()}, bytes, 0}}, {part, bytes}, count});
      else
        append_copy(from, part, count * bytes);
      end = start + count;
    }
    clear_until(columns_of(type.shape));
  }

  void append_copy(RowPlace from, RowPlace to, std::int64_t bytes) { append({copy, {{from}}, {to}, bytes}); }

  void append(RowStep step) {
    step.joins_rows = joins_rows(step);
    program_.nanoseconds += nanoseconds_per_call;
    program_.steps.push_back(std::move(step));
  }

  void append_slice(NodeId node) {
    const NodeRecord& record = query_.graph.record(node);
    const Shape& whole = query_.type(record.inputs[0]).shape;
    const SliceOptions& options = op_cast<SliceOp>(*record.op).options();
    const std::int64_t start = indices_of(options, whole.rank(), columns_of(whole)).start;
    const RowPlace from = columns_from(place_of(record.inputs[0]), start * bytes_of_element(record.types[0]));
    places_[{node, 0}] = from;
    if (const auto found = wanted_.find({node, 0}); found != wanted_.end())
      append_copy(from, found->second, bytes_of_row(record.types[0]));
  }

  void append_slice_grad(NodeId node) {
    const NodeRecord& record = query_.graph.record(node);
    const SliceGradOptions& options = op_cast<SliceGrad>(*record.op).options();
    const SliceIndices indices = indices_of(options, record.types[0].shape.rank(), options.extent);
    assemblies_[{node, 0}] = {{{indices.start, indices.count, place_of(record.inputs[0])}}, {}};
  }

  void append_op(NodeId node) {
    const Region alone = single(query_.graph, node);
    const Value result = alone.outputs[0];
    Elementwise op = *elementwise_of(query_.graph, node);
    if (alone.kind == "add" && join_assemblies(alone, op.inner)) return;
    RowStep step{
        .inner = std::move(op.inner), .operands = {}, .count = columns_of(query_.type(result).shape)};
    for (const Value input : alone.inputs) {
      const TensorType& type = query_.type(input);
      step.operands.push_back({place_of(input), bytes_of_element(type), columns_of(type.shape) == 1 ? 0 : 1});
    }
    places_[result] = new_place(result);
    step.result = {places_[result], bytes_of_element(query_.type(result))};
    program_.nanoseconds += op.nanoseconds * static_cast<double>(step.count);
    append(std::move(step));
  }

  // Joins the parts of the operands of a sum. Returns false if they overlap, if an operand is no assembly, or if the sum
  // stretches one column of an operand.
  bool join_assemblies(const Region& sum, const Inner& add) {
    const std::int64_t columns = columns_of(query_.type(sum.outputs[0]).shape);
    Assembly joined{{}, add};
    for (const Value input : sum.inputs) {
      const auto found = assemblies_.find(input);
      if (found == assemblies_.end() || columns_of(query_.type(input).shape) != columns) return false;
      const auto& parts = found->second.parts;
      joined.parts.insert(joined.parts.end(), parts.begin(), parts.end());
    }
    std::ranges::sort(joined.parts, {}, &Columns::start);
    const auto overlap = [](const Columns& a, const Columns& b) { return a.start + a.count > b.start; };
    if (std::ranges::adjacent_find(joined.parts, overlap) != joined.parts.end()) return false;
    assemblies_[sum.outputs[0]] = std::move(joined);
    return true;
  }

  // Chooses the rows of a batch, and computes the offsets of the results in the memory of a thread.
  void divide_memory() {
    if (memory_bytes_ > most_bytes_of_row) throw InternalError("the rows of a chain are too long");
    program_.rows_of_batch = std::clamp<std::int64_t>(
        bytes_of_batch / std::max<std::int64_t>(memory_bytes_, alignment), 1, program_.rows);
    for (RowStep& step : program_.steps) {
      for (RowOperand& operand : step.operands)
        operand.place.offset += operand.place.slot * program_.rows_of_batch;
      step.result.place.offset += step.result.place.slot * program_.rows_of_batch;
    }
  }

  const RegionQuery& query_;
  RowProgram program_;
  std::map<Value, RowPlace> wanted_;  // places of the wanted outputs of the kernel
  std::map<Value, RowPlace> places_;  // places of inputs, and of results that a step writes
  std::map<Value, Assembly> assemblies_;
  std::int64_t memory_bytes_ = 0;  // bytes of memory for a row
};

// Computes a range of rows on one thread. `memory` holds the results that are no wanted outputs.
class RowRun {
 public:
  RowRun(const RowProgram& program, const Binding& binding, std::byte* memory) : program_(program) {
    auto base = bases_.begin();
    for (const auto* operands : {&binding.inputs, &binding.outputs})
      base = std::ranges::copy(*operands, base).out;
    *base++ = memory;
    *base = zero_.data();
  }

  void run(std::int64_t begin, std::int64_t end) {
    go_on(begin);
    for (std::int64_t row = begin; row < end; row += program_.rows_of_batch) {
      const std::int64_t rows = std::min(program_.rows_of_batch, end - row);
      for (const RowStep& step : program_.steps) run_step(step, rows);
      go_on(rows);
    }
  }

 private:
  void run_step(const RowStep& step, std::int64_t rows) const {
    const std::int64_t calls = step.joins_rows ? 1 : rows;
    const std::int64_t count = step.joins_rows ? rows * step.count : step.count;
    std::array<const std::byte*, most_operands> operands{};
    std::array<std::int64_t, most_operands> steps{};
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      operands[i] = address(step.operands[i].place);
      steps[i] = step.operands[i].step;
    }
    std::byte* result = address(step.result.place);
    for (std::int64_t call = 0; call < calls; ++call) {
      step.inner(operands.data(), steps.data(), result, count);
      for (std::size_t i = 0; i < step.operands.size(); ++i) operands[i] += step.operands[i].place.row_bytes;
      result += step.result.place.row_bytes;
    }
  }

  std::byte* address(const RowPlace& place) const { return bases_[place.base] + place.offset; }

  void go_on(std::int64_t rows) {
    for (std::size_t i = 0; i < program_.row_bytes.size(); ++i)
      if (bases_[i] != nullptr) bases_[i] += rows * program_.row_bytes[i];
  }

  const RowProgram& program_;
  std::array<std::byte*, most_values_of_chain + 2> bases_{};
  std::array<std::byte, sizeof(double)> zero_{};
};

}  // namespace

std::shared_ptr<const Kernel> make_row_chain(const RegionQuery& query) {
  return make_kernel([program = RowProgramBuilder(query).build()](const Binding& binding) {
    parallel_pieces(program.rows, program.nanoseconds, [&](std::int64_t begin, std::int64_t end) {
      alignas(alignment) std::byte memory[most_bytes_of_row];
      RowRun(program, binding, memory).run(begin, end);
    });
  });
}

}  // namespace plexaura::fast
