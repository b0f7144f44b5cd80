// The weights of the folder in torch's form, next to the safetensors that were opened: some loaders
// take one, some the other.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/config_prefix.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/equal_tensors.h"
#include "core/facts/reference/model_config.h"
#include "core/formats/common/top_file.h"
#include "core/formats/open.h"
#include "core/rules/rules.h"
#include "core/rules/storage/second_parts.h"

namespace shw {
namespace {

// File name stems that a folder may have both as ".safetensors" and as ".bin".
constexpr auto kFormStems = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"model", "pytorch_model"},
     {"adapter_model", "adapter_model"},
     {"diffusion_pytorch_model", "diffusion_pytorch_model"}});

bool has_stem_and_ending(std::string_view path, std::string_view stem, std::string_view ending) {
  if (!is_at_top(path) || !path.starts_with(stem) || !path.ends_with(ending)) return false;
  path.remove_prefix(stem.size());
  path.remove_suffix(std::min(ending.size(), path.size()));
  return path.empty() || path.starts_with('-');
}

// A view of the folder that shows only torch's files of the model and config.json.
class TorchFilesView final : public Directory {
 public:
  TorchFilesView(std::shared_ptr<const Directory> inner, std::string stem)
      : inner_(std::move(inner)), stem_(std::move(stem)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    SHW_TRY(std::vector<Entry> entries, inner_->list(limit));
    std::erase_if(entries, [&](const Entry& entry) { return !is_shown(entry.path); });
    return entries;
  }
  Entry stat(const std::string& path) const override {
    return is_shown(path) ? inner_->stat(path) : Entry{path};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }

 private:
  bool is_shown(std::string_view path) const {
    return path == kConfigFile || has_stem_and_ending(path, stem_, ".bin") ||
           has_stem_and_ending(path, stem_, ".bin.index.json");
  }

  std::shared_ptr<const Directory> inner_;
  std::string stem_;
};

struct SecondForm {
  std::string file;  // "pytorch_model.bin"
  std::shared_ptr<const Checkpoint> opened;
};

// Null if there is no second form, or none opens completely (a git-lfs pointer, an unfinished
// download).
Result<SecondForm> open_second_form(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  for (const auto& [stem, torch_stem] : kFormStems) {
    bool is_opened = false;
    std::string file;
    for (const FileRow& row : c.files()) {
      is_opened =
          is_opened || (row.referenced && has_stem_and_ending(row.path, stem, ".safetensors"));
      const bool is_torch = !row.referenced && row.safe && row.kind == EntryKind::kFile &&
                            has_stem_and_ending(row.path, torch_stem, ".bin");
      if (is_torch && (file.empty() || row.path < file)) file = row.path;
    }
    if (!is_opened || file.empty()) continue;
    auto opened = open_checkpoint(
        std::make_shared<TorchFilesView>(c.directory(), std::string(torch_stem)), facts.progress);
    if (!opened && opened.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(opened).error());
    if (!opened) continue;
    const auto damage = (*opened)->opening_findings();
    if (std::any_of(damage.begin(), damage.end(),
                    [](const Finding& one) { return one.severity == Severity::kError; }) ||
        !is_complete_folder(**opened))
      continue;
    return SecondForm{std::move(file), std::move(*opened)};
  }
  return SecondForm{};
}

using Places = std::set<std::pair<FileId, std::int64_t>>;

void add_item_places(const Checkpoint& c, TensorId tensor, Places& places) {
  for (ChunkId chunk : c.chunks(tensor)) {
    if (const auto item = c.item(chunk)) places.emplace(item->file, item->offset);
  }
}

// A matrix or norm of a layer, which every form of a model has. Embeddings and heads may be tied
// and stored once, and older versions saved buffers.
bool is_weight_of_layer(std::string_view fqn) {
  const auto layer = layer_name_of(fqn);
  return layer && layer->number >= 0 && fqn.ends_with(".weight");
}

// The names of one form, looked up in the other: as they are, or with one prefix less or more
// ("layers.0." of a model saved without its head next to "model.layers.0.").
struct NamesOfOtherForm {
  std::string removed, added;  // "model.": one of them is empty
  bool is_renamed = false;

  std::optional<TensorId> find_in(const Checkpoint& other, std::string_view fqn) const {
    if (const auto found = other.find(fqn)) return found;
    if (!is_renamed || !fqn.starts_with(removed)) return std::nullopt;
    return other.find(added + std::string(fqn.substr(removed.size())));
  }
};

// The shortest prefix of `fqn` without which `other` has it; empty if none.
std::string prefix_missing_in(const Checkpoint& other, std::string_view fqn) {
  for (std::size_t dot = fqn.find('.'); dot != fqn.npos; dot = fqn.find('.', dot + 1))
    if (other.find(fqn.substr(dot + 1))) return std::string(fqn.substr(0, dot + 1));
  return {};
}

// Renames nothing if a weight of a layer has one name in both forms.
NamesOfOtherForm names_of_other_form(const Facts& facts, const Checkpoint& other) {
  const Checkpoint& c = facts.checkpoint;
  NamesOfOtherForm out;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_weight_of_layer(fqn)) continue;
    if (other.find(fqn)) return {};
    if (out.removed.empty()) out.removed = prefix_missing_in(other, fqn);
  }
  if (out.removed.empty()) {
    for (TensorId tensor : each_of(other.tensors(), facts)) {
      const std::string_view fqn = other.fqn(tensor);
      if (is_weight_of_layer(fqn)) out.added = prefix_missing_in(c, fqn);
      if (!out.added.empty()) break;
    }
  }
  out.is_renamed = !out.removed.empty() || !out.added.empty();
  return out;
}

// How two forms differ by what their metadata says.
struct FormDifference {
  bool is_renamed = false;  // compared under different names: what only one has is not reported
  std::vector<std::string> shapes, only_there, only_here, dtypes;
  std::size_t common = 0;
  std::vector<std::optional<TensorId>> counterparts;
};

FormDifference compare_forms_by_metadata(const Facts& facts, const Checkpoint& other) {
  const Checkpoint& c = facts.checkpoint;
  FormDifference out;
  Places places;
  const NamesOfOtherForm names = names_of_other_form(facts, other);
  out.is_renamed = names.is_renamed;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    const auto there = names.find_in(other, fqn);
    out.counterparts.push_back(there);
    if (!there) {
      if (is_weight_of_layer(fqn)) out.only_here.emplace_back(fqn);
      continue;
    }
    ++out.common;
    add_item_places(other, *there, places);
    if (!same(c.shape(tensor), other.shape(*there)))
      out.shapes.push_back(fmt::format("{} {} next to {}", fqn, to_text(other.shape(*there)),
                                       to_text(c.shape(tensor))));
    else if (c.dtype(tensor) != other.dtype(*there))
      out.dtypes.emplace_back(fqn);
  }
  for (TensorId tensor : each_of(other.tensors(), facts)) {
    const std::string_view fqn = other.fqn(tensor);
    if (c.find(fqn) || !is_weight_of_layer(fqn)) continue;
    // One storage under two names: safetensors keep one of them.
    Places own;
    add_item_places(other, tensor, own);
    if (!std::includes(places.begin(), places.end(), own.begin(), own.end()))
      out.only_there.emplace_back(fqn);
  }
  return out;
}

Finding form_finding(const SecondForm& form, const std::string& difference,
                     const std::vector<std::string>& details, std::vector<std::string> subjects) {
  Finding finding{.rule = std::string(kOtherForm.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} {}. transformers, vLLM and diffusers load the safetensors, which were checked here; a "
      "loader that takes the torch files runs a different model. Decide which of the two is right, "
      "and delete the other.",
      form.file, difference);
  finding.evidence = {{"count", count_of(details.size())}, {"details", capped(details)}};
  finding.subjects = std::move(subjects);
  return finding;
}

std::optional<Finding> differs_by_metadata(const Facts& facts, const SecondForm& form,
                                           const FormDifference& found) {
  if (!found.shapes.empty())
    return form_finding(
        form,
        fmt::format("holds {} of the safetensors next to it with a different shape ({})",
                    plural(found.shapes.size(), "tensor"), found.shapes.front()),
        found.shapes, {form.file});
  if (found.common == 0 || found.is_renamed) {
    const auto prefix = wrong_config_prefix(*form.opened, facts.progress);
    if (!prefix || prefix->found.empty()) return std::nullopt;
    return form_finding(form,
                        fmt::format("has its layers under `{}`, where config.json's {} has `{}`, "
                                    "and the safetensors next to it do not",
                                    prefix->found, prefix->model_type, prefix->expected),
                        {prefix->found}, {form.file});
  }
  // Names on both sides that the other lacks: one of them has been renamed, as transformers does.
  if (found.is_renamed || (!found.only_here.empty() && !found.only_there.empty()))
    return std::nullopt;
  if (!found.only_here.empty())
    return form_finding(
        form,
        fmt::format("lacks {} that the safetensors next to it have ({})",
                    plural(found.only_here.size(), "weight"), short_list_text(found.only_here)),
        found.only_here, {form.file});
  if (!found.only_there.empty())
    return form_finding(
        form,
        fmt::format("has {} that the safetensors next to it lack ({})",
                    plural(found.only_there.size(), "weight"), short_list_text(found.only_there)),
        found.only_there, {form.file});
  return std::nullopt;
}

Status compare_form_values(const Facts& facts, const SecondForm& form, const FormDifference& found,
                           std::vector<Finding>& findings) {
  CheckInput pair{facts.checkpoint, nullptr,           nullptr,           {}, {}, {}, {},
                  Depth::kData,     form.opened.get(), found.counterparts};
  pair.memory = facts.memory;
  SHW_TRY(const std::set<TensorId> equal, equal_to_reference(pair, facts.progress, facts.team));
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::string> differing;
  std::size_t compared = 0;
  for (TensorId tensor : each_tensor(facts)) {
    const auto there = found.counterparts[index_of(tensor)];
    if (!there || c.dtype(tensor) != form.opened->dtype(*there)) continue;
    ++compared;
    if (!equal.contains(tensor)) differing.emplace_back(c.fqn(tensor));
  }
  if (differing.empty()) return {};
  findings.push_back(form_finding(
      form,
      fmt::format("has different values from the safetensors next to it in {} of {} ({})",
                  human_count(differing.size()), plural(compared, "tensor"),
                  short_list_text(differing)),
      differing, {form.file}));
  return {};
}

Status find_second_form(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.checkpoint.directory() == nullptr) return {};
  find_second_parts(facts, findings);
  SHW_TRY(const SecondForm form, open_second_form(facts));
  if (form.opened == nullptr) return {};
  const FormDifference found = compare_forms_by_metadata(facts, *form.opened);
  if (is_cancelled(facts.progress)) return cancelled_error();
  if (auto finding = differs_by_metadata(facts, form, found)) {
    findings.push_back(std::move(*finding));
    return {};
  }
  if (!found.dtypes.empty()) {
    findings.push_back(
        form_finding(form,
                     fmt::format("holds {} of the safetensors next to it with a different dtype",
                                 plural(found.dtypes.size(), "tensor")),
                     found.dtypes, {form.file}));
    findings.back().severity = Severity::kInfo;
  }
  return facts.depth == Depth::kData ? compare_form_values(facts, form, found, findings) : Status{};
}

}  // namespace

const Rule kOtherForm = {
    .id = "other-form",
    .depth = Depth::kHeaders,
    .title = "One folder holds two different saves of the model",
    .teaches =
        "Many folders hold a model twice: as model.safetensors and as pytorch_model.bin. If both "
        "are there, transformers, vLLM and diffusers load the safetensors; older versions, scripts "
        "that call torch.load, and `use_safetensors=False` load the other. If training wrote one "
        "format into a folder that still had the other, two people who load the same folder run "
        "different models. Names, shapes and dtypes are compared; --data compares the values too. "
        "Tied tensors and buffers that one format leaves out do not count as a difference. A "
        "second set of numbered files (5 files where the index names 2) is recognised by file "
        "names alone.",
    .lesson = {.drawing = R"(
  model.safetensors       written today    what transformers loads
  pytorch_model.bin       of last week     what torch.load gives
)",
               .remedy = "Delete the files that are wrong, or rewrite them from the others: "
                         "`shardwright convert FOLDER --to torch --out NEW`."},
    .words = {.text = "holds a different model from the one that was opened"},
    .outcome = RunOutcome::kNone,
    .survives_rewriting = true,
    .run_shared = find_second_form,
};

}  // namespace shw
