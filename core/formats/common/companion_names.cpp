#include "core/formats/common/companion_names.h"

#include <algorithm>
#include <array>

namespace shw {
namespace {

constexpr auto kPartLists =
    std::to_array<std::string_view>({"model_index.json", "modules.json", "router_config.json"});
constexpr auto kCompanions = std::to_array<std::string_view>({
    "config.json",
    "generation_config.json",
    "adapter_config.json",
    "delta.json",
    "extraction.json",
    "scheduler_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "processor_config.json",
    "image_processor_config.json",
    "feature_extractor_config.json",
    "audio_tokenizer_config.json",
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
    "recipe.yaml",
    "configuration.json",
    "config_sentence_transformers.json",
    "config_setfit.json",
    "open_clip_config.json",
    "cnn_config.json",
    "lstm_config.json",
    "wordembedding_config.json",
    "whitespacetokenizer_config.json",
    "phrasetokenizer_config.json",
    "artifact.metadata",
    "params.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "tekken.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "bpe.codes",
    "entity_vocab.json",
    "normalizer.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "README.md",
});
constexpr auto kCompanionEndings =
    std::to_array<std::string_view>({".jinja", ".tiktoken", ".spm", ".py"});
// These files exist with and without a suffix.
constexpr auto kCompanionBeginnings =
    std::to_array<std::string_view>({"LICENSE", "NOTICE", "USE_POLICY"});
// sentence-transformers names its settings by the model: "sentence_xlm-roberta_config.json".
constexpr std::string_view kSentenceConfig = "sentence_", kConfigEnding = "_config.json";
// A script that DeepSpeed copies into every checkpoint. It reads only DeepSpeed's format.
constexpr std::string_view kRecoveryScript = "zero_to_fp32.py";

bool is_one_of_names(auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_part_list_file(std::string_view path) {
  return is_one_of_names(kPartLists, path.substr(path.rfind('/') + 1));
}

bool is_model_companion(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == kRecoveryScript) return false;
  return is_one_of_names(kCompanions, name) || is_part_list_file(name) ||
         (name.starts_with(kSentenceConfig) && name.ends_with(kConfigEnding)) ||
         std::any_of(kCompanionEndings.begin(), kCompanionEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); }) ||
         std::any_of(kCompanionBeginnings.begin(), kCompanionBeginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace shw
