#include "core/compare/openable.h"

namespace shw {

const std::optional<Error>& OpenableFiles::error_of(FileId file) {
  auto [found, is_new] = asked_.try_emplace(file);
  if (!is_new) return found->second;
  auto source = checkpoint_.directory()->open(checkpoint_.file(file).path);
  if (!source) found->second = std::move(source).error();
  return found->second;
}

std::optional<Error> OpenableFiles::error_of(TensorId tensor) {
  for (ChunkId chunk : checkpoint_.chunks(tensor)) {
    auto item = checkpoint_.item(chunk);
    if (!item || item->file == FileId::kNone) continue;
    if (const auto& error = error_of(item->file)) return error;
  }
  return std::nullopt;
}

}  // namespace shw
