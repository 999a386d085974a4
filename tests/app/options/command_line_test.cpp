#include "app/options/command_line.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::command_line_test {

namespace {

using Words = std::vector<std::string>;

CommandLine parse(const Words& words) {
  std::vector<const char*> argv{"mlp"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line("mlp", static_cast<int>(argv.size()), argv.data());
}

}  // namespace

TEST_CASE("options may stand before the YAML file, as --help shows them") {
  const CommandLine set = parse({"--set", "a=1", "--set", "b=2", "run.yaml"});
  CHECK(set.config == "run.yaml");
  CHECK(set.set == Words{"a=1", "b=2"});
  const CommandLine skip = parse({"--weights", "w", "--skip", "fc1.*", "--skip", "fc2.*", "run.yaml"});
  CHECK(skip.config == "run.yaml");
  CHECK(skip.skip == Words{"fc1.*", "fc2.*"});
}

TEST_CASE("--describe needs no file, and describes all keys or a part") {
  CHECK(parse({"--describe"}).message.find("\ntraining.epochs: ") != std::string::npos);
  CHECK(parse({"--describe", "output.keep"})
            .message.starts_with("output.keep: a whole number >= 1; default 1\n"));
  CHECK(user_error([] {
          parse({"--describe", "run.yaml"});
        }).find("'run.yaml' is not a key or section") != std::string::npos);
}

TEST_CASE("--predict takes several files, and says so where one of them was to be the YAML file") {
  const CommandLine line = parse({"run.yaml", "--predict", "a.png", "b.png"});
  CHECK(line.config == "run.yaml");
  CHECK(line.predict == Words{"a.png", "b.png"});
  CHECK(parse({"--predict", "a.png", "--backend", "cpu", "run.yaml"}).config == "run.yaml");
  CHECK(user_error([] {
          parse({"--predict", "a.png", "run.yaml"});
        }) ==
        "mlp: no YAML file was named, because --predict takes all files after it; write the YAML file first: "
        "mlp FILE.yaml --predict a.png");
}

TEST_CASE("the files of --predict may stand after other options") {
  for (const Words& words : {Words{"run.yaml", "--predict", "--images", "out", "a.png", "b.png"},
                             Words{"run.yaml", "--predict", "a.png", "--images", "out", "b.png"},
                             Words{"run.yaml", "a.png", "b.png", "--predict", "--images", "out"},
                             Words{"--images", "out", "run.yaml", "--predict", "a.png", "b.png"}}) {
    const CommandLine line = parse(words);
    CHECK(line.config == "run.yaml");
    CHECK(line.images == "out");
    CHECK(line.predict == Words{"a.png", "b.png"});
  }
  CHECK(user_error([] {
          parse({"run.yaml", "--predict", "--images", "out"});
        }) == "mlp: --predict names no file; write mlp FILE.yaml --predict FILE ...");
  CHECK(user_error([] {
          parse({"run.yaml", "--predict", "a.png", ""});
        }) == "mlp: --predict: the text is empty; give it one, or leave out the option");
  CHECK(user_error([] {
          parse({"run.yaml", "epochs=3"});
        }).starts_with("mlp: 'epochs=3' was not expected; a key of the file is set as --set"));
}

TEST_CASE("a run goes on from a checkpoint or replaces it, and does neither where it only looks") {
  CHECK(parse({"run.yaml", "--replace"}).replace);
  CHECK(user_error([] {
          parse({"run.yaml", "--resume", "--replace"});
        }) == "mlp: --resume and --replace exclude each other; give one of them");
  CHECK(user_error([] {
          parse({"run.yaml", "--evaluate", "--replace"});
        }) == "mlp: --evaluate does not train; leave out --replace");
  CHECK(parse({"run.yaml", "--check-gradients", "--weights", "w"}).check_gradients);
  CHECK(user_error([] {
          parse({"run.yaml", "--check-gradients", "--log", "x"});
        }) == "mlp: --check-gradients does not train; leave out --log");
  CHECK(user_error([] {
          parse({"run.yaml", "--check-gradients", "--evaluate"});
        }) == "mlp: --evaluate and --check-gradients exclude each other; give one of them");
  CHECK(parse({"run.yaml", "--overfit", "8"}).overfit == 8);
  CHECK(user_error([] {
          parse({"run.yaml", "--overfit", "0"});
        }).find("--overfit: '0' must be a whole number above 0") != std::string::npos);
  CHECK(user_error([] {
          parse({"run.yaml", "--overfit", "8", "--log", "x"});
        }) == "mlp: --overfit keeps nothing that it trains; leave out --log");
  CHECK(user_error([] {
          parse({"run.yaml", "--overfit", "8", "--find-lr"});
        }) == "mlp: --find-lr and --overfit exclude each other; give one of them");
  CHECK(parse({"run.yaml", "--check", "--report", "r", "--tensorboard", "t"}).check);
  CHECK(user_error([] {
          parse({"run.yaml", "--check", "--profile", "x"});
        }) == "mlp: --check keeps nothing that it trains; leave out --profile");
  CHECK(parse({"run.yaml", "--find-lr", "--weights", "w"}).find_lr);
  CHECK(user_error([] {
          parse({"run.yaml", "--find-lr", "--resume"});
        }) == "mlp: --find-lr keeps nothing that it trains; leave out --resume");
  CHECK(user_error([] {
          parse({"run.yaml", "--find-lr", "--dry-run"});
        }) == "mlp: --find-lr and --dry-run exclude each other; give one of them");
  CHECK(user_error([] {
          parse({"run.yaml", "--find-lr", "--join", "x"});
        }) == "mlp: --join trains with the weights of its server; leave out --find-lr");
}

TEST_CASE("a server and its clients have options of their own, and others have no effect there") {
  const CommandLine serves = parse({"run.yaml", "--serve", "file", "--clients", "3", "--resume"});
  CHECK(serves.serve == "file");
  CHECK(serves.clients == 3);
  CHECK(parse({"run.yaml", "--join", "file"}).join == "file");
  const auto error = [](const Words& words) { return user_error([&] { parse(words); }); };
  CHECK(error({"run.yaml", "--serve", "a", "--join", "a"}) ==
        "mlp: --serve and --join exclude each other; give one of them");
  CHECK(error({"run.yaml", "--clients", "2"}) == "mlp: --clients needs --serve");
  const CommandLine listens = parse({"run.yaml", "--serve", "file", "--address", "::", "--port", "4711"});
  CHECK(listens.address == "::");
  CHECK(listens.port == 4711);
  CHECK(error({"run.yaml", "--address", "::1"}) == "mlp: --address needs --serve");
  CHECK(error({"run.yaml", "--join", "a", "--port", "4711"}) == "mlp: --port needs --serve");
  CHECK(error({"run.yaml", "--serve", "a", "--port", "65536"}) ==
        "mlp: --port: '65536' must be a whole number from 1 to 65535; see mlp --help");
  CHECK(error({"run.yaml", "--join", "a", "--resume"}) ==
        "mlp: --join trains with the weights of its server; leave out --resume");
  CHECK(error({"run.yaml", "--serve", "a", "--log", "b"}) ==
        "mlp: --serve only serves those that train; leave out --log");
}

TEST_CASE("--generate takes how a text is continued, and excludes other modes") {
  const GenerateOptions options = parse({"run.yaml", "--generate", "20", "--prompt", "A b", "--temperature",
                                         "0", "--top-k", "5", "--seed", "3"})
                                      .generate;
  CHECK(options.count == 20);
  CHECK(options.prompt == "A b");
  CHECK(options.temperature == 0);
  CHECK(options.top_k == 5);
  CHECK(options.seed == 3);
  CHECK(parse({"run.yaml"}).generate.count == 0);
  const auto refusal = [](const Words& words) { return user_error([&] { parse(words); }); };
  for (const char* const option : {"--prompt", "--temperature", "--top-k", "--seed"}) {
    CAPTURE(option);
    CHECK(refusal({"run.yaml", option, "1"}).find("requires --generate") != std::string::npos);
  }
  CHECK(refusal({"run.yaml", "--generate", "2", "--evaluate"}) ==
        "mlp: --evaluate and --generate exclude each other; give one of them");
  CHECK(refusal({"run.yaml", "--generate", "2", "--resume"}) ==
        "mlp: --generate does not train; leave out --resume");
  CHECK(refusal({"run.yaml", "--generate", "2", "--join", "x"}).find("leave out --generate") !=
        std::string::npos);
  for (const Words& words : {Words{"0"}, Words{"2", "--temperature", "-1"},
                             Words{"2", "--temperature", "nan"}, Words{"2", "--top-k", "0"}}) {
    Words all{"run.yaml", "--generate"};
    all.insert(all.end(), words.begin(), words.end());
    CHECK(!refusal(all).empty());
  }
}

}  // namespace plexaura::testing::command_line_test
