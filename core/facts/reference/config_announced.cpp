#include "core/facts/reference/config_announced.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/cancellable_range.h"
#include "core/facts/names/architectures.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/reference/config_general.h"
#include "core/formats/common/safetensors_header.h"

namespace shw {
namespace {

using Words = std::string_view;

constexpr auto kVisionNameParts = std::to_array<Words>(
    {"vision", "visual", "image", "img", "vit", "patch", "pixel", "video", "vqmodel", "siglip",
     "clip", "mm_", "multi_modal", "qformer", "resampler", "conv_stem"});
constexpr auto kAudioNameParts =
    std::to_array<Words>({"audio", "speech", "sound", "whisper", "conformer", "wav", "mel", "codec",
                          "conv1", "encoder"});
constexpr auto kPredictors =
    std::to_array<Words>({"mtp", "nextn", "eh_proj", "enorm", "hnorm", "shared_head"});
// Companions and replacements of quantised weights.
constexpr auto kPackedParts = std::to_array<Words>(
    {"qweight",        "qzeros",  "scales",         "weight_scale",  "weight_scale_inv",
     "input_scale",    "absmax",  "quant_state",    "SCB",           "weight_packed",
     "_blocks",        "_scales", "scale_inv",      "codebooks",     "_data",
     "weight_scale_2", "biases",  "weight_qparams", "nested_absmax", "codes",
     "_packed"});

bool has_any(std::string_view fqn, std::span<const Words> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](Words word) { return fqn.find(word) != std::string_view::npos; });
}

bool is_packed_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat8E4m3fnuz:
    case Dtype::kFloat8E5m2fnuz:
    case Dtype::kFloat8E8m0fnu:
    case Dtype::kFloat4E2m1fnX2:
    case Dtype::kInt8:
    case Dtype::kUint8:
    case Dtype::kInt32:
    case Dtype::kUint32:
    case Dtype::kInt16:
    case Dtype::kInt64:
      return true;
    default:
      return false;
  }
}

bool is_stored_as_float8(Dtype dtype) {
  return dtype == Dtype::kFloat8E4m3fn || dtype == Dtype::kFloat8E5m2;
}

bool has_packed_ending(std::string_view fqn) {
  return std::any_of(kPackedParts.begin(), kPackedParts.end(),
                     [&](Words word) { return fqn.ends_with(word); });
}

bool is_quantised(const Checkpoint& c, TensorId tensor) {
  if (is_packed_dtype(c.dtype(tensor)) && c.shape(tensor).size() >= 2) return true;
  return has_packed_ending(c.fqn(tensor));
}

bool are_float8(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](TensorId tensor) { return is_stored_as_float8(c.dtype(tensor)); });
}

// True for a matrix of bytes, with or without scales, or for MLX's packed words.
bool is_integer_matrix(const Checkpoint& c, TensorId tensor) {
  const std::string fqn(c.fqn(tensor));
  if (!fqn.ends_with(".weight") || c.shape(tensor).size() < 2) return false;
  switch (c.dtype(tensor)) {
    case Dtype::kUint8:
    case Dtype::kInt8:
      return true;
    case Dtype::kUint32:
      return c.find(fqn.substr(0, fqn.rfind('.')) + ".scales").has_value();
    default:
      return false;
  }
}

// True for gpt-oss's experts: bytes of two FP4 codes, with an exponent per group next to them.
bool is_stack_of_fp4(const Checkpoint& c, TensorId tensor) {
  constexpr Words kBlocks = "_blocks";
  const Words fqn = c.fqn(tensor);
  if (c.dtype(tensor) != Dtype::kUint8 || c.shape(tensor).size() < 3 || !fqn.ends_with(kBlocks))
    return false;
  return c.find(std::string(fqn.substr(0, fqn.size() - kBlocks.size())) + "_scales").has_value();
}

// True for a weight that only quantisers write.
bool is_surely_packed(const Checkpoint& c, TensorId tensor) {
  const std::string_view fqn = c.fqn(tensor);
  return (is_stored_as_float8(c.dtype(tensor)) && c.shape(tensor).size() >= 2 &&
          fqn.ends_with("weight")) ||
         fqn.ends_with(".qweight") || fqn.ends_with(".weight_packed") ||
         fqn.ends_with("._weight_qdata") || is_integer_matrix(c, tensor) ||
         is_stack_of_fp4(c, tensor);
}

std::string config_key_with_part(const ConfigPart& part, Words key) {
  return (part.name.empty() ? "" : part.name + ".") + std::string(key);
}

// True if the model class uses the whole config; a text model alone keeps the config of its whole.
bool is_of_several_parts(const ModelConfig& config) {
  return config.architectures.size() == 1 &&
         config.architectures.front().ends_with("ForConditionalGeneration");
}

void find_absent_parts(const Checkpoint& c, const ModelConfig& config, UnmetConfigClaims& out) {
  if (!is_of_several_parts(config)) return;
  bool sees = false, hears = false, reads = false, thinks = false;
  for (TensorId tensor : c.tensors()) {
    const Words fqn = c.fqn(tensor);
    sees = sees || has_any(fqn, kVisionNameParts);
    hears = hears || has_any(fqn, kAudioNameParts);
    reads = reads || !is_outside_text_model(fqn);
    // In Qwen's Omni models, all tensors of the text part begin with "thinker.".
    thinks = thinks || fqn.starts_with("thinker.");
  }
  auto is_announced = [&](Words name) {
    const ConfigPart* part = config.find(name);
    return part != nullptr && !part->sizes.empty() && !part->model_type.empty();
  };
  if (!thinks && config.find("thinker_config") != nullptr)
    out.absent_parts.emplace_back("thinker_config");
  if (!sees && is_announced("vision_config")) out.absent_parts.emplace_back("vision_config");
  if (!hears && is_announced("audio_config")) out.absent_parts.emplace_back("audio_config");
  if (!reads && is_announced("text_config")) out.absent_parts.emplace_back("text_config");
}

// True for names that only prediction layers have: "hnorm" alone is in "batchnorm" too.
bool is_surely_of_predictors(Words name) {
  constexpr auto kSurelyPredictors = std::to_array<Words>(
      {"mtp.", "mtp_", "nextn", "eh_proj", "shared_head", ".enorm.", ".hnorm."});
  return has_any(name, kSurelyPredictors);
}

// Loaders that follow an index skip the files that it does not list.
void find_unlisted_predictors(const Checkpoint& c, UnmetConfigClaims& out) {
  constexpr std::size_t kMaxFiles = 64;
  const Directory& folder = *c.directory();
  constexpr Words kIndexEnding = ".safetensors.index.json", kShardEnding = ".safetensors";
  const auto files_of = c.files();
  if (std::none_of(files_of.begin(), files_of.end(),
                   [&](const FileRow& file) { return Words(file.path).ends_with(kIndexEnding); }))
    return;
  std::size_t files = 0;
  for (const FileRow& file : c.files()) {
    const bool is_other = !file.referenced && file.kind == EntryKind::kFile &&
                          file.path.ends_with(kShardEnding) &&
                          file.path.find('/') == std::string::npos;
    if (!is_other) continue;
    if (++files > kMaxFiles) return;
    const auto source = folder.open(file.path);
    const auto header = source ? read_safetensors_header(**source) : Result<SafetensorsHeader>();
    if (!source || !header) continue;
    const auto count = static_cast<std::size_t>(std::count_if(
        header->entries.begin(), header->entries.end(),
        [&](const SafetensorsEntry& entry) { return is_surely_of_predictors(entry.name); }));
    if (count <= out.predictors_in_file) continue;
    out.predictors_file = file.path;
    out.predictors_in_file = count;
  }
}

void find_absent_predictors(const Checkpoint& c, const ModelConfig& config,
                            UnmetConfigClaims& out) {
  const ConfigPart& text = text_part_of(config);
  for (Words key : {Words("num_nextn_predict_layers"), Words("num_mtp_layers"),
                    Words("mtp_num_hidden_layers")}) {
    auto said = text.sizes.find(key);
    if (said == text.sizes.end() || said->second == 0) continue;
    auto layers = text.sizes.find("num_hidden_layers");
    if (layers == text.sizes.end()) return;
    const std::string next = "layers." + std::to_string(layers->second) + ".";
    for (TensorId tensor : c.tensors()) {
      const Words fqn = c.fqn(tensor);
      if (has_any(fqn, kPredictors) || fqn.find(next) != Words::npos) return;
    }
    out.absent_predictors = std::pair(config_key_with_part(text, key), said->second);
    out.drops_predictors =
        config.is_of_transformers && !config.has_own_code && !config.quantisation;
    if (c.directory() != nullptr) find_unlisted_predictors(c, out);
    return;
  }
}

void find_quantised(const Checkpoint& c, const ModelConfig& config, bool is_whole,
                    Progress* progress, UnmetConfigClaims& out) {
  bool any = false, has_scales = false;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    any = any || is_quantised(c, tensor);
    has_scales = has_scales || has_packed_ending(c.fqn(tensor));
    if (!config.quantisation && is_surely_packed(c, tensor)) out.packed_weights.push_back(tensor);
  }
  const auto file = config.quantisation ? std::nullopt : quantisation_file(*c.directory());
  if (file) out.packed_weights.clear();
  if (!out.packed_weights.empty() && !has_scales && are_float8(c, out.packed_weights))
    out.bare_float8 = std::exchange(out.packed_weights, {});
  if (any || !is_whole) return;
  if (config.quantisation && config.quantisation->is_whole)
    out.unapplied_quantisation = config.quantisation;
  if (file)
    out.unapplied_quantisation = DeclaredQuantisation{.key = "", .method = "", .file = *file};
}

// True if the config or its text part ties the matrices, false if one unties them; nullopt if
// neither says so, or they disagree: which of them counts depends on the class.
std::optional<bool> ties(const ModelConfig& config) {
  std::optional<bool> says_so;
  for (const ConfigPart* part : {&config.parts.front(), &text_part_of(config)}) {
    auto said = part->flags.find("tie_word_embeddings");
    if (said == part->flags.end()) continue;
    if (says_so && *says_so != said->second) return std::nullopt;
    says_so = said->second;
  }
  return says_so;
}

std::optional<TensorId> only_tensor_with_ending(const Checkpoint& c,
                                                std::span<const Words> endings) {
  std::optional<TensorId> found;
  for (TensorId tensor : c.tensors()) {
    const Words fqn = c.fqn(tensor);
    const bool ends = std::any_of(endings.begin(), endings.end(), [&](Words ending) {
      return fqn == ending || (fqn.ends_with(ending) && fqn[fqn.size() - ending.size() - 1] == '.');
    });
    if (!ends || is_outside_text_model(fqn) || fqn.find("coder.") != Words::npos) continue;
    if (found) return std::nullopt;
    found = tensor;
  }
  return found;
}

// True if the model's class saves the head whatever the config says, and so ties it to nothing.
bool is_never_tied(const ModelConfig& config, std::string_view head) {
  const auto architecture = config.architectures.size() == 1
                                ? architecture_named(config.architectures.front())
                                : std::nullopt;
  return architecture &&
         std::any_of(
             architecture->groups.begin(), architecture->groups.end(), [&](const NameGroup& group) {
               return group.always &&
                      std::find(group.names.begin(), group.names.end(), head) != group.names.end();
             });
}

void find_tied(const Checkpoint& c, const ModelConfig& config, UnmetConfigClaims& out) {
  constexpr auto kHeads = std::to_array<Words>({"lm_head.weight", "embed_out.weight"});
  constexpr auto kEmbeddings = std::to_array<Words>(
      {"embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embeddings.weight",
       "embed_in.weight", "tok_embeddings.weight", "shared.weight"});
  const std::optional<bool> is_tied = ties(config);
  if (!is_tied) return;
  const auto head = only_tensor_with_ending(c, kHeads),
             embedding = only_tensor_with_ending(c, kEmbeddings);
  if (!head || !embedding) return;
  const ExtentsView one = c.shape(*head), two = c.shape(*embedding);
  const bool can_tie = *is_tied && !is_never_tied(config, c.fqn(*head));
  if (!same(one, two)) {
    // Requires equal columns and dtypes: a packed (quantised) matrix has another shape than its
    // unpacked elements, which proves nothing.
    if (can_tie && one.size() == 2 && two.size() == 2 && one[0] != two[0] && one[1] == two[1] &&
        c.dtype(*head) == c.dtype(*embedding))
      out.tied_despite_row_counts = std::pair(*head, *embedding);
  } else if (!*is_tied) {
    out.untied = std::pair(*head, *embedding);
  } else if (can_tie) {
    out.tied = std::pair(*head, *embedding);
  }
}

// transformers refuses a config whose list does not fit, where a class has such a list.
void find_layer_types_mismatch(const ModelConfig& config, UnmetConfigClaims& out) {
  if (config.has_own_code) return;
  for (const ConfigPart& part : config.parts) {
    const auto layers = part.sizes.find("num_hidden_layers");
    if (!part.layer_types || layers == part.sizes.end() || *part.layer_types == layers->second)
      continue;
    out.layer_types = {part.name.empty() ? "" : part.name + ".", *part.layer_types, layers->second};
    return;
  }
}

}  // namespace

UnmetConfigClaims find_unmet_config_claims(const Checkpoint& checkpoint, const ModelConfig& config,
                                           bool is_whole, Progress* progress) {
  UnmetConfigClaims out;
  find_quantised(checkpoint, config, is_whole, progress, out);
  find_tied(checkpoint, config, out);
  find_layer_types_mismatch(config, out);
  if (!is_whole) return out;
  find_absent_parts(checkpoint, config, out);
  find_absent_predictors(checkpoint, config, out);
  return out;
}

}  // namespace shw
