#include "core/rules/unjudged.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/storage/own_index.h"
#include "core/formats/common/trainer_names.h"
#include "core/rules/reference/one_side_quantised.h"
#include "core/rules/rules.h"
#include "core/rules/undecoded.h"

namespace shw {
namespace {

using List = std::vector<Unjudged>;

constexpr const char* kExpectation = "--spec or --against";
constexpr const char* kLayout = "mesh and placements in --spec";

bool has_states(const Checkpoint& c, const CheckInput& input) {
  for (TensorId tensor : each_of(c.tensors(), input)) {
    if (parse_state_fqn(c.fqn(tensor))) return true;
  }
  return false;
}

// True if several ranks wrote: a single rank has no placement.
bool needs_placements(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  if (c.rank_count() > 1) return true;
  for (TensorId tensor : each_tensor(input)) {
    if (c.chunks(tensor).size() > 1) return true;
  }
  return false;
}

// Tells whether the ranks' positions on the spec's mesh are known. They are not if the mesh is too
// small, or if two orders of its axes were given and none was used.
class RanksOfMesh {
 public:
  explicit RanksOfMesh(const CheckInput& input) : input_(input) {}
  bool is_rank_order_known(const Mesh& mesh) {
    if (asked_ == nullptr || *asked_ != mesh) {  // thousands of tensors share a mesh
      asked_ = std::make_unique<const Mesh>(mesh);
      known_ = RankMap(input_, mesh).rank_of_writer(0).has_value();
    }
    return known_;
  }

 private:
  const CheckInput& input_;
  std::unique_ptr<const Mesh> asked_;
  bool known_ = false;
};

// Numbers of tensors without an expected entry, and without an expected layout.
struct Expected {
  std::size_t unnamed = 0, without_layout = 0;
};

Expected expected_of(const CheckInput& input) {
  Expected out;
  RanksOfMesh ranks(input);
  for (TensorId tensor : each_tensor(input)) {
    std::string_view fqn = input.checkpoint.fqn(tensor);
    const SpecEntry* layout = layout_of(input, fqn);
    if (input.untrusted_in_reference.contains(tensor))
      ++out.without_layout;
    else if (input.spec->find(fqn) == nullptr)
      ++out.unnamed;
    else if (!input.checkpoint.shape(tensor).empty() &&  // scalars have no layout
             (layout == nullptr || !split_axis_order(*layout) ||
              !ranks.is_rank_order_known(*layout->mesh)))
      ++out.without_layout;
  }
  return out;
}

void add_layout(const CheckInput& input, std::size_t tensors, List& out) {
  if (!needs_placements(input) || tensors == 0) return;
  bool all = tensors == input.checkpoint.tensor_count();
  std::string what = all ? "placements" : "placements of " + plural(tensors, "tensor");
  if (input.mesh != nullptr)
    out.push_back({std::move(what), kLayout});
  else if (!input.meshes_in_other_rank_order.empty())
    out.push_back({std::move(what), "--mesh, with its axes in the rank order of the save"});
  else
    out.push_back({std::move(what), std::string("--mesh, or ") + kLayout});
}

// If the rank order was inferred from the chunks, adds the question whether it is right: chunks
// that are all displaced in one way would prove a wrong order.
void add_rank_order_question(const CheckInput& input, List& out) {
  if (input.proved_mesh == nullptr) return;
  out.push_back({"the order of the ranks, taken from where tensors are",
                 "--mesh, with its axes in the rank order of the save"});
}

void add_row_order(const CheckInput& input, List& out) {
  if (input.reference == nullptr) {
    out.push_back({"row order inside the chunks", "--against"});
  } else if (input.depth < Depth::kData) {
    bool some = input.depth == Depth::kHeaders;
    out.push_back(
        {some ? "row order of weights that are neither fused nor square" : "row order", "--data"});
  }
}

// Adds the questions that --spec or --against would answer: names, shapes, dtypes, row order,
// layout, and tensors that were never saved.
void add_expectation_questions(const CheckInput& input, List& out) {
  const Checkpoint& c = input.checkpoint;
  if (input.spec == nullptr) {
    if (c.tensor_count() != 0) {
      out.push_back({"names, shapes and row order", kExpectation});
      // Another dtype of equal width would give other values from the same bytes.
      out.push_back({"dtypes", kExpectation});
    }
    out.push_back({"tensors and optimizer states that were never saved", kExpectation});
    add_layout(input, c.tensor_count(), out);
    return;
  }
  Expected expected = expected_of(input);
  bool by_reference = input.reference != nullptr;
  if (expected.unnamed != 0)
    out.push_back(
        {"names and shapes of " + plural(expected.unnamed, "tensor"),
         by_reference ? "a reference or a spec that has them" : "a spec that names them"});
  if (!input.untrusted_in_reference.empty())
    out.push_back({"shapes of " + plural(input.untrusted_in_reference.size(), "tensor") +
                       " for which the reference itself has findings",
                   "a reference without findings, or --spec"});
  if (by_reference && !has_states(c, input) && has_states(*input.reference, input))
    out.push_back({"optimizer states: there are none", "a spec that names them"});
  if (c.tensor_count() != 0) add_row_order(input, out);
  add_layout(input, expected.unnamed + expected.without_layout, out);
  add_rank_order_question(input, out);
}

// True if another rank wrote the chunk than the spec says.
bool is_written_by_other_rank(const CheckInput& input, TensorId tensor, const SpecEntry& entry,
                              const RankMap& ranks) {
  const Checkpoint& c = input.checkpoint;
  const auto order = split_axis_order(entry);
  if (!order) return false;
  const SplitLayout cutter(entry, *order);
  for (ChunkId chunk : c.chunks(tensor)) {
    auto writer = c.writer(chunk);
    auto rank = writer ? ranks.rank_of_writer(*writer) : std::nullopt;
    if (!rank || volume(c.sizes(chunk)) == 0) continue;
    if (!cutter.produces_box(*rank, c.offsets(chunk), c.sizes(chunk))) return true;
  }
  return false;
}

// A spec of the loading mesh does not tell where chunks belong; one of the saving mesh contradicts
// these. Subjects of findings are not repeated.
void add_chunks_of_other_ranks(const CheckInput& input, const std::vector<Finding>& findings,
                               List& out) {
  if (input.spec == nullptr) return;
  const Checkpoint& c = input.checkpoint;
  std::unordered_set<std::string_view> found;
  for (const Finding& finding : findings) {
    if (finding.severity > Severity::kInfo)
      found.insert(finding.subjects.begin(), finding.subjects.end());
  }
  std::map<std::string, RankMap> ranks;
  std::size_t otherwise = 0;
  for (TensorId tensor : each_tensor(input)) {
    const SpecEntry* entry = layout_of(input, c.fqn(tensor));
    if (entry == nullptr || c.chunks(tensor).size() < 2 || !c.writers_are_owners(tensor) ||
        !same(c.shape(tensor), entry->shape) || input.equal_to_reference.contains(tensor) ||
        found.contains(c.fqn(tensor)))
      continue;
    auto of_mesh = ranks.find(to_text(*entry->mesh));
    if (of_mesh == ranks.end())
      of_mesh = ranks.emplace(to_text(*entry->mesh), RankMap(input, *entry->mesh)).first;
    otherwise += is_written_by_other_rank(input, tensor, *entry, of_mesh->second) ? 1 : 0;
  }
  if (otherwise != 0)
    out.push_back({"positions of the chunks of " + plural(otherwise, "tensor") +
                       ", which other ranks wrote than the spec expects",
                   "--against a copy of the same step"});
}

// Adds data that was not read or could not be compared.
void add_bytes(const CheckInput& input, List& out) {
  const Checkpoint& c = input.checkpoint;
  std::size_t items = std::size_t{c.chunk_count()} + c.objects().size();
  if (items == 0) return;
  if (c.directory() == nullptr) {
    out.push_back({"files, headers and values", "the folder with the data files"});
    return;
  }
  const Codec* codec = c.format().codec;
  bool raw = codec != nullptr && codec->is_without_header;
  if (input.depth == Depth::kMetadata && !raw)
    out.push_back({"the shape and dtype in each item's header", "--depth headers"});
  if (input.depth < Depth::kData)
    out.push_back({raw ? "values" : "values and checksums", "--data"});
  // Counts items without a checksum of their own whose file has none either.
  auto is_checked = [&](const Result<DataCheck>& check) {
    return check && check->crc != DataCheck::Crc::kAbsent;
  };
  std::uint64_t without = 0;
  for (std::uint32_t i = 0; i < input.data.size(); ++i) {
    const Result<DataCheck> check = input.data[i];
    if (!check || is_checked(check)) continue;
    auto item = c.item(ChunkId{i});
    const bool has_file = item && index_of(item->file) < input.file_data.size();
    without += !has_file || !is_checked(input.file_data[index_of(item->file)]);
  }
  if (without != 0)
    out.push_back({.what = "whether the bytes of " + plural(without, "item") +
                           " are unchanged since the save",
                   .needs = "checksums, which these items do not have",
                   .is_unproved_bytes = true});
  if (!c.objects().empty())
    out.push_back({"contents of " + plural(c.objects().size(), "object") + " next to the tensors",
                   "the program that wrote them"});
}

// True for "rank_3.NAME" and "mp_rank_01_000.NAME": a rank's part that no rule joins with the
// others.
bool is_part_of_rank(std::string_view fqn) {
  if (fqn.starts_with("mp_")) fqn.remove_prefix(3);
  constexpr std::string_view kRank = "rank_";
  if (!fqn.starts_with(kRank)) return false;
  fqn.remove_prefix(kRank.size());
  const std::size_t end = fqn.find_first_not_of("0123456789_");
  return end != fqn.npos && end != 0 && fqn[end] == '.';
}

// Adds tensors that are one rank's part of a larger tensor: their chunks can be complete while the
// other ranks' parts are missing.
void add_rank_parts(const CheckInput& input, List& out) {
  std::size_t parts = 0;
  for (TensorId tensor : each_tensor(input))
    parts += is_part_of_rank(input.checkpoint.fqn(tensor)) ? 1 : 0;
  if (parts != 0)
    out.push_back(
        {"whether " + plural(parts, "tensor") +
             " of single ranks (rank_0.NAME) make whole ones, and whether a rank is missing",
         "the program that wrote them"});
}

// Adds entries of other ranks, which may differ from the lowest rank's if each rank has an index.
void add_own_entries(const CheckInput& input, List& out) {
  const Checkpoint& c = input.checkpoint;
  if (c.format().traits.index_of_rank == nullptr || c.directory() == nullptr) return;
  std::size_t entries = input.own_entries.not_compared, tensors = 0;
  if (input.depth == Depth::kMetadata) {
    for (const NonTensorEntry& object : c.objects())
      entries += object.of_other_ranks.empty() ? 0 : 1;
  }
  auto has_copies = [&](TensorId tensor) {
    for (ChunkId chunk : c.chunks(tensor)) {
      if (!c.replicas(chunk).empty()) return true;
    }
    return false;
  };
  for (TensorId tensor : each_tensor(input)) tensors += has_copies(tensor) ? 1 : 0;
  const char* alike = " that several ranks saved are equal";
  if (entries != 0)
    out.push_back({"whether " + plural(entries, "object") + alike,
                   input.depth == Depth::kMetadata ? "--depth headers" : "--data"});
  if (tensors != 0 && input.depth < Depth::kData)
    out.push_back({"whether copies of " + plural(tensors, "tensor") + alike, "--data"});
}

// Adds optimizer states that were compared only partly.
void add_values(const OptimizerValues& looks, List& out) {
  if (looks.looked_at >= looks.elements) return;
  const double left =
      100 - 100 * static_cast<double>(looks.looked_at) / static_cast<double>(looks.elements);
  const int percent = std::clamp(static_cast<int>(std::ceil(left)), 1, looks.looked_at ? 99 : 100);
  out.push_back(
      {"whether moments and masters match in " + std::to_string(percent) + " % of their elements",
       "--against a copy of the same step"});
}

// Adds that files may be from different saves: data files do not record their save, so a file of an
// earlier step with the same layout passes all checks except hashes or a comparison with a copy.
void add_mixed_saves_question(const CheckInput& input, List& out) {
  const Checkpoint& c = input.checkpoint;
  if (c.directory() == nullptr || !c.format().traits.index_comes_last) return;
  const auto in_use = std::count_if(c.files().begin(), c.files().end(), [](const FileRow& file) {
    return file.referenced && file.kind == EntryKind::kFile;
  });
  const bool is_copy = input.reference != nullptr && input.depth == Depth::kData &&
                       input.equal_to_reference.size() == c.tensor_count();
  if (in_use < 2 || input.integrity != nullptr || is_copy) return;
  out.push_back({"whether all data files come from one save",
                 std::string(kIntegrityFile) + ", or --against a copy of the same step"});
}

// Adds weights whose config.json was not or only partly evaluated.
void add_config(const Facts& facts, List& out) {
  if (!facts.config_fit) return;
  const ConfigFit& fit = *facts.config_fit;
  const std::string what = "whether the weights are those of config.json";
  if (fit.unusable)
    out.push_back({what, "a readable config.json: " + fit.unusable->message});
  else if (!fit.unknown_model.empty() && facts.spec == nullptr)
    out.push_back({what, "--spec or --against: what it says of a \"" + fit.unknown_model +
                             "\" of this class and these names is not known in full"});
  if (fit.unusable || facts.depth == Depth::kData) return;
  if (const auto tied = unmet_config_claims_of_folder(facts.checkpoint, facts.progress).tied)
    out.push_back({"whether " + std::string(facts.checkpoint.fqn(tied->first)) +
                       " and the embedding that config.json ties it to are equal",
                   "--data"});
}

// Adds files that were not verified although a list of hashes exists.
void add_integrity(const CheckInput& input, List& out) {
  if (input.integrity == nullptr) return;
  const Integrity& integrity = *input.integrity;
  const std::string list = kIntegrityFile;
  if (integrity.unusable) {
    out.push_back({"whether files are those that " + list + " names",
                   "a readable list: " + integrity.unusable->message});
    return;
  }
  if (integrity.unhashed_file_count != 0)
    out.push_back({"whether " + plural(integrity.unhashed_file_count, "file") + " are those that " +
                       list + " was made of",
                   "--data"});
  if (!integrity.unread.empty())
    out.push_back({"whether " + short_list_text(integrity.unread) + " is as in " + list,
                   "a disk that can be read without errors"});
  if (!integrity.unlisted.empty())
    out.push_back(
        {"whether " + short_list_text(integrity.unlisted) + " is unchanged since the save",
         "a hash, which " + list + " does not have"});
}

bool may_contain_state(std::string_view path) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".gguf", ".npz", ".onnx"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// Files that Megatron keeps next to its chunks and that are read with them.
bool is_companion(std::string_view path) {
  return path == "common.pt";
}

// Adds unreferenced and unopened files in the folder, of the same run or with other weights.
// Subfolders are listed by name. A trainer's files at the top are those of side_files.h.
void add_adjacent_files(const CheckInput& input, List& out) {
  const Checkpoint& c = input.checkpoint;
  if (c.directory() == nullptr) return;
  std::set<std::string> others;
  const auto checkpoints = folders_with_own_index(c);
  others.insert(checkpoints.begin(), checkpoints.end());
  for (const FileRow& file : c.files()) {
    if (file.referenced || file.kind != EntryKind::kFile) continue;
    const TrainerFile kind = trainer_file(file.path);
    const std::size_t slash = file.path.find('/');
    if (kind != TrainerFile::kNone && slash == std::string::npos) continue;
    if (kind != TrainerFile::kNone || (may_contain_state(file.path) && !is_companion(file.path)))
      others.insert(slash == std::string::npos ? file.path : file.path.substr(0, slash + 1));
  }
  // An OpenVINO model opens by its layers: "a.xml" for "a.bin".
  std::set<std::string> layers;
  for (const FileRow& file : c.files()) {
    if (!file.path.ends_with(".xml")) continue;
    const std::string elements = file.path.substr(0, file.path.size() - 4) + ".bin";
    if (others.erase(elements) > 0) layers.insert(file.path);
  }
  others.merge(layers);
  const std::vector<std::string> names(others.begin(), others.end());
  if (!names.empty())
    out.push_back({short_list_text(names, 8) + " in the same folder", "opening each by its name"});
}

void add_hints_of_findings(const CheckInput& input, const std::vector<Finding>& findings,
                           List& out) {
  for (const Finding& finding : findings) {
    auto explained = [](const auto& one) { return one.first == "explained_by"; };
    if (finding.severity != Severity::kInfo ||
        std::any_of(finding.evidence.begin(), finding.evidence.end(), explained))
      continue;
    const RuleHint& hint = rule_of(finding).hint;
    bool settled = (input.spec != nullptr && input.untrusted_in_reference.empty() &&
                    !hint.remains_open_with_spec) ||
                   (input.depth == Depth::kData && !hint.remains_open_at_data);
    if (!hint.what.empty() && !settled)
      out.push_back({std::string(hint.what), std::string(hint.needs), finding.rule});
  }
}

// Adds questions left open by other findings.
void add_questions_of_findings(const std::vector<Finding>& findings, List& out) {
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kInfo) continue;
    if (finding.rule == kNotLookedAt.id)
      out.push_back({"the unreadable part of " + short_list_text(finding.subjects),
                     "what the finding not-looked-at says"});
    if (finding.rule == kDiffersFromReference.id) {
      const std::string_view key =
          finding.evidence.empty() ? std::string_view() : finding.evidence.front().first;
      const std::string tensors = plural(finding.subjects.size(), "tensor");
      if (key == kQuantisedSide)
        out.push_back({"shapes and values of " + tensors + " that only one side quantises",
                       "the quantised side as its folder's /@dequantised"});
      else if (key == kNotCompared)
        out.push_back({"row order of " + tensors + " that could not be compared with the reference",
                       "a readable reference"});
      else
        out.push_back({"row order of " + tensors + " whose values differ from the reference",
                       "--against a copy of the same step"});
    }
    if (finding.rule == kUnsafePickle.id && finding.evidence.empty())
      out.push_back({"what " + short_list_text(finding.subjects) + " would import",
                     "what the finding unsafe-pickle says"});
  }
}

}  // namespace

std::vector<Unjudged> unjudged_of(const Facts& facts, const std::vector<Finding>& findings) {
  List out;
  add_hints_of_findings(facts, findings, out);
  add_expectation_questions(facts, out);
  add_chunks_of_other_ranks(facts, findings, out);
  add_bytes(facts, out);
  add_own_entries(facts, out);
  add_rank_parts(facts, out);
  add_values(facts.looks, out);
  add_mixed_saves_question(facts, out);
  add_integrity(facts, out);
  add_adjacent_files(facts, out);
  add_config(facts, out);
  for (std::string& what : undecoded_weights_texts(facts))
    out.push_back({std::move(what), "the program that quantised them"});
  add_questions_of_findings(findings, out);
  return out;
}

std::vector<UnjudgedGroup> group_by_need(std::span<const Unjudged> unjudged) {
  std::vector<UnjudgedGroup> groups;
  for (const Unjudged& one : unjudged) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const UnjudgedGroup& other) { return other.needs == one.needs; });
    if (group == groups.end()) group = groups.insert(groups.end(), {one.needs, {}});
    const auto& whats = group->whats;
    if (std::find(whats.begin(), whats.end(), one.what) == whats.end())
      group->whats.push_back(one.what);
  }
  return groups;
}

std::string to_text(std::span<const Unjudged> unjudged) {
  std::string text;
  for (const UnjudgedGroup& group : group_by_need(unjudged)) {
    std::string whats;
    for (const std::string& what : group.whats) whats += (whats.empty() ? "" : ", ") + what;
    text += (text.empty() ? "" : "; ") + whats + " (" + group.needs + ")";
  }
  return text;
}

bool has_unproved_bytes(std::span<const Unjudged> unjudged) {
  return std::any_of(unjudged.begin(), unjudged.end(),
                     [](const Unjudged& one) { return one.is_unproved_bytes; });
}

std::vector<std::string> rules_with_hints(std::span<const Unjudged> unjudged) {
  std::vector<std::string> rules;
  for (const Unjudged& one : unjudged) {
    if (!one.hint.empty() && std::find(rules.begin(), rules.end(), one.hint) == rules.end())
      rules.push_back(one.hint);
  }
  return rules;
}

}  // namespace shw
