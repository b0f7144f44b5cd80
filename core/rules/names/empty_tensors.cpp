// Checkpoints without tensors, without weights, or with weights without elements.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/rules/explained.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool is_empty_tensor(const Checkpoint& c, TensorId tensor) {
  return volume(c.shape(tensor)) == 0;
}

bool is_number_of_weights(Dtype dtype) {
  return dtype != Dtype::kBool && dtype != Dtype::kInt64 && dtype != Dtype::kUint64 &&
         dtype != Dtype::kInt16 && dtype != Dtype::kUint16;
}

// Steps and counters are single numbers, generator states are vectors of bytes or 32-bit words.
// Anything else may be the file's purpose.
bool could_be_weight(const Checkpoint& c, TensorId tensor) {
  const Dtype dtype = c.dtype(tensor);
  const bool is_bytes = dtype == Dtype::kUint8 || dtype == Dtype::kInt8 || dtype == Dtype::kInt32 ||
                        dtype == Dtype::kUint32;
  if (is_number_of_weights(dtype)) return !is_bytes || c.shape(tensor).size() >= 2;
  return volume(c.shape(tensor)).value_or(0) > 1;
}

Finding empty_tensors_finding(std::string cause) {
  Finding finding{.rule = std::string(kEmptyTensors.id), .severity = Severity::kWarning};
  finding.cause = std::move(cause);
  return finding;
}

std::vector<std::string> files_read(const Checkpoint& c) {
  std::vector<std::string> files;
  for (const FileRow& file : c.files()) {
    if (file.referenced) files.push_back(file.path);
  }
  return files;
}

// Opening findings already explain why there are no tensors.
bool is_explained_by_opening(const Checkpoint& c) {
  const auto& opening = c.opening_findings();
  return std::any_of(opening.begin(), opening.end(), [](const Finding& finding) {
    const Rule* rule = find_rule(finding.rule);
    return finding.severity != Severity::kInfo || (rule != nullptr && rule->leaves_undecided);
  });
}

void report_no_tensor(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (is_explained_by_opening(c)) return;
  const std::size_t entries = c.objects().size();
  std::string cause = "The checkpoint holds no tensor";
  cause += entries == 0 ? ", so there is nothing for a model to load."
                        : fmt::format(": {} that {} not, so no weight can be loaded from it.",
                                      entries == 1 ? "1 entry" : human_count(entries) + " entries",
                                      entries == 1 ? "is" : "are");
  cause +=
      " It may be the state of a scheduler or random generator, training arguments, a fully "
      "pickled module, or a save that wrote nothing.";
  Finding finding = empty_tensors_finding(std::move(cause));
  finding.subjects = files_read(c);
  finding.evidence = {{"tensors", std::int64_t{0}}, {"entries", count_of(entries)}};
  findings.push_back(std::move(finding));
}

// Names that trainers use for states of random generators.
bool is_named_as_generator(std::string_view fqn) {
  constexpr auto kWords =
      std::to_array<std::string_view>({"rng", "random", "generator", "cuda", "cpu", "seed"});
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return fqn.find(word) != fqn.npos; });
}

// True for "optimizer.pt" and "model.optim.bin", which are not expected to hold weights.
bool are_named_as_optimizer(const std::vector<std::string>& files) {
  return !files.empty() && std::all_of(files.begin(), files.end(), [](const std::string& file) {
    return file.substr(file.rfind('/') + 1).find("optim") != std::string::npos;
  });
}

// A torch.save file with optimizer or generator states, whose weights are elsewhere.
void report_no_weight(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!c.format().traits.has_one_piece_per_tensor) return;
  std::size_t states = 0, others = 0, generators = 0;
  for (TensorId tensor : each_tensor(facts)) {
    const bool is_state = parse_state_fqn(c.fqn(tensor)).has_value();
    states += is_state ? 1 : 0;
    others += !is_state && could_be_weight(c, tensor) ? 1 : 0;
    generators += is_named_as_generator(c.fqn(tensor)) ? 1 : 0;
  }
  if (others != 0 || (states == 0 && generators == 0)) return;
  Finding finding = empty_tensors_finding(
      states != 0 ? fmt::format("All {} are optimizer states: the checkpoint holds no model "
                                "weight, so no model can be loaded from it.",
                                plural(states, "tensor"))
                  : fmt::format("None of {} is a weight: they are counters or the states of random "
                                "generators, so no model can be loaded from them.",
                                plural(c.tensor_count(), "tensor")));
  finding.subjects = files_read(c);
  if (states != 0 && are_named_as_optimizer(finding.subjects)) finding.severity = Severity::kInfo;
  finding.evidence = {{"tensors", count_of(c.tensor_count())}, {"states", count_of(states)}};
  findings.push_back(std::move(finding));
}

bool is_named_as_weight(std::string_view fqn) {
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  return last == "weight" || last == "bias" || is_adapter_name(fqn);
}

// The placeholder of ZeRO-3 and FSDP for a parameter on other ranks.
bool is_placeholder(const Checkpoint& c, TensorId tensor) {
  return c.shape(tensor).size() == 1 && c.shape(tensor)[0] == 0;
}

// True if one of the expected dims is zero.
bool is_expected_empty(const Facts& facts, std::string_view fqn) {
  const SpecEntry* expected = facts.spec == nullptr ? nullptr : facts.spec->find(fqn);
  return expected != nullptr && volume(expected->shape) == 0;
}

// Weights without elements, checked by name, placeholders where others of their family have
// elements, and all of several placeholders if no tensor has an element.
std::vector<std::string> empty_weights(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  struct Family {
    bool has_non_empty_member = false;
    std::size_t placeholders = 0;
  };
  std::unordered_map<std::string, Family> families;
  bool all_placeholders = c.tensor_count() > 1;
  for (TensorId tensor : each_tensor(facts)) {
    all_placeholders = all_placeholders && is_placeholder(c, tensor);
    Family& family = families[without_numbers(c.fqn(tensor))];
    family.has_non_empty_member = family.has_non_empty_member || !is_empty_tensor(c, tensor);
    family.placeholders += is_placeholder(c, tensor) ? 1 : 0;
  }
  std::vector<std::string> empty;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_empty_tensor(c, tensor) || parse_state_fqn(fqn) || is_expected_empty(facts, fqn))
      continue;
    // A single one may be an unusual list.
    const Family& family = families[without_numbers(fqn)];
    const bool has_siblings =
        is_placeholder(c, tensor) && family.has_non_empty_member && family.placeholders > 1;
    if (is_named_as_weight(fqn) || has_siblings || all_placeholders) empty.emplace_back(fqn);
  }
  return empty;
}

void find_empty_tensors(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (c.directory() == nullptr) return;
  if (c.tensor_count() == 0) return report_no_tensor(facts, findings);
  report_no_weight(facts, findings);
  std::vector<std::string> empty = empty_weights(facts);
  const auto explained = explained_by(findings, kFlatShard.id);
  std::erase_if(empty, [&](const std::string& fqn) { return explained.contains(fqn); });
  if (empty.empty()) return;
  const bool all = empty.size() == c.tensor_count();
  std::string cause =
      fmt::format("{} of {} {} empty: shape {}, no element ({}).", human_count(empty.size()),
                  plural(c.tensor_count(), "tensor"), empty.size() == 1 ? "is" : "are",
                  to_text(c.shape(*c.find(empty.front()))), short_list_text(empty));
  cause +=
      " Their elements were on other ranks (ZeRO-3, FSDP) and were not gathered before the save.";
  cause += all ? " The file holds no trained values."
               : " A load fails at the shape, or leaves these weights at random values.";
  Finding finding = empty_tensors_finding(std::move(cause));
  finding.severity = all ? Severity::kError : Severity::kWarning;
  finding.evidence = {{"empty", count_of(empty.size())}, {"tensors", count_of(c.tensor_count())}};
  finding.subjects = std::move(empty);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kEmptyTensors = {
    .id = "empty-tensors",
    .depth = Depth::kMetadata,
    .title = "The checkpoint holds no weights, or weights without elements",
    .teaches =
        "Under ZeRO-3 and FSDP a rank's model has placeholders of shape [0] for sharded "
        "parameters. A save that does not gather them first writes the placeholders. A file "
        "without any tensor holds something else: a scheduler's state, arguments, a random "
        "generator, or a fully pickled module. Nothing can be recovered from such a file; the "
        "weights must come from another file or from the run.",
    .lesson = {.drawing = R"(
  q_proj.lora_A.weight     [0]        gathered: [8, 4096]
  q_proj.lora_B.weight     [0]        gathered: [4096, 8]
)",
               .remedy = "Save again and gather first: `stage3_gather_16bit_weights_on_model_save` "
                         "for ZeRO-3, FULL_STATE_DICT or torch's state dict API for FSDP.",
               .link = "https://github.com/huggingface/safetensors/issues/498"},
    .words = {.text = "without an element"},
    .outcome = RunOutcome::kLosesElements,
    .run = find_empty_tensors,
};

}  // namespace shw
