#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/layers/layer.h"

namespace plexaura::onnx {

// An input of a model, as its file describes it.
struct InputFacts {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> extents = {};  // -1 for an extent that the file leaves open
  bool has_shape = true;                   // false: the file does not say how many axes there are
};

// A model that an ONNX file describes, with sets of ops from version 1 to 20.
//
//   onnx::FileModel model("resnet50.onnx");
//   ParameterStore store = model.make_store();  // with the weights of the file
//   Predictor predict([&](Node x) { return model(x); }, store, *backend);
//
// The floating initialisers of the file are parameters under their names in the file, in which '_' replaces each
// character that a name may not have. Running means and variances of batch norm are buffers. These are constants:
// initialisers without axes, integers, those by which no output has a gradient, and numbers that the graph needs when it
// is built, such as scales. If the file has parameters of several dtypes, those of the dtype with the most elements are
// parameters, and the others constants.
//
// A call extends a graph for the shapes of its inputs, in training and in inference. Batch norm computes what the file
// says: with the running moments in an exported model for inference, so that fine-tuning trains scales and shifts and
// keeps the moments.
class FileModel final : public layers::Layer {
 public:
  // Reads the file, at most 2 GiB, and the files in its folder that hold its weights. Throws UserError that names a
  // malformed file, or one that lists all unsupported ops.
  explicit FileModel(const std::filesystem::path& file);
  // Reads the bytes of a file, and no other files. `name` stands for its name in messages.
  FileModel(std::string bytes, const std::string& name);
  FileModel(FileModel&&) noexcept;
  FileModel& operator=(FileModel&&) noexcept;
  ~FileModel() override;

  const std::vector<InputFacts>& inputs() const;     // without those that have an initialiser
  std::vector<std::string> outputs() const;          // names of the outputs
  DType file_dtype() const;                          // dtype of the parameters; float32 if there are none
  std::vector<std::string> parameter_names() const;  // names of parameters and buffers, in order

  void members(MemberVisitor& visit) override;

  // Names the parameters, and returns a store that holds the values of the file. If the model is a member of another
  // module, the store of that module holds them.
  ParameterStore make_store();

  // Extends the graph of the inputs, which are named as in the file, and returns the outputs. An input that is a
  // constant of the graph is known while the graph is built, and may determine shapes. Throws UserError for missing and
  // unknown inputs, for a wrong dtype, and for an impossible shape; and UnknownValue of onnx/ops/call.h, which is a
  // UserError, if a shape depends on an input that is not a constant.
  std::vector<Node> operator()(Graph& graph, const std::map<std::string, Node, std::less<>>& inputs) const;
  // Extends the graph for a model with one input. Returns the first output.
  Node operator()(Operand x) const override;

  // Returns the inputs on which the elements of a value of the file depend, not counting shapes.
  std::vector<std::string> inputs_of(std::string_view value) const;

 private:
  struct FileParameter;
  struct Contents;
  void require_named() const;

  std::unique_ptr<Contents> contents_;
};

}  // namespace plexaura::onnx
