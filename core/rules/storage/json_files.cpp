// JSON files next to the weights that cannot be parsed or are missing: loaders fail on them before
// reading a weight.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/formats/common/first_bytes.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/python_json.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Larger files are not parsed; only their first bytes are checked.
constexpr std::uint64_t kMaxParsed = 1 << 20;
// No config and no tokenizer is larger.
constexpr std::uint64_t kMaxJson = std::uint64_t{1} << 30;

struct KnownJson {
  std::string_view name, who;
  // `who`: what fails without the file, as the end of the finding's cause. `is_json` false: only
  // placeholders (LFS pointers, web pages, empty files) are reported, the content is not parsed.
  bool is_json = true;
};
constexpr auto kKnown = std::to_array<KnownJson>({
    {"config.json", "transformers fails here, even if the weights are fine"},
    {"generation_config.json", "transformers fails here, or generates with default settings"},
    {"tokenizer_config.json", "the tokenizer cannot be loaded"},
    {"tokenizer.json", "the tokenizer cannot be loaded"},
    {"special_tokens_map.json", "the tokenizer cannot be loaded"},
    {"vocab.json", "the tokenizer cannot be loaded"},
    {"added_tokens.json", "the tokenizer cannot be loaded"},
    {"tekken.json", "the tokenizer cannot be loaded"},
    {"tokenizer.model", "the tokenizer cannot be loaded", false},
    {"spiece.model", "the tokenizer cannot be loaded", false},
    {"sentencepiece.bpe.model", "the tokenizer cannot be loaded", false},
    {"vocab.txt", "the tokenizer cannot be loaded", false},
    {"merges.txt", "the tokenizer cannot be loaded", false},
    {"preprocessor_config.json", "the image or audio processor cannot be loaded"},
    {"processor_config.json", "the processor cannot be loaded"},
    {"trainer_state.json", "training cannot resume from this folder"},
    {"modules.json", "sentence-transformers finds none of the modules"},
    {"model_index.json", "diffusers finds none of the components"},
});
// Other JSON of multi-chunk formats is read together with their arrays; _sharding is not.
constexpr KnownJson kShardings = {
    "_sharding", "Orbax fails here when it restores without a target that gives the shardings"};

// Reason why the file was not downloaded; empty if it may be whole. A vocabulary may begin with
// "<s>".
std::string reason_not_downloaded(const ByteSource& source) {
  if (source.size() == 0) return "is empty";
  if (auto pointer = check_is_no_lfs_pointer(source); !pointer) return pointer.error().message;
  auto first = read_bytes(source, 0, std::min<std::uint64_t>(source.size(), kFirstBytes));
  if (!first) return "";
  const std::string_view text(reinterpret_cast<const char*>(first->data()), first->size());
  const bool is_page =
      text.starts_with("<!DOCTYPE") || text.starts_with("<!doctype") || text.starts_with("<html");
  return is_page ? "is a web page" : "";
}

// False if a file that is too large to be parsed here does not end with a bracket.
bool ends_as_json(const ByteSource& source) {
  constexpr std::uint64_t kEnd = 4096;
  auto bytes = read_bytes(source, source.size() - kEnd, kEnd);
  if (!bytes) return true;
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last != text.npos && (text[last] == '}' || text[last] == ']');
}

// Reason why the file is not JSON; empty if it is.
std::string reason_not_json(const ByteSource& source) {
  if (std::string why = reason_not_downloaded(source); !why.empty()) return why;
  auto first = read_bytes(source, 0, std::min<std::uint64_t>(source.size(), kFirstBytes));
  if (!first) return "";
  const std::string_view text(reinterpret_cast<const char*>(first->data()), first->size());
  if (const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
      begin != std::string_view::npos && text[begin] == '<')
    return "is a web page or another text that begins with \"<\"";
  if (source.size() > kMaxJson)
    return fmt::format("has {}, which no file of this kind has", human_bytes(source.size()));
  if (source.size() > kMaxParsed) return ends_as_json(source) ? "" : "is cut off";
  auto bytes = read_bytes(source, 0, source.size());
  if (!bytes) return "";
  const auto parsed = parse_json<nlohmann::json>(
      replace_non_json_floats({reinterpret_cast<const char*>(bytes->data()), bytes->size()}));
  if (parsed.problem == kTooDeepJson) return "is nested deeper than any valid file of this kind";
  // Python reads too large numbers as infinity.
  const bool is_number = parsed.problem.find("out_of_range") != std::string::npos;
  if (parsed.problem.empty() || is_number) return "";
  const auto at = json_error_offset(parsed);
  const bool is_cut = at && *at + 1 >= source.size();
  return fmt::format("is {}{}", is_cut ? "cut off, or " : "", json_error_text(parsed));
}

void add_unread(const std::string& name, const Error& error, std::vector<Finding>& findings) {
  Finding finding{.rule = std::string(kNotLookedAt.id), .severity = Severity::kInfo};
  finding.cause = fmt::format("{}: {}. It was not checked.", name, error.message);
  finding.evidence = {{"file", name}};
  finding.subjects = {name};
  findings.push_back(std::move(finding));
}

void check_json(const Facts& facts, const Directory& directory, const KnownJson& known,
                std::vector<Finding>& findings) {
  const std::string name(known.name);
  if (directory.stat(name).kind != EntryKind::kFile) return;
  auto source = directory.open(name);
  if (!source) return add_unread(name, source.error(), findings);
  std::string why = known.is_json ? reason_not_json(**source) : reason_not_downloaded(**source);
  if (why.empty()) return;
  Finding finding{.rule = std::string(kUnreadableJson.id)};
  finding.severity =
      known.name == "config.json" && facts.config_fit ? Severity::kError : Severity::kWarning;
  finding.cause = fmt::format("{} {}: {}.", name, why, known.who);
  finding.evidence = {{"file", name}, {"bytes", count_of((*source)->size())}};
  finding.subjects = {name};
  findings.push_back(std::move(finding));
}

// transformers writes both files with every model. generation_config.json alone is a copy that left
// the config behind; folders of adapters and of Mistral's own form have another config.
void check_config_is_there(const Directory& directory, std::vector<Finding>& findings) {
  const auto is_there = [&](const char* name) {
    return directory.stat(name).kind != EntryKind::kMissing;
  };
  if (!is_there("generation_config.json") || is_there("config.json") ||
      is_there("adapter_config.json") || is_there("params.json") || is_there("model_index.json"))
    return;
  Finding finding{.rule = std::string(kUnreadableJson.id), .severity = Severity::kWarning};
  finding.cause =
      "config.json is missing, though generation_config.json is there: transformers cannot load "
      "this folder.";
  finding.evidence = {{"file", std::string("config.json")}};
  finding.subjects = {"config.json"};
  findings.push_back(std::move(finding));
}

void find_unreadable_json(const Facts& facts, std::vector<Finding>& findings) {
  const auto& directory = facts.checkpoint.directory();
  if (directory == nullptr) return;
  if (!facts.checkpoint.format().traits.has_one_piece_per_tensor)
    return check_json(facts, *directory, kShardings, findings);
  for (const KnownJson& known : kKnown) check_json(facts, *directory, known, findings);
  check_config_is_there(*directory, findings);
}

}  // namespace

const Rule kUnreadableJson = {
    .id = "unreadable-json",
    .depth = Depth::kMetadata,
    .title = "A file of the config or the tokenizer is missing or cannot be read",
    .teaches =
        "Loaders read config.json, the tokenizer files and module lists before any weight, and "
        "fail at one that is not valid JSON. A failed download leaves a web page, a git-lfs "
        "pointer, or an empty or truncated file under that name; a manual edit may leave an extra "
        "comma.",
    .lesson = {.drawing = R"(
  config.json          <!DOCTYPE html> ...      a page in its place
  model.safetensors    whole
)",
               .remedy = "Download the file again (`git lfs pull`, or the hub's download), or "
                         "correct it at the byte that is named.",
               .link = ""},
    .words = {.text = "will not load", .as_warning = "cannot be read"},
    .outcome = RunOutcome::kLoadFails,
    .survives_rewriting = true,
    .run = find_unreadable_json,
};

}  // namespace shw
