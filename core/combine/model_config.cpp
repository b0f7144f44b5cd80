#include "core/combine/model_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "core/base/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxConfig = std::uint64_t{16} << 20;
constexpr const char* kModelConfig = "config.json";
constexpr const char* kVocabulary = "vocab_size";

bool replace_matching_vocabulary_size(Json& object, std::int64_t before, std::int64_t now) {
  auto found = object.find(kVocabulary);
  if (found == object.end() || !found->is_number_integer() || *found != before) return false;
  *found = now;
  return true;
}

// Replaces the head in the class name: "LlamaForCausalLM" becomes "LlamaForSequenceClassification".
bool set_head(Json& config, const std::string& head) {
  const auto classes = config.find("architectures");
  if (classes == config.end() || !classes->is_array() || classes->size() != 1 ||
      !classes->front().is_string())
    return false;
  std::string name = classes->front().get<std::string>();
  for (std::string_view end : {"LMHeadModel", "Model"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  name = name.substr(0, name.find("For")) + "For" + head;
  if (classes->front() == name) return false;
  *classes = Json::array({name});
  return true;
}

bool set_labels(Json& config, std::int64_t labels) {
  constexpr std::int64_t kMaxLabels = 1'000'000;
  const auto names = config.find("id2label");
  const auto before =
      names != config.end() && names->is_object() ? static_cast<std::int64_t>(names->size()) : 0;
  if (labels > kMaxLabels || before == labels) return false;
  Json by_number = Json::object(), by_name = Json::object();
  for (std::int64_t i = 0; i < labels; ++i) {
    const std::string name = "LABEL_" + std::to_string(i);
    by_number[std::to_string(i)] = name;
    by_name[name] = i;
  }
  config["id2label"] = std::move(by_number);
  config["label2id"] = std::move(by_name);
  return true;
}

// Null if the file is missing or not JSON.
Json read_config_json(const Directory& folder) {
  if (folder.stat(kModelConfig).kind != EntryKind::kFile) return {};
  auto source = folder.open(kModelConfig);
  if (!source || (*source)->size() > kMaxConfig) return {};
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return {};
  return parse_json<Json>({reinterpret_cast<const char*>(bytes->data()), bytes->size()}).tree;
}

std::shared_ptr<const ByteSource> config_file(const Json& config) {
  return text_file(kModelConfig, config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

std::shared_ptr<const ByteSource> config_with_changes(const Directory& folder,
                                                      const ModelChanges& changes) {
  Json config = read_config_json(folder);
  if (!config.is_object()) return nullptr;
  bool is_set = false;
  if (changes.vocabulary) {
    const auto [before, now] = *changes.vocabulary;
    is_set = replace_matching_vocabulary_size(config, before, now);
    if (auto text = config.find("text_config"); text != config.end() && text->is_object())
      is_set = replace_matching_vocabulary_size(*text, before, now) || is_set;
  }
  if (!changes.head.empty()) is_set = set_head(config, changes.head) || is_set;
  if (changes.labels > 0) is_set = set_labels(config, changes.labels) || is_set;
  return is_set ? config_file(config) : nullptr;
}

std::shared_ptr<const ByteSource> config_file_with_value(const Directory& folder,
                                                         const std::string& key,
                                                         const std::string& value) {
  Json config = read_config_json(folder);
  if (!config.is_object()) return nullptr;
  config[key] = Json::parse(value);
  return config_file(config);
}

bool is_causal_model(const Directory& folder) {
  const Json config = read_config_json(folder);
  if (!config.is_object()) return false;
  const auto classes = config.find("architectures");
  return classes != config.end() && classes->is_array() && !classes->empty() &&
         classes->front().is_string() &&
         classes->front().get<std::string>().ends_with("ForCausalLM");
}

std::shared_ptr<const ByteSource> text_file(const std::string& name, const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return memory_source(name, Bytes(view.begin(), view.end()));
}

std::vector<std::shared_ptr<const ByteSource>> tokenizer_files(const Directory& folder) {
  constexpr auto kNames = std::to_array<const char*>(
      {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
       "tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja"});
  std::vector<std::shared_ptr<const ByteSource>> files;
  for (const char* name : kNames) {
    if (folder.stat(name).kind != EntryKind::kFile) continue;
    if (auto source = folder.open(name)) files.push_back(std::move(*source));
  }
  return files;
}

}  // namespace shw
