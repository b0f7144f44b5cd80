#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The first torch version with a dtype, if later than 2.6 (from the dtype tables of torch
// releases).
std::string_view first_torch_version_with(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat8E8m0fnu:
      return "2.7";
    case Dtype::kFloat4E2m1fnX2:
      return "2.8";
    case Dtype::kBcomplex32:
      return "2.15";
    default:
      return "";
  }
}

// The files at which a program would fail: the index, which names the dtypes, or the data files if
// there is none.
std::vector<std::string> files_of_tensors(const Checkpoint& checkpoint,
                                          const std::vector<TensorId>& tensors) {
  const std::string_view index = checkpoint.format().traits.index_file;
  if (!index.empty()) return {std::string(index)};
  std::vector<std::string> files;
  for (TensorId tensor : tensors) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (auto item = checkpoint.item(chunk)) add_subject(files, checkpoint.file(item->file).path);
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

void add_portability_finding(std::vector<Finding>& findings, std::vector<std::string> files,
                             std::string cause,
                             std::vector<std::pair<std::string, EvidenceValue>> evidence,
                             bool mended) {
  Finding finding{.rule = "portability", .severity = Severity::kInfo, .subjects = std::move(files)};
  finding.cause = std::move(cause);
  finding.evidence = std::move(evidence);
  if (mended) {
    finding.remedy = Remedy{"rewrite-metadata", true,
                            "Rewrite .metadata in the form that every torch since 2.6 reads; no "
                            "tensor byte moves. Every repair does this."};
  }
  findings.push_back(std::move(finding));
}

void find_portability_limits(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  const Provenance& provenance = checkpoint.provenance();
  bool new_path = provenance.path_class.starts_with("pathlib._local.");
  bool six = provenance.properties_arity >= 6;
  if (new_path || six) {
    std::string cause;
    if (new_path)
      cause += ".metadata holds a path object of Python 3.13 (" + provenance.path_class +
               "), which Python 3.12 and older cannot load";
    if (new_path && six) cause += "; ";
    if (six)
      cause += fmt::format("{} holds {} tensor properties, and torch older than 2.15 expects 5",
                           new_path ? "it" : "It", provenance.properties_arity);
    std::vector<std::pair<std::string, EvidenceValue>> evidence;
    if (new_path) evidence.emplace_back("path_class", provenance.path_class);
    if (new_path) evidence.emplace_back("python_at_least", std::string("3.13"));
    if (six) evidence.emplace_back("properties", std::int64_t{provenance.properties_arity});
    if (six) evidence.emplace_back("torch_at_least", std::string("2.15"));
    if (!provenance.torch.empty()) evidence.emplace_back("written_by", provenance.torch);
    add_portability_finding(findings, files_of_tensors(checkpoint, {}), cause + ".",
                            std::move(evidence), checkpoint.format().rewrite == Rewrite::kIndex);
  }

  std::map<Dtype, std::vector<TensorId>> young;
  for (TensorId tensor : each_tensor(facts)) {
    Dtype dtype = checkpoint.dtype(tensor);
    if (!first_torch_version_with(dtype).empty()) young[dtype].push_back(tensor);
  }
  const bool has_index = !checkpoint.format().traits.index_file.empty();
  for (const auto& [dtype, tensors] : young) {
    std::string torch(first_torch_version_with(dtype));
    std::vector<std::string> names;
    for (TensorId tensor : tensors) names.emplace_back(checkpoint.fqn(tensor));
    add_portability_finding(findings, files_of_tensors(checkpoint, tensors),
                            plural(tensors.size(), "tensor") + " of dtype " +
                                std::string(name(dtype)) + ": torch older than " + torch +
                                " does not know it and cannot " +
                                (has_index ? "open the metadata." : "load tensors that have it."),
                            {{"dtype", std::string(name(dtype))},
                             {"torch_at_least", torch},
                             {"tensors", capped(names)},
                             {"tensor_count", count_of(names.size())}},
                            false);
  }
}

}  // namespace

const Rule kPortability = {
    .id = "portability",
    .depth = Depth::kMetadata,
    .title = "Some versions of torch or Python cannot open it",
    .teaches =
        "A .metadata file is a pickle of Python objects, so it depends on the versions that wrote "
        "it. Python 3.13 pickles paths under a module name that older versions do not have; torch "
        "2.15 added a sixth tensor property that older versions reject; some dtypes are new. The "
        "data files are the same for all versions. Rewriting .metadata in the older form makes it "
        "open everywhere; no tensor byte moves.",
    .lesson = {.drawing = R"(
  .metadata of                 opens under
  Python 3.13, torch 2.14      Python 3.13 and later only
  any Python, torch 2.15       torch 2.15 and later only
  rewritten by a repair        all of them
)",
               .remedy = "`shardwright repair` rewrites .metadata in the form that older versions "
                         "read; the data files do not change.",
               .link = "https://docs.python.org/3/whatsnew/3.13.html"},
    .words = {.names_versions = true},
    .repaired_by = RepairedBy::kNewMetadata,
    .run = find_portability_limits,
};

}  // namespace shw
