#include "core/rules/half_saved_trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/evidence.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Finding trainer_file_finding(const char* path, Severity severity, std::string cause) {
  Finding finding{.rule = std::string(kSideFile.id), .severity = severity, .subjects = {path}};
  finding.cause = std::move(cause);
  return finding;
}

// True if the steps next to this one have shown that it lacks a file (unfinished_step_finding).
bool is_reported_by_run(const Checkpoint& checkpoint) {
  const auto opening = checkpoint.opening_findings();
  return std::any_of(opening.begin(), opening.end(), [](const Finding& one) {
    return one.rule == kSideFile.id &&
           find_evidence<std::vector<std::string>>(one, "files_not_here") != nullptr;
  });
}

}  // namespace

std::optional<Finding> half_saved_trainer_finding(const Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory();
  const auto is_there = [&](const char* name) {
    return directory.stat(name).kind == EntryKind::kFile;
  };
  if (!is_there("trainer_state.json")) {
    // simpletransformers and older scripts save training_args.bin too, and no trainer_state.json.
    const bool has_arguments = is_there("training_args.bin");
    const bool is_of_trainer =
        has_arguments && (is_there("rng_state.pth") || is_there("rng_state_0.pth"));
    if (!is_there("optimizer.pt") || !(is_there("scheduler.pt") || has_arguments))
      return std::nullopt;
    if (is_reported_by_run(checkpoint)) return std::nullopt;
    Finding finding = trainer_file_finding(
        "trainer_state.json", is_of_trainer ? Severity::kWarning : Severity::kInfo,
        fmt::format("trainer_state.json is missing, though optimizer.pt and {} are there: {}",
                    has_arguments ? "training_args.bin" : "scheduler.pt",
                    is_of_trainer ? "transformers' Trainer writes it last and reads the step from "
                                    "it, so resuming from here fails."
                                  : "if transformers' Trainer wrote this folder, resuming from "
                                    "here fails, because it reads the step from that file."));
    finding.evidence = {{"files_not_here", std::vector<std::string>{"trainer_state.json"}}};
    return finding;
  }
  // FSDP and DeepSpeed store an optimizer in a folder.
  const bool in_folder =
      std::any_of(checkpoint.files().begin(), checkpoint.files().end(), [](const FileRow& file) {
        const std::string_view path = file.path;
        const std::string_view folder = path.substr(0, path.find('/'));
        return folder.size() < path.size() &&
               (folder.find("optimizer") != folder.npos || folder.starts_with("global_step"));
      });
  const bool has_optimizer = in_folder || is_there("optimizer.pt") || is_there("optimizer.bin");
  const bool has_scheduler = is_there("scheduler.pt");
  if (has_optimizer == has_scheduler || (in_folder && !has_scheduler)) return std::nullopt;
  constexpr const char* kBoth =
      "transformers' Trainer loads both or neither, without an error: a resumed run starts its "
      "optimizer and learning rate from scratch.";
  return trainer_file_finding(
      "scheduler.pt", Severity::kInfo,
      fmt::format("scheduler.pt is {}. {}",
                  has_optimizer ? "missing, though the optimizer's states are there"
                                : "there, but no optimizer states are",
                  kBoth));
}

}  // namespace shw
