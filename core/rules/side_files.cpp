#include "core/rules/side_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/json.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/states/adjacent_optimizer.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/values/quant_numbers.h"
#include "core/formats/common/python_json.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/folder_kind.h"
#include "core/formats/open.h"
#include "core/formats/single_file_directory.h"
#include "core/io/read_whole.h"
#include "core/rules/half_saved_trainer.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOpened = 32;  // one random state per rank is a file per rank

struct SideFile {
  std::string path;
  bool is_optimizer = false;
  bool is_of_rank = false;  // a rank's part of an optimizer: reported only if damaged
  bool is_model = false;    // weights that were not opened: an older step, another component
  std::uint64_t size = 0;
};

std::vector<SideFile> side_files_of(const Checkpoint& checkpoint) {
  std::vector<SideFile> files;
  for (const FileRow& file : checkpoint.files()) {
    const TrainerFile kind = trainer_file(file.path);
    const bool is_of_rank = is_optimizer_of_rank(file.path);
    const bool is_model =
        kind == TrainerFile::kNone && !is_of_rank && is_file_of_checkpoint(file.path);
    if (file.referenced || !file.safe || file.kind != EntryKind::kFile || !is_at_top(file.path) ||
        (kind == TrainerFile::kNone && !is_of_rank && !is_model))
      continue;
    files.push_back({file.path, kind == TrainerFile::kOptimizer, is_of_rank, is_model, file.size});
  }
  // If there are many files, those that a resumed run reads are opened first.
  std::stable_partition(files.begin(), files.end(),
                        [](const SideFile& file) { return !file.is_model; });
  return files;
}

enum class FirstBytesKind { kZipArchive, kNotPickle, kOtherKind };

// True for the first two bytes of a pickle: protocol 2 and later begin with their number, older
// ones with a mark, an empty container or a class.
bool begins_as_pickle(char first, char second) {
  constexpr char kProtocol = '\x80';
  if (first == kProtocol) return second >= 2 && second <= 5;
  constexpr std::string_view kOldOpcodes = "(]})c";
  return kOldOpcodes.find(first) != kOldOpcodes.npos;
}

// Classifies the first bytes. A pickle without an archive has no end that could be missing. No
// pickle begins with zeros, like a page, or like a pointer of git-lfs.
FirstBytesKind first_bytes_kind_of(const Directory& directory, const std::string& path) {
  auto source = directory.open(path);
  if (!source || (*source)->size() < 2) return FirstBytesKind::kOtherKind;
  const auto bytes = read_bytes(**source, 0, 2);
  if (!bytes) return FirstBytesKind::kOtherKind;
  const std::pair<char, char> begin(static_cast<char>((*bytes)[0]), static_cast<char>((*bytes)[1]));
  if (begin == std::pair('P', 'K')) return FirstBytesKind::kZipArchive;
  const bool is_none = begin == std::pair('\0', '\0') || begin == std::pair('<', '!') ||
                       begin == std::pair('v', 'e');
  // Under other names joblib and others write pickles that are compressed.
  const bool is_of_torch =
      path.ends_with(".pt") || path.ends_with(".pth") || path.ends_with(".bin");
  const bool is_other = is_of_torch && !begins_as_pickle(begin.first, begin.second);
  return is_none || is_other ? FirstBytesKind::kNotPickle : FirstBytesKind::kOtherKind;
}

// True if an item ends beyond the end of its file: the file was cut off.
bool has_item_beyond_its_file(const Checkpoint& checkpoint) {
  for (ChunkId chunk : checkpoint.chunks()) {
    const auto place = checkpoint.item(chunk);
    if (!place || place->file == FileId::kNone || place->offset < 0 || place->length < 0) continue;
    const std::uint64_t size = checkpoint.file(place->file).size;
    const auto offset = static_cast<std::uint64_t>(place->offset);
    if (offset > size || static_cast<std::uint64_t>(place->length) > size - offset) return true;
  }
  return false;
}

Finding side_finding(const std::string& path, Severity severity, std::string cause) {
  Finding finding{.rule = std::string(kSideFile.id), .severity = severity, .subjects = {path}};
  finding.cause = std::move(cause);
  return finding;
}

Finding damaged_side_file(const SideFile& file, const Error& error) {
  Finding finding =
      file.is_model
          ? side_finding(file.path, Severity::kWarning,
                         fmt::format("{} cannot be loaded: {}. The tensors that were opened are in "
                                     "other files and do not need it.",
                                     file.path, error.message))
          : side_finding(file.path, Severity::kError,
                         fmt::format("{} next to the weights cannot be loaded: {}. The weights "
                                     "load without it, but training cannot resume without it.",
                                     file.path, error.message));
  if (error.place.offset)
    finding.evidence = {{"offset", static_cast<std::int64_t>(*error.place.offset)}};
  return finding;
}

Finding unread_side_file(const SideFile& file, const Error& error) {
  Finding finding{.rule = std::string(kNotLookedAt.id), .subjects = {file.path}};
  finding.severity = Severity::kInfo;
  finding.cause = fmt::format(
      "{} next to the weights was not read: {}. It is not known whether it is complete.", file.path,
      error.message);
  return finding;
}

// Wraps a finding about the file alone. The checkpoint lacks the file's tensors, so the finding has
// no remedy.
Finding finding_of_side_file(const SideFile& file, const Finding& inner) {
  Finding finding = side_finding(file.path, inner.severity, "In " + file.path + ": " + inner.cause);
  finding.evidence = {{"rule", inner.rule}, {"names", inner.subjects}};
  return finding;
}

// Reports an optimizer in which no matrix has the shape of a weight. Adapters and a new head have
// other shapes too, but far fewer elements and matrices than the weights, or two matrices for each.
// Parts of single ranks are reported elsewhere.
std::optional<Finding> optimizer_of_other_model_finding(const Checkpoint& checkpoint,
                                                        const AdjacentOptimizer& optimizer) {
  constexpr std::size_t kMinMatrices = 3;
  const auto states = shapes_of(optimizer);
  if (!states || infer_sharded_states(checkpoint, *states) ||
      infer_flat_states(checkpoint, *states))
    return std::nullopt;
  std::set<Extents> weights;
  std::size_t matrices_of_weights = 0;
  double elements_of_weights = 0, elements = 0;
  for (TensorId tensor : checkpoint.tensors()) {
    weights.insert(copy_of(checkpoint.shape(tensor)));
    matrices_of_weights += checkpoint.shape(tensor).size() < 2 ? 0 : 1;
    elements_of_weights += static_cast<double>(volume(checkpoint.shape(tensor)).value_or(0));
  }
  std::vector<Extents> matrices;
  for (const Extents& shape : states->shapes) {
    elements += static_cast<double>(volume(shape).value_or(0));
    if (shape.size() < 2) continue;
    if (weights.contains(shape)) return std::nullopt;
    matrices.push_back(shape);
  }
  const bool is_of_few =
      2 * elements < elements_of_weights && 10 * matrices.size() < 9 * matrices_of_weights;
  if (matrices.size() < kMinMatrices || matrices.size() > matrices_of_weights || is_of_few)
    return std::nullopt;
  return side_finding(
      optimizer.path, Severity::kWarning,
      fmt::format("The states in {} belong to another model: none of its {} matrices (the first is "
                  "{}) has the shape of any of the {} tensors here. Either the file or the weights "
                  "were copied from another run.",
                  optimizer.path, matrices.size(), to_text(matrices.front()),
                  checkpoint.tensor_count()));
}

// The step in trainer_state.json of transformers' Trainer; 0 without that file.
std::int64_t step_of_trainer(const Directory& directory) {
  constexpr std::uint64_t kMaxTrainerState = std::uint64_t{64} << 20;
  const Entry entry = directory.stat("trainer_state.json");
  if (entry.kind != EntryKind::kFile || entry.size > kMaxTrainerState) return 0;
  auto source = directory.open(entry.path);
  auto text = source ? read_whole_text(**source, kMaxTrainerState) : Result<std::string>("");
  if (!text) return 0;
  const auto parsed = parse_json<nlohmann::json>(replace_non_json_floats(*text));
  const auto step = parsed.problem.empty() && parsed.tree.is_object()
                        ? parsed.tree.find("global_step")
                        : parsed.tree.end();
  return step != parsed.tree.end() && step->is_number_integer() ? step->get<std::int64_t>() : 0;
}

// The step in the name of a folder of transformers' Trainer, "checkpoint-400"; 0 for other names.
std::int64_t step_of_folder(std::string_view name) {
  constexpr std::string_view kWord = "checkpoint-";
  name.remove_prefix(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
  if (!name.starts_with(kWord)) return 0;
  name.remove_prefix(kWord.size());
  return parse_number<std::int64_t>(name).value_or(0);
}

// Reports a trainer_state.json of another step than the folder's: the Trainer goes on from its step
// with the data that follow it.
std::optional<Finding> trainer_of_other_step_finding(const Directory& directory) {
  const std::int64_t named = step_of_folder(directory.name()), said = step_of_trainer(directory);
  if (named == 0 || said == 0 || named == said) return std::nullopt;
  Finding finding =
      side_finding("trainer_state.json", Severity::kWarning,
                   fmt::format("trainer_state.json says step {}, and the folder is named for step "
                               "{}. The file comes from another step, or the folder was renamed. A "
                               "resumed run takes its step and its data position from the file.",
                               said, named));
  finding.evidence = {{"step", said}, {"named", named}};
  return finding;
}

// Parameters in Adam's groups, and those without states.
struct ListedParameters {
  std::size_t listed = 0;
  std::vector<std::string> lacking;
};

ListedParameters parameters_in_groups(const Checkpoint& opened) {
  ListedParameters out;
  for (const SavedOptimizer& optimizer : read_optimizer_settings(opened).optimizers) {
    for (const ParamGroup& group : optimizer.groups) {
      if (!betas_of(group)) continue;
      out.listed += group.params.size();
      for (const std::string& param : group.params) {
        if (!optimizer.keys.contains(param)) out.lacking.push_back(param);
      }
    }
  }
  return out;
}

// Reports parameters without moments: Adam keeps two per parameter from its first step on. A save
// before that looks the same, so it is only an info if the step is unknown. A parameter that never
// had a gradient has no moments either: one or two per model (a mask's embedding, a pooler).
std::optional<Finding> without_states(const SideFile& file, const Checkpoint& opened,
                                      std::int64_t step) {
  constexpr std::size_t kShare = 20;
  const auto [listed, lacking] = parameters_in_groups(opened);
  if (lacking.empty()) return std::nullopt;
  const bool none = lacking.size() == listed;
  if (none && opened.tensor_count() > 0) return std::nullopt;
  std::string why = "This is right only if they never had a gradient (frozen parameters).";
  if (none) {
    why = step > 0 ? fmt::format("trainer_state.json says step {}.", step)
                   : "A checkpoint saved before the first step looks the same.";
  }
  // AdamW(model.parameters()) lists frozen parameters too, for example if only a head is trained.
  // Trainer lists only trained ones.
  const bool may_be_frozen = step == 0 && 2 * lacking.size() >= listed;
  const bool is_told = none ? step > 0 : lacking.size() * kShare >= listed && !may_be_frozen;
  Finding finding =
      side_finding(file.path, is_told ? Severity::kWarning : Severity::kInfo,
                   fmt::format("The groups in {} list {}, and it holds no state of {}: a resumed "
                               "run starts their moments from zero. {}",
                               file.path, plural(listed, "parameter"),
                               none ? std::string("any")
                                    : fmt::format("{} of them ({})", human_count(lacking.size()),
                                                  short_list_text(lacking)),
                               why));
  finding.evidence = {{"parameters", capped(lacking)}, {"count", count_of(lacking.size())}};
  return finding;
}

// The most steps that one of the first states of an optimizer has taken; nullopt if none counts.
std::optional<std::int64_t> steps_of_optimizer(const Checkpoint& opened) {
  constexpr std::size_t kMaxRead = 32;
  constexpr float kMaxExact = 1 << 24;
  std::optional<std::int64_t> most;
  std::size_t read = 0;
  for (TensorId tensor : opened.tensors()) {
    if (!opened.fqn(tensor).ends_with(".step") || volume(opened.shape(tensor)) != 1) continue;
    if (++read > kMaxRead) break;
    const auto values = read_box_floats(opened, tensor, whole(copy_of(opened.shape(tensor))));
    if (!values || values->size() != 1 || !(values->front() >= 0 && values->front() < kMaxExact))
      return std::nullopt;
    most = std::max(most.value_or(0), static_cast<std::int64_t>(values->front()));
  }
  return most;
}

// Only an info: an optimizer that was started anew counts from zero. Trainer skips a few steps
// where gradients overflow.
std::optional<Finding> optimizer_of_other_step_finding(const SideFile& file,
                                                       const Checkpoint& opened,
                                                       std::int64_t step) {
  const auto taken = step == 0 ? std::nullopt : steps_of_optimizer(opened);
  if (!taken || (*taken <= step && *taken >= step - step / 10)) return std::nullopt;
  Finding finding = side_finding(
      file.path, Severity::kInfo,
      fmt::format("The states in {} have taken {}, and trainer_state.json says step {}: they come "
                  "from another save, or were reset.",
                  file.path, plural(static_cast<std::uint64_t>(*taken), "step"), step));
  finding.evidence = {{"step", step}};
  return finding;
}

class SideFileChecks {
 public:
  SideFileChecks(const Checkpoint& checkpoint, Depth depth, std::span<const Finding> known,
                 const CheckSingleCheckpoint& check_alone, Progress* progress)
      : checkpoint_(checkpoint),
        depth_(depth),
        known_(known),
        check_alone_(check_alone),
        progress_(progress) {}

  Result<SideFiles> run() {
    for (const SideFile& file : side_files_of(checkpoint_)) {
      if (is_cancelled(progress_)) return cancelled_error();
      SHW_CHECK(check_file(file));
    }
    if (auto finding = half_saved_trainer_finding(checkpoint_))
      out_.findings.push_back(std::move(*finding));
    if (auto finding = trainer_of_other_step_finding(*checkpoint_.directory()))
      out_.findings.push_back(std::move(*finding));
    if (depth_ != Depth::kMetadata) compare_with_weights();
    add_unjudged();
    return std::move(out_);
  }

 private:
  Status check_file(const SideFile& file) {
    if (depth_ == Depth::kMetadata || opened_ == kMaxOpened) {
      if (!file.is_of_rank && !file.is_model)
        (file.is_optimizer ? unread_ : others_).push_back(file.path);
      return {};
    }
    ++opened_;
    auto alone = std::make_shared<SingleFileDirectory>(checkpoint_.directory(), file.path);
    auto opened = file.size == 0 ? OpenedCheckpoint(fail(ErrorKind::kDamaged, "it is empty"))
                                 : open_checkpoint(alone, progress_);
    if (!opened && opened.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(opened).error());
    const FirstBytesKind begin = first_bytes_kind_of(*checkpoint_.directory(), file.path);
    const bool has_an_end = begin == FirstBytesKind::kZipArchive ||
                            (file.is_model ? file.path.ends_with(".safetensors") : file.size == 0);
    const bool is_no_pickle = begin == FirstBytesKind::kNotPickle && !file.is_model;
    if (!opened && opened.error().kind == ErrorKind::kIo) {
      out_.findings.push_back(unread_side_file(file, opened.error()));
      return {};
    }
    if (!opened && is_no_pickle && opened.error().kind == ErrorKind::kUnsupported)
      opened.error() = {ErrorKind::kDamaged, "it does not begin like a torch.save or pickle file"};
    if (!opened && (is_no_pickle || (opened.error().kind == ErrorKind::kDamaged && has_an_end)))
      out_.findings.push_back(damaged_side_file(file, opened.error()));
    else if (file.is_optimizer && (!opened || depth_ != Depth::kData))
      unread_.push_back(file.path);
    if (!file.is_optimizer && !file.is_of_rank && !file.is_model) others_.push_back(file.path);
    if (!opened) return {};
    if (file.is_optimizer) return check_optimizer(file, **opened);
    if (file.is_model) {
      if (has_item_beyond_its_file(**opened))
        out_.findings.push_back(damaged_side_file(
            file, {ErrorKind::kDamaged, "it ends before the tensors that its header names"}));
      return {};
    }
    for (const Finding& finding : (*opened)->opening_findings()) {
      if (finding.rule == kBadRecord.id && finding.severity == Severity::kError)
        out_.findings.push_back(finding_of_side_file(file, finding));
    }
    return {};
  }

  Status check_optimizer(const SideFile& file, const Checkpoint& opened) {
    SHW_TRY(std::vector<Finding> findings, check_alone_(opened));
    for (const Finding& finding : findings) {
      // An optimizer has no weights, so their absence is not reported.
      const bool is_told = finding.rule != kEmptyTensors.id && finding.severity > Severity::kInfo;
      if (is_told && !is_known(file, finding))
        out_.findings.push_back(finding_of_side_file(file, finding));
    }
    if (auto finding = without_states(file, opened, step_of_trainer(*checkpoint_.directory())))
      out_.findings.push_back(std::move(*finding));
    if (depth_ == Depth::kData) {
      read_.push_back(file.path);
      if (auto finding = optimizer_of_other_step_finding(file, opened,
                                                         step_of_trainer(*checkpoint_.directory())))
        out_.findings.push_back(std::move(*finding));
    }
    return {};
  }

  void compare_with_weights() {
    for (const AdjacentOptimizer& optimizer : adjacent_optimizers(checkpoint_)) {
      if (auto finding = optimizer_of_other_model_finding(checkpoint_, optimizer))
        out_.findings.push_back(std::move(*finding));
    }
  }

  // True if a rule has already compared the file with the weights and reported more.
  bool is_known(const SideFile& file, const Finding& finding) const {
    return std::any_of(known_.begin(), known_.end(), [&](const Finding& one) {
      return one.rule == finding.rule && one.subjects == std::vector<std::string>{file.path};
    });
  }

  void add_unjudged() {
    if (!unread_.empty())
      out_.unjudged.push_back({(depth_ != Depth::kMetadata ? "values of " : "") +
                                   short_list_text(unread_) + " next to the weights",
                               depth_ != Depth::kData ? "--data" : "the program that wrote them"});
    if (!others_.empty())
      out_.unjudged.push_back(
          {"contents of " + short_list_text(others_, 8) + " next to the weights",
           "the program that wrote them"});
    if (!read_.empty())
      out_.unjudged.push_back(
          {"which weights the states of " + short_list_text(read_) + " belong to",
           "a step of the run"});
  }

  const Checkpoint& checkpoint_;
  Depth depth_;
  std::span<const Finding> known_;
  const CheckSingleCheckpoint& check_alone_;
  Progress* progress_;
  SideFiles out_;
  std::vector<std::string> unread_, read_, others_;
  std::size_t opened_ = 0;
};

}  // namespace

Result<SideFiles> check_side_files(const Checkpoint& checkpoint, Depth depth,
                                   std::span<const Finding> known,
                                   const CheckSingleCheckpoint& check_alone, Progress* progress) {
  if (checkpoint.directory() == nullptr) return SideFiles{};
  return SideFileChecks(checkpoint, depth, known, check_alone, progress).run();
}

const Rule kSideFile = {
    .id = "side-file",
    .depth = Depth::kHeaders,
    .title = "A file next to the weights is damaged, or from another save",
    .teaches =
        "A trainer keeps optimizer states (optimizer.pt, optimizer.bin), scheduler and random "
        "states in separate files next to the weights. Loading the model does not need them. A "
        "resumed run fails at a damaged file, or continues with states that do not belong to its "
        "weights. transformers' Trainer writes trainer_state.json last: without it the save did "
        "not finish, and no run resumes from it. Each file is opened, and --data reads its "
        "contents.",
    .lesson =
        {.drawing = R"(
  checkpoint-400/model.safetensors   whole
  checkpoint-400/optimizer.pt        half of it: the disk was full
  checkpoint-400/scheduler.pt        whole
)",
         .remedy =
             "Take the file from another copy of the same step, or resume from an earlier step. If "
             "only the weights are needed, `shardwright convert --weights-only` leaves it out."},
    .words = {.text = "training cannot resume from it",
              .as_warning = "training resumes with wrong states"},
    .outcome = RunOutcome::kNone,
    .survives_rewriting = true,  // does not change tensors of the result
};

}  // namespace shw
