#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/params/parameter_store.h"

namespace plexaura {

class MemberVisitor;

// A weight or buffer that a module declares: shape, start and role. It owns no values; those lie in the
// ParameterStore, under the name that this gets when the module at the root is named (specs_of). One object
// is one entry of the store: to tie weights, share it by reference. It cannot be copied and must outlive the
// naming and every call.
class PLEXAURA_API Parameter {
 public:
  Parameter(Shape shape, Initialiser initialiser, ParameterRole role = ParameterRole::trainable)
      : shape_(std::move(shape)), initialiser_(initialiser), role_(role) {}
  Parameter(const Parameter&) = delete;  // cannot be copied: to tie weights, share one object by reference
  Parameter& operator=(const Parameter&) = delete;

  const Shape& shape() const { return shape_; }
  const Initialiser& initialiser() const { return initialiser_; }
  ParameterRole role() const { return role_; }
  const std::string& name() const { return name_; }  // "layer1.0.conv1.weight"; empty until named

  // This as a leaf of the graph: the same node however often it is asked for. Throws UserError, with the
  // caller's line, where it has no name yet.
  Node in(Graph& graph, std::source_location where = std::source_location::current()) const;

 private:
  friend class Naming;

  Shape shape_;
  Initialiser initialiser_;
  ParameterRole role_;
  std::string name_;
  DType dtype_ = DType::float32;
};

// What has parameters: a layer, a block of layers, a model. A module lists its members once, in members();
// names of parameters and places in error messages come from there. It is called like a function: derived
// classes have an operator() that extends the graph of the Node it is given. It cannot be copied; using one
// object in two places shares its weights. An operator() may begin with `const auto call = enter(x);`: errors
// and traces then name this module and the line that called the model, beside the line in here.
class PLEXAURA_API Module {
 public:
  Module() = default;
  Module(const Module&) = delete;  // cannot be copied: share one object by reference, or construct another
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  // Calls `visit` with each parameter, buffer and child module, and the name it has here.
  virtual void members(MemberVisitor& visit);

  const std::string& path() const { return path_; }  // "layer1.0"; empty at the root, and until named
  DType dtype() const { return dtype_; }             // of its parameters; float32 until named

 protected:
  enum class Lines : std::uint8_t { own, of_caller };

  // One call of a module. While it lives, nodes are made under the module's path, and with their line goes that on
  // which the outermost of the modules that are being called was given its operand.
  class PLEXAURA_API Call {
   public:
    Call(const Module& module, const Operand& x, Lines lines);

   private:
    Graph::Scope scope_;
    std::optional<Graph::Called> called_;
    std::optional<Graph::WithOrigin> line_;
  };

  Call enter(const Operand& x) const { return {*this, x, Lines::own}; }
  // For a layer whose source its user does not read: nodes have the line on which the layer was given its operand, in
  // place of lines in here.
  Call enter_unseen(const Operand& x) const { return {*this, x, Lines::of_caller}; }

 private:
  friend class Naming;

  std::string path_;
  DType dtype_ = DType::float32;
};

// The name of a member, and the line that gave it.
struct MemberName {
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> MemberName(
      const Text& name, std::source_location where_named = std::source_location::current())
      : text(name), where(where_named) {}

  std::string_view text;
  std::source_location where;
};

// What Module::members calls. Lists give their elements numbers: "layer1.0".
class PLEXAURA_API MemberVisitor {
 public:
  virtual ~MemberVisitor();

  virtual void operator()(MemberName name, Parameter& parameter) = 0;
  virtual void operator()(MemberName name, Module& module) = 0;

  // Where there may be none.
  template <class T>
  void operator()(MemberName name, const std::unique_ptr<T>& member) {
    if (member) (*this)(name, *member);
  }
  template <class T>
  void operator()(MemberName name, const std::vector<std::unique_ptr<T>>& list) {
    for (std::size_t i = 0; i < list.size(); ++i)
      (*this)({std::string(name.text) + '.' + std::to_string(i), name.where}, list[i]);
  }
};

// Names every parameter and module below `root` by its path, gives the parameters their dtype, and returns
// what a ParameterStore is made from, in the order of members(). `prefix` is the path of `root` itself. A
// parameter reached by several paths is one entry that is named by the first, with the others as aliases. May
// be called again: with the same names, and perhaps another dtype, which is that of the model from then on.
// Throws UserError for two members of one name, a parameter that has another name from another root, and a
// module that contains itself.
PLEXAURA_API std::vector<ParameterSpec> specs_of(Module& root, DType dtype, std::string_view prefix = {});

// The store of a model: named as above, with starting values from the seed.
PLEXAURA_API ParameterStore make_store(Module& root, DType dtype, std::uint64_t seed = 0);

// Marks as frozen the trainable parameters that is_named_like() the pattern: "layer1.*". Buffers stay as they are.
// Throws UserError where nothing matches.
PLEXAURA_API void freeze(std::vector<ParameterSpec>& specs, std::string_view pattern);

}  // namespace plexaura
