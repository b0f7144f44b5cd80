// A config.json that cannot be read, or is made up.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "core/rules/reference/config_folder.h"

using namespace shw;

TEST_CASE("unreadable config: one that is hostile or not JSON hides nothing and stops nothing") {
  const std::string deep(100'000, '[');
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "{\"a\":";
    return text;
  }();
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("\xff\xfe{}"), deep, deep_objects,
        std::string("{\"model_type\": \"\xff\"}"), std::string("{\"model_type\": \"llama\"} x"),
        std::string("{\"hidden_size\": 1e999, \"model_type\": \"llama\"}"),
        std::string(5 << 20, ' ')}) {
    CAPTURE(text.substr(0, 40));
    CheckReport report = beside_config(llama_weights(), text);
    CHECK(finding_of_side_file(report).empty());
    CHECK(is_config_open(report, "a readable config.json"));
  }
  for (const char* text : {"null", "[]", "\"llama\"", "{}", "{\"model_type\": null}",
                           "{\"model_type\": 3}", "{\"model_type\": [\"llama\"]}"}) {
    CheckReport report = beside_config(llama_weights(), text);
    CHECK(finding_of_side_file(report).empty());
    CHECK(is_config_open(report, "it has no model_type"));
  }
  for (const char* value : {"1e300", "-8", "-9223372036854775808", "18446744073709551615", "null",
                            "\"8\"", "[8]", "{\"a\": 8}", "true", "8.0", "NaN", "-Infinity"}) {
    CAPTURE(value);
    for (const char* key :
         {"hidden_size", "num_hidden_layers", "vocab_size", "head_dim", "num_key_value_heads",
          "num_attention_heads", "tie_word_embeddings", "torch_dtype", "architectures"}) {
      CAPTURE(key);
      CHECK(finding_of_side_file(beside_keys(llama_weights(), {{key, value}}), Severity::kWarning)
                .empty());
    }
  }
  // Impossible numbers are reported without making lists of that size.
  for (const char* value : {"0", "1099511627776"}) {
    CAPTURE(value);
    CHECK_FALSE(
        finding_of_side_file(beside_keys(llama_weights(), {{"hidden_size", value}})).empty());
    CheckReport report = beside_keys(llama_weights(), {{"num_hidden_layers", value}});
    REQUIRE_FALSE(finding_of_side_file(report).empty());
    CHECK(finding_of_side_file(report).front()->subjects.size() <= 4096);
    beside_keys(llama_weights(), {{"num_attention_heads", value}});
    beside_keys(llama_weights(), {{"num_key_value_heads", value}, {"head_dim", "1099511627776"}});
  }
}

TEST_CASE("unreadable config: damage of the weights is reported whatever config.json says") {
  Bytes cut = llama_weights().file();
  cut.resize(cut.size() - 8);
  CheckReport report =
      checked_folder({{"config.json", bytes_of_text("{")}, {"model.safetensors", std::move(cut)}});
  CHECK(report.verdict == Verdict::kFindings);
}

TEST_CASE("unreadable config: what is in the place of config.json is an error") {
  const auto told = [](const std::string& name, const std::string& text) {
    const CheckReport report = checked_folder(
        {{"config.json", bytes_of_text(name == "config.json" ? text : config_text(llama_keys()))},
         {name == "config.json" ? "notes.txt" : name, bytes_of_text(text)},
         {"model.safetensors", llama_weights().file()}});
    std::string said;
    for (const Finding& finding : report.findings) {
      if (finding.rule == "unreadable-json")
        said += std::string(finding.severity == Severity::kError ? "error: " : "warning: ") +
                finding.cause;
    }
    return said;
  };
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 700\n";
  CHECK(names_all(told("config.json", ""), {"error: config.json is empty"}));
  CHECK(names_all(told("config.json", pointer), {"error", "Git LFS pointer"}));
  CHECK(names_all(told("config.json", "\n<!DOCTYPE html><html>"), {"error", "a web page"}));
  CHECK(names_all(told("config.json", "{\"a\": 1,}"), {"error", "not JSON"}));
  CHECK(names_all(told("config.json", "{\"a\": [1, 2"), {"error", "cut off"}));
  CHECK(names_all(told("trainer_state.json", "{\"log_history\": [{\"loss\": 1"), {"warning"}));
  CHECK(told("trainer_state.json", "{\"loss\": NaN, \"grad\": Infinity}").empty());
  CHECK(told("tokenizer.json", "[]").empty());
  CHECK(names_all(told("tokenizer.model", pointer), {"warning", "Git LFS pointer"}));
  CHECK(names_all(told("spiece.model", ""), {"warning", "is empty"}));
  CHECK(names_all(told("vocab.json", "{\"a\": 1"), {"warning", "cut off"}));
  CHECK(told("vocab.txt", "<s>\n</s>\n").empty());
  CHECK(names_all(told("config.json", std::string(5000, '[')), {"error", "nested deeper"}));
}

TEST_CASE(
    "a model's folder without config.json is a warning where generation_config.json is there") {
  const auto warns = [](FolderFiles files) {
    files.emplace_back("model.safetensors", llama_weights().file());
    const CheckReport report = checked_folder(std::move(files));
    return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
      return finding.rule == "unreadable-json" && finding.severity == Severity::kWarning;
    });
  };
  const auto generation = std::pair("generation_config.json", bytes_of_text("{}"));
  CHECK(warns({generation}));
  CHECK_FALSE(warns({}));
  CHECK_FALSE(warns({generation, {"params.json", bytes_of_text("{}")}}));
  CHECK_FALSE(warns({generation, {"config.json", bytes_of_text(config_text(llama_keys()))}}));
}

TEST_CASE("a large file of a tokenizer that does not end with a bracket is a warning") {
  const auto warns = [](const std::string& end) {
    const CheckReport report = checked_folder(
        {{"model.safetensors", llama_weights().file()},
         {"tokenizer.json", bytes_of_text("{\"model\": \"" + std::string(2 << 20, 'x') + end)}});
    return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
      return finding.rule == "unreadable-json" && finding.severity == Severity::kWarning;
    });
  };
  CHECK(warns("xx"));
  CHECK_FALSE(warns("\"}\n"));
}
