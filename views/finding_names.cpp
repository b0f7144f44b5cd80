#include "views/finding_names.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shw {

std::span<const std::uint32_t> FindingNames::Lists::of(std::size_t subject) const {
  if (subject + 1 >= first.size()) return {};
  return std::span(findings).subspan(first[subject], first[subject + 1] - first[subject]);
}

void FindingNames::Lists::build(std::size_t subjects,
                                std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  first.assign(subjects + 1, 0);
  findings.reserve(pairs.size());
  for (const auto& [subject, finding] : pairs) {
    ++first[subject + 1];
    findings.push_back(finding);
  }
  for (std::size_t i = 0; i < subjects; ++i) first[i + 1] += first[i];
}

FindingNames::FindingNames(const Checkpoint& checkpoint, const std::vector<Finding>& findings) {
  std::unordered_map<std::string_view, std::uint32_t> by_path;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f)
    by_path.emplace(checkpoint.file(FileId{f}).path, f);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_tensors, of_files;
  for (std::size_t f = 0; f < findings.size(); ++f) {
    const auto index = static_cast<std::uint32_t>(f);
    for (const std::string& subject : findings[f].subjects) {
      if (auto tensor = checkpoint.find(subject))
        of_tensors.emplace_back(static_cast<std::uint32_t>(index_of(*tensor)), index);
      if (auto file = by_path.find(subject); file != by_path.end())
        of_files.emplace_back(file->second, index);
    }
  }
  tensors_.build(checkpoint.tensor_count(), std::move(of_tensors));
  files_.build(checkpoint.file_count(), std::move(of_files));
}

bool FindingNames::names(TensorId tensor, std::size_t finding) const {
  const auto named = of(tensor);
  return std::binary_search(named.begin(), named.end(), finding);
}

std::vector<std::uint32_t> FindingNames::about(const Checkpoint& checkpoint,
                                               TensorId tensor) const {
  const auto named = of(tensor);
  std::vector<std::uint32_t> found(named.begin(), named.end());
  FileId last = FileId::kNone;  // chunks of a file mostly follow each other
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const auto item = checkpoint.item(chunk);
    if (!item || item->file == FileId::kNone || item->file == last) continue;
    last = item->file;
    const auto of_file = of(item->file);
    found.insert(found.end(), of_file.begin(), of_file.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace shw
