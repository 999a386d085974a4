#include "core/params/module.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/params/name_pattern.h"

namespace plexaura {

Module::~Module() = default;

Module::Call::Call(const Module& module, const Operand& x, Lines lines)
    : scope_(x.node().graph(), Graph::Scope::Absolute{}, module.path()) {
  Graph& graph = x.node().graph();
  if (graph.has_origin()) return;
  called_.emplace(graph, x.where());
  if (lines == Lines::own) return;
  Origin line = graph.origin_of(x.where());
  line.scope.clear();
  line_.emplace(graph, std::move(line));
}
void Module::members(MemberVisitor&) {}
MemberVisitor::~MemberVisitor() = default;

Node Parameter::in(Graph& graph, std::source_location where) const {
  if (name_.empty())
    throw UserError(fmt::format(
        "{}: a {} of shape {} has no name, so that no store holds it; list it, or the layer that has "
        "it, in members() of its module, and name the model with make_store() or specs_of() before "
        "calling it",
        to_string(graph.origin_of(where)), role_ == ParameterRole::buffer ? "buffer" : "parameter",
        to_string(shape_)));
  TensorType type{dtype_, shape_};
  return role_ == ParameterRole::buffer ? graph.buffer(name_, std::move(type), where)
                                        : graph.parameter(name_, std::move(type), where);
}

// Visits all members of a module and composes their paths.
class Naming final : public MemberVisitor {
 public:
  Naming(DType dtype, std::string_view prefix) : path_(prefix), dtype_(dtype) {}

  void enter(Module& module) {
    if (std::ranges::find(open_, &module) != open_.end())
      throw UserError(
          fmt::format("the module '{}' contains itself as '{}'; list each child once", module.path_, path_));
    if (seen_.insert(&module).second) module.path_ = path_;
    module.dtype_ = dtype_;
    open_.push_back(&module);
    module.members(*this);
    open_.pop_back();
  }

  void operator()(MemberName name, Module& module) override {
    const Longer longer(path_, name.text);
    take_path(name);
    enter(module);
  }

  void operator()(MemberName name, Parameter& parameter) override {
    const Longer longer(path_, name.text);
    take_path(name);
    if (const auto found = index_of_.find(&parameter); found != index_of_.end()) {
      specs_[found->second].aliases.push_back(path_);
      return;
    }
    if (!parameter.name_.empty() && parameter.name_ != path_)
      throw UserError(fmt::format(
          "the parameter '{}' would be named '{}' by a second root; name a model from one root only. A model "
          "of "
          "make_model() is a root: as a part of another module, pass it on by model.members(visit)",
          parameter.name_, path_));
    parameter.name_ = path_;
    parameter.dtype_ = dtype_;
    index_of_.emplace(&parameter, specs_.size());
    specs_.push_back({path_, {dtype_, parameter.shape_}, parameter.role_, parameter.initialiser_, {}});
  }

  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  // Extends the path by a member's name while this object lives.
  class Longer {
   public:
    Longer(std::string& path, std::string_view name) : path_(path), outer_length_(path.size()) {
      if (name.empty()) throw UserError(fmt::format("a member of '{}' has an empty name", path));
      if (!path.empty()) path += '.';
      path += name;
    }
    ~Longer() { path_.resize(outer_length_); }
    Longer(const Longer&) = delete;
    Longer& operator=(const Longer&) = delete;

   private:
    std::string& path_;
    std::size_t outer_length_;
  };

  void take_path(const MemberName& name) {
    const auto [taken, is_new] = taken_.emplace(path_, name.where);
    if (!is_new)
      throw UserError(
          fmt::format("two members are named '{}', at {} and at {}; give each its own name, or share "
                      "one object to tie weights",
                      path_, to_string(Origin::at(taken->second)), to_string(Origin::at(name.where))));
  }

  std::string path_;
  DType dtype_;
  // The paths that are in use, and the source lines that named them.
  std::map<std::string, std::source_location> taken_;
  std::vector<const Module*> open_;
  std::set<const Module*> seen_;
  std::map<const Parameter*, std::size_t> index_of_;
  std::vector<ParameterSpec> specs_;
};

std::vector<ParameterSpec> specs_of(Module& root, DType dtype, std::string_view prefix) {
  Naming naming(dtype, prefix);
  naming.enter(root);
  return naming.take();
}

ParameterStore make_store(Module& root, DType dtype, std::uint64_t seed) {
  return ParameterStore(specs_of(root, dtype), seed);
}

void freeze(std::vector<ParameterSpec>& specs, std::string_view pattern) {
  bool any = false;
  std::vector<std::string> known;
  for (ParameterSpec& spec : specs) {
    if (spec.role == ParameterRole::buffer) continue;
    known.push_back(spec.name);
    if (!is_named_like(spec, pattern)) continue;
    spec.role = ParameterRole::frozen;
    any = true;
  }
  if (!any)
    throw UserError(fmt::format("no parameter is named like '{}', so that nothing would be frozen{}", pattern,
                                did_you_mean(pattern, known)));
}

}  // namespace plexaura
