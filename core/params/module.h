#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/params/parameter_store.h"

namespace plexaura {

class MemberVisitor;

// A weight or buffer that a module declares: shape, initial values and role. It has no values itself; they
// are in the ParameterStore, under the name that the parameter gets when the root module is named (specs_of).
// One Parameter is one entry of the store: to tie weights, share the object by reference. It cannot be
// copied. It may be moved, which makes references to it invalid. It must outlive the naming and every call.
class PLEXAURA_API Parameter {
 public:
  Parameter(Shape shape, Initialiser initialiser, ParameterRole role = ParameterRole::trainable)
      : shape_(std::move(shape)), initialiser_(initialiser), role_(role) {}
  Parameter(const Parameter&) = delete;  // not copyable: to tie weights, share one object by reference
  Parameter& operator=(const Parameter&) = delete;
  Parameter(Parameter&&) = default;
  Parameter& operator=(Parameter&&) = default;

  const Shape& shape() const { return shape_; }
  const Initialiser& initialiser() const { return initialiser_; }
  ParameterRole role() const { return role_; }
  // Returns a path such as "layer1.0.conv1.weight"; empty until the parameter is named.
  const std::string& name() const { return name_; }

  // Returns this parameter as a leaf of the graph, the same node in every call. Throws UserError, with the
  // caller's line, if the parameter has no name yet.
  Node in(Graph& graph, std::source_location where = std::source_location::current()) const;

 private:
  friend class Naming;

  Shape shape_;
  Initialiser initialiser_;
  ParameterRole role_;
  std::string name_;
  DType dtype_ = DType::float32;
};

// An object with parameters: a layer, a block of layers, or a model. A module lists its members once, in
// members(), from which the names of parameters and the places in error messages are made. It is called like
// a function: derived classes have a const operator() that extends the graph of the Node that it gets. It
// cannot be copied; using one object in two places shares its weights. It can be moved, so that containers may
// hold it. An operator() may begin with `const auto call = enter(x);`. Then errors and traces name, beside the
// line in the module, also the module and the line that called the model.
class PLEXAURA_API Module {
 public:
  Module() = default;
  Module(const Module&) = delete;  // not copyable: share one object by reference, or construct another
  Module& operator=(const Module&) = delete;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  virtual ~Module();

  // Calls `visit` with each parameter, buffer and child module, and its name in this module.
  virtual void members(MemberVisitor& visit);

  // Returns a path such as "layer1.0"; empty at a root without a prefix, and until the module is named.
  const std::string& path() const { return path_; }
  // Dtype of the module's parameters; float32 until the module is named.
  DType dtype() const { return dtype_; }

 protected:
  enum class Lines : std::uint8_t { own, of_caller };

  // One call of a module. While a Call lives, nodes get the module's path. Beside their own line they also get the line
  // that passed the operand to the outermost module being called.
  class PLEXAURA_API Call {
   public:
    Call(const Module& module, const Operand& x, Lines lines);

   private:
    Graph::Scope scope_;
    std::optional<Graph::Called> called_;
    std::optional<Graph::WithOrigin> line_;
  };

  Call enter(const Operand& x) const { return {*this, x, Lines::own}; }
  // For a layer whose source the user does not read: nodes get the line that passed the operand to the layer,
  // instead of lines inside the layer.
  Call enter_unseen(const Operand& x) const { return {*this, x, Lines::of_caller}; }

 private:
  friend class Naming;

  std::string path_;
  DType dtype_ = DType::float32;
};

// The name of a member, and the source line that names it.
struct MemberName {
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> MemberName(
      const Text& name, std::source_location where_named = std::source_location::current())
      : text(name), where(where_named) {}

  std::string_view text;
  std::source_location where;
};

// The argument of Module::members. Elements of lists get numbers: "layer1.0".
class PLEXAURA_API MemberVisitor {
 public:
  virtual ~MemberVisitor();

  virtual void operator()(MemberName name, Parameter& parameter) = 0;
  virtual void operator()(MemberName name, Module& module) = 0;

  // Visits an optional member. If it is null, it is skipped.
  template <class T>
  void operator()(MemberName name, const std::unique_ptr<T>& member) {
    if (member) (*this)(name, *member);
  }
  template <class T>
  void operator()(MemberName name, const std::shared_ptr<T>& member) {
    if (member) (*this)(name, *member);
  }
  template <class T>
  void operator()(MemberName name, std::optional<T>& member) {
    if (member) (*this)(name, *member);
  }
  // Visits the elements of a list, such as std::vector<Block> or std::vector<std::unique_ptr<Block>>. They
  // get numbers as names.
  template <std::ranges::forward_range List>
  requires(!std::derived_from<List, Module>) void operator()(MemberName name, List& list) {
    std::size_t i = 0;
    for (auto& element : list)
      (*this)({std::string(name.text) + '.' + std::to_string(i++), name.where}, element);
  }
};

// Names every parameter and module below `root` by its path, sets the dtype of the parameters, and returns
// the specs for a ParameterStore, in the order of members(). `prefix` is the path of `root` itself. A
// parameter that is reached by several paths is one entry; the first path is its name, and the others are
// aliases. May be called again with the same names, also with another dtype, which is then the model's new
// dtype. Throws UserError for two members with the same name, for a parameter that has another name from
// another root, and for a module that contains itself.
PLEXAURA_API std::vector<ParameterSpec> specs_of(Module& root, DType dtype, std::string_view prefix = {});

// Makes the store of a model: names the parameters with specs_of(), and computes initial values from the
// seed.
PLEXAURA_API ParameterStore make_store(Module& root, DType dtype, std::uint64_t seed = 0);

// Freezes the trainable parameters whose names match the pattern by is_named_like(), for example "layer1.*".
// Buffers do not change. Throws UserError if nothing matches.
PLEXAURA_API void freeze(std::vector<ParameterSpec>& specs, std::string_view pattern);

}  // namespace plexaura
