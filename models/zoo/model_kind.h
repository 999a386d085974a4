#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/config/key_texts.h"
#include "models/config/keys.h"
#include "models/zoo/model.h"

namespace plexaura {

// A kind of model that YAML files select by `model.name`: its keys of the section `model`, and the function
// that makes it.
struct ModelKind {
  // Reads the keys and makes the model. Throws UserError for a wrong key, or if the model does not fit `info`.
  std::function<std::unique_ptr<Model>(const Section& yaml, ModelInfo info)> make;
  // Returns the descriptions of the keys, for --describe.
  std::function<std::vector<KeyText>()> describe;
};

// Returns the kind whose keys fill a struct of options. `keys(options)` returns their table; see Key.
// `make(info, options, yaml)` returns the model; errors that it throws as yaml.error("key", "...") name line and
// column.
template <class Options, class Make>
ModelKind model_kind(std::vector<Key> (*keys)(Options&), Make make) {
  return {.make = [keys, make](const Section& yaml, ModelInfo info) -> std::unique_ptr<Model> {
            Options options;
            read_keys(yaml, keys(options));
            return make(std::move(info), options, yaml);
          },
          .describe =
              [keys] {
                Options options;
                return texts_of("model", keys(options));
              }};
}

// Registers a kind under a name, so that make_model() and run_program() use it for `model.name: NAME`. Call
// it at the start of main(), before any thread reads a configuration. Throws UserError if the name is taken.
void register_model(const std::string& name, ModelKind kind);

// Returns the kind of a name that names_of_models() contains.
const ModelKind& kind_of_model(const std::string& name);

// Returns the registered names, sorted: those of the library and those of the program.
std::vector<std::string> names_of_models();

}  // namespace plexaura
