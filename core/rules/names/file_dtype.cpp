// Files whose weights are in another dtype than those of the same kind in the other files.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/float32_names.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/names/name_rules.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr std::size_t kTelling = 3;  // kinds in both dtypes; fewer may be built so

// "model.layers.*.mlp.up_proj.weight". Numbers beside letters are a part of the name.
std::string kind_of(std::string_view fqn) {
  std::string kind, part;
  auto add_part = [&] {
    const bool is_number = part.find_first_not_of("0123456789") == std::string::npos;
    kind += is_number && !part.empty() ? "*" : part;
    part.clear();
  };
  for (char c : fqn) {
    if (c == '.') add_part();
    (c == '.' ? kind : part) += c;
  }
  add_part();
  return kind;
}

// The one file of a tensor's chunks.
std::optional<FileId> file_of(const Checkpoint& c, TensorId tensor) {
  std::optional<FileId> file;
  for (ChunkId chunk : c.chunks(tensor)) {
    const auto place = c.item(chunk);
    if (!place || place->file == FileId::kNone || (file && *file != place->file))
      return std::nullopt;
    file = place->file;
  }
  return file;
}

struct Weight {
  TensorId tensor{};
  FileId file{};
};
using ByDtype = std::map<Dtype, std::vector<Weight>>;

std::map<std::string, ByDtype> weights_by_kind(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, ByDtype> kinds;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_plain_float(c.dtype(tensor)) || stays_in_float32(fqn) || parse_state_fqn(fqn)) continue;
    if (const auto file = file_of(c, tensor))
      kinds[kind_of(fqn)][c.dtype(tensor)].push_back({tensor, *file});
  }
  return kinds;
}

struct TwoDtypes {
  std::map<Dtype, std::set<FileId>> files;
  std::map<Dtype, std::vector<TensorId>> tensors;  // of kinds that are there in both
  std::size_t kinds = 0;
};

// nullopt unless each file has one dtype in all kinds that other files have too.
std::optional<TwoDtypes> dtypes_by_file(const Facts& facts) {
  TwoDtypes found;
  std::map<FileId, Dtype> of_file;
  for (const auto& [kind, by_dtype] : weights_by_kind(facts)) {
    std::set<FileId> files;
    for (const auto& [dtype, weights] : by_dtype)
      for (const Weight& weight : weights) files.insert(weight.file);
    if (files.size() < 2) continue;
    if (by_dtype.size() == 2) ++found.kinds;
    for (const auto& [dtype, weights] : by_dtype) {
      for (const Weight& weight : weights) {
        if (of_file.try_emplace(weight.file, dtype).first->second != dtype) return std::nullopt;
        found.files[dtype].insert(weight.file);
        if (by_dtype.size() == 2) found.tensors[dtype].push_back(weight.tensor);
      }
    }
  }
  if (found.kinds < kTelling || found.files.size() != 2) return std::nullopt;
  return found;
}

void find_file_dtypes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto found = dtypes_by_file(facts);
  if (!found) return;
  auto few = found->files.begin(), many = std::next(few);
  const auto tensors_of = [&](Dtype dtype) { return found->tensors.at(dtype).size(); };
  const bool has_more = few->second.size() != many->second.size()
                            ? few->second.size() > many->second.size()
                            : tensors_of(few->first) > tensors_of(many->first);
  if (has_more) std::swap(few, many);
  std::vector<std::string> files, subjects;
  for (FileId file : few->second) files.push_back(c.file(file).path);
  for (TensorId tensor : found->tensors.at(few->first)) subjects.emplace_back(c.fqn(tensor));
  Finding finding;
  finding.rule = kFileDtype.id;
  finding.severity = Severity::kWarning;
  finding.cause = fmt::format(
      "The weights of {} are {}, and those of the same names in other layers, in {}, are {} ({} "
      "and {}). The file is of another save, or was cast alone; a loader mixes both without a "
      "message.",
      some_of(files), name(few->first), plural(many->second.size(), "other file"),
      name(many->first), plural(subjects.size(), "tensor"), human_count(tensors_of(many->first)));
  finding.evidence = {{"dtype", std::string(name(few->first))},
                      {"others", std::string(name(many->first))},
                      {"files", files},
                      {"count", count_of(subjects.size())}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kFileDtype = {
    .id = "file-dtype",
    .depth = Depth::kMetadata,
    .title = "A file has its weights in another dtype than the others",
    .teaches =
        "One save writes the layers of a model in one dtype. Where all weights of one file are in "
        "another dtype than the same weights of other layers, that file was copied from another "
        "save, or a tool cast it alone. Loaders take each tensor as it is, or cast it: the model "
        "mixes precisions, needs more memory than announced, or holds one file of another step. "
        "Tensors that belong in float32 (router biases, frequencies) do not count.",
    .lesson = {.drawing = R"(
  model-00001-of-00002   layers 0 to 15    bfloat16
  model-00002-of-00002   layers 16 to 31   float32     of another save?
)",
               .remedy = "Find the file of the same save. Where it was only cast, `shardwright "
                         "convert CHECKPOINT --to safetensors --dtype bf16 --out NEW` makes one "
                         "dtype of both."},
    .words = {.text = "in another dtype than the other files"},
    .run = find_file_dtypes,
};

}  // namespace shw
