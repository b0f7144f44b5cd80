#include "core/compare/tensor_hashes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/hash.h"

namespace shw {

Result<std::vector<TensorHash>> tensor_hashes(const Checkpoint& checkpoint,
                                              const std::vector<TensorId>& tensors,
                                              std::uint64_t memory, Progress* progress,
                                              Team* team) {
  SHW_TRY(auto prints, fingerprints_of(checkpoint, tensors, memory, progress, team));
  std::vector<TensorHash> out;
  out.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorId tensor = tensors[i];
    TensorHash hash{std::string(checkpoint.fqn(tensor)), checkpoint.dtype(tensor),
                    copy_of(checkpoint.shape(tensor)), std::move(prints[i])};
    const bool is_empty = volume(checkpoint.shape(tensor)) == 0;
    if (is_empty && size_of(hash.dtype) != 0) hash.fingerprint = Fingerprint{};
    out.push_back(std::move(hash));
  }
  return out;
}

bool HashedTensors::is_whole() const {
  return unread.empty() &&
         std::all_of(tensors.begin(), tensors.end(),
                     [](const TensorHash& tensor) { return tensor.fingerprint.has_value(); });
}

std::string total_hash(const HashedTensors& hashed) {
  if (!hashed.is_whole()) return {};
  std::vector<std::string> lines;
  for (const TensorHash& tensor : hashed.tensors) {
    std::string line = tensor.fqn + '\0' + std::string(name(tensor.dtype)) + '\0';
    line += to_text(ExtentsView(tensor.shape)) + '\0' + to_hex(*tensor.fingerprint) + '\n';
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  RunningHash all;
  for (const std::string& line : lines) all.add(std::as_bytes(std::span(line)));
  return all.text();
}

}  // namespace shw
