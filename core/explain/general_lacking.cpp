#include "core/explain/general_lacking.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/letter_case.h"
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kNearby =
    28;  // characters between a file and the words that say it is missing

constexpr MessageKind kWeightsGone = {
    .id = "weights-file-gone",
    .example = "Module NAME has no file named model.fp16.safetensors",
    .meanings = {
        {{.id = "other-name",
          .wrong = kLoader,
          .weight = 0.5,
          .title = "the weights file has a name that the program does not look for",
          .text =
              "The weights may be there in a different format or under a different name: a variant "
              "(fp16), shards with an index, *.bin instead of *.safetensors, one folder deeper, or "
              "only an adapter. Give the variant or the file name in the call, or convert.",
          .decide = "Check which files are in the folder.",
          .command = "shardwright info CHECKPOINT"},
         {.rule = &kMissingFile,
          .wrong = kDisk,
          .weight = 0.4,
          .title = "a weights file was not saved, copied or downloaded",
          .text = "Usual causes: an interrupted copy or download, a rank or node that did not "
                  "write its file, or a clean-up that deleted too much.",
          .decide = "Check whether the file exists where the checkpoint was written.",
          .command = "shardwright check CHECKPOINT"}}}};
constexpr MessageKind kIndexGone = {
    .id = "index-file-gone",
    .example = "Cannot find checkpoint at FOLDER; expected .metadata",
    .meanings = {
        {{.id = "unfinished-save",
          .rule = &kMissingFile,
          .wrong = kDisk,
          .weight = 0.5,
          .title = "the metadata or index file is missing",
          .text = "Metadata, indexes and the file that names the latest step are written last. If "
                  "they are missing, the save was interrupted, or they were not copied. All "
                  "tensors may still be there.",
          .decide = "Check what is in the folder, and whether an earlier step has the file.",
          .command = "shardwright check CHECKPOINT"},
         {.id = "wrong-path",
          .wrong = kLoader,
          .weight = 0.4,
          .title =
              "the path is not the checkpoint's folder, or the checkpoint has a different format",
          .text = "Loaders need the folder of one step, not the run's parent folder or a "
                  "component's subfolder, in a format that they support.",
          .decide = "See which format `shardwright info` reports for the folder.",
          .command = "shardwright info CHECKPOINT"}}}};
constexpr MessageKind kSettingsGone = {
    .id = "settings-file-gone",
    .example = "Cannot detect the model: missing run_config.yaml in FOLDER",
    .meanings = {
        {{.id = "missing-part",
          .wrong = kLoader,
          .weight = 0.6,
          .title = "a settings file that this program needs is missing next to the weights",
          .text = "The weights are not the problem. The folder was written for another program, or "
                  "is one level too high or too low, or the file was not copied. Copy the file "
                  "from the run or the base model, or give its settings in the call.",
          .decide = "Check which files the folder has, and which program wrote them.",
          .command = "shardwright info CHECKPOINT"},
         {.id = "unfinished-save",
          .rule = &kMissingFile,
          .wrong = kDisk,
          .weight = 0.25,
          .title = "the save or the copy was interrupted",
          .text = "An export writes its files one after another.",
          .decide = "Check whether the file exists where the checkpoint was written.",
          .command = "shardwright check CHECKPOINT"}}}};

constexpr MessageKind kScaleGone = {
    .id = "scale-gone",
    .example = "W4A4 mode requires input_global_scale for layer NAME, but it's not found",
    .meanings = {
        {{.id = "quantised",
          .rule = &kQuantisedPairs,
          .wrong = kDisk,
          .weight = 0.6,
          .title = "the scale or state of a quantised weight is not where the program looks for it",
          .text = "The tensors needed to decode the weight were not saved, have a different suffix "
                  "from what this program expects, or belong to a different scheme. `shardwright "
                  "check` verifies that each packed weight has its scales.",
          .decide = "Check which scales and states the other layers have.",
          .command = "shardwright check CHECKPOINT"},
         {.id = "quantised",
          .wrong = kLoader,
          .weight = 0.35,
          .title = "the program expects a different quantisation from the checkpoint's",
          .text = "The option, or quantization_config, names a scheme that needs more tensors than "
                  "the checkpoint has (static instead of dynamic activations, a different format).",
          .decide =
              "Compare quantization_config in config.json with the tensor names of one layer.",
          .command = "shardwright ls CHECKPOINT NAME"}}}};
constexpr MessageKind kStatesGone = {
    .id = "states-gone",
    .example = "KeyError: 'param \"layers.3.weight\" not found in optimizer state'",
    .meanings = {
        {{.id = "no-optimizer-state",
          .rule = &kHalfPair,
          .wrong = FaultSide::kEither,
          .weight = 0.75,
          .title = "the saved optimizer states do not include this parameter",
          .text =
              "The save had no state for it (frozen, without a gradient, added since), the groups "
              "list the parameters in another order or under other names (a wrapper's prefix), or "
              "a different optimizer saved. The weights are not the problem: load only the weights "
              "and restart the optimizer, or resume with the settings of the save.",
          .decide = "Check which parameters have states in the checkpoint.",
          .command = "shardwright check CHECKPOINT"}}}};

constexpr auto kWeights =
    std::to_array<std::string_view>({".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".distcp",
                                     ".gguf", ".npz", ".h5", ".msgpack", ".pdparams", "_data"});
constexpr auto kIndexes =
    std::to_array<std::string_view>({".index.json", ".metadata", "_metadata", "metadata.json",
                                     "manifest.ocdbt", "latest_checkpointed_iteration.txt"});
constexpr auto kSettings = std::to_array<std::string_view>(
    {".json", ".yaml", ".yml", ".toml", ".txt", ".model", ".jinja"});

template <std::size_t N>
bool ends_with_any(std::string_view word, const std::array<std::string_view, N>& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return word.ends_with(end); });
}

const MessageKind* kind_of_file(std::string_view word) {
  const std::string_view file = word.substr(word.find_last_of("/\\") + 1);
  const bool is_ending_alone = file.starts_with('.') && file != ".metadata";
  if (word.find('*') != word.npos || word.find("://") != word.npos || is_ending_alone)
    return nullptr;
  if (ends_with_any(word, kIndexes)) return &kIndexGone;
  if (ends_with_any(word, kWeights)) return &kWeightsGone;
  return ends_with_any(word, kSettings) ? &kSettingsGone : nullptr;
}

bool is_in_path(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_' || c == '.' || c == '-' || c == '/' ||
         c == '\\' || c == ':';
}

// "missing FILE", "no file named FILE": the words come near before the file, and nothing between
// says that something else is missing in it.
bool says_file_is_missing_after(std::string_view before) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"missing", "no file named", "not contain", "cannot find", "can't find", "could not find",
       "couldn't find", "unable to find", "expected", "has no", "no such file", "not found"});
  constexpr auto kOthers =
      std::to_array<std::string_view>({" in ", " from ", "key", "field", "'s", " but ", " of "});
  const std::string_view near = before.substr(before.size() - std::min(before.size(), kNearby));
  std::size_t last = near.npos;
  for (std::string_view word : kWords) {
    if (const std::size_t at = near.rfind(word); at != near.npos)
      last = std::max(last == near.npos ? 0 : last, at + word.size());
  }
  if (last == near.npos) return false;
  const std::string_view between = near.substr(last);
  return std::none_of(kOthers.begin(), kOthers.end(),
                      [&](std::string_view word) { return between.find(word) != between.npos; });
}

// "FILE not found", "FILE is missing"
bool is_missing_after(std::string_view after) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"not found", "is missing", "could not be found", "cannot be found", "is not there"});
  const std::string_view near = after.substr(0, kNearby);
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    const std::size_t at = near.find(word);
    return at != near.npos && near.substr(0, at).find_first_of(".,;\n") == near.npos;
  });
}

}  // namespace

std::optional<ErrorMessage> missing_file_in(std::string_view sentence) {
  const std::string in_lower_case = lowered(sentence);
  const std::string_view text = in_lower_case;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_in_path(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    while (!word.empty() && (word.back() == '.' || word.back() == ':')) word.remove_suffix(1);
    const MessageKind* kind = word.size() > 2 ? kind_of_file(word) : nullptr;
    const bool is_missing = kind != nullptr && (says_file_is_missing_after(text.substr(0, at)) ||
                                                is_missing_after(text.substr(at + word.size())));
    if (is_missing)
      return ErrorMessage{kind, std::string(sentence.substr(at, word.size())), {}, {}};
    at = std::max(end, at) + 1;
  }
  return std::nullopt;
}

const MessageKind* kind_of_missing_names(std::string_view sentence) {
  struct Subject {
    const MessageKind* kind;
    std::array<std::string_view, 8> words;
  };
  static constexpr Subject kSubjects[] = {
      {&kScaleGone,
       {"scale", "zero point", "zero_point", "qzeros", "absmax", "g_idx", "quant_state", "scales"}},
      {&kStatesGone,
       {"optimizer state", "optim state", "optimizer's state", "optim_state", "optimizer_state",
        "exp_avg", "momentum state", "optimizer param"}}};
  for (const Subject& subject : kSubjects) {
    const bool has_one =
        std::any_of(subject.words.begin(), subject.words.end(), [&](std::string_view word) {
          return !word.empty() && sentence.find(word) != sentence.npos;
        });
    if (has_one) return subject.kind;
  }
  return nullptr;
}

}  // namespace shw
