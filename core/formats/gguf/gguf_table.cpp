#include "core/formats/gguf/gguf_table.h"

#include <set>

#include "core/base/little_endian.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/top_file.h"
#include "core/formats/gguf/gguf_files.h"
#include "core/formats/gguf/gguf_header.h"
#include "core/formats/gguf/gguf_open.h"

namespace shw {
namespace {

Result<bool> has_gguf_files(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    if (entry.path.ends_with(kGgufSuffix)) return true;
    if (entries.size() != 1) continue;
    SHW_TRY(Bytes bytes, look.first_bytes(entry.path, 4));
    if (bytes.size() == 4 && load_little<std::uint32_t>(bytes) == kGgufMagic) return true;
  }
  return false;
}

FileRole gguf_file_role(std::string_view file) {
  return file.ends_with(kGgufSuffix) ? FileRole::kSingleFile : FileRole::kNothing;
}

// Header keys that only GGUF keeps: tokenizer, architecture, and other data that llama.cpp needs.
std::vector<std::string> gguf_only_header_keys(const Checkpoint& checkpoint) {
  std::set<std::string> names;
  if (checkpoint.directory() == nullptr) return {};
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced || !file.safe || file.kind != EntryKind::kFile) continue;
    auto source = checkpoint.directory()->open(file.path);
    if (!source) continue;
    auto header = read_gguf_header(**source, nullptr);
    if (!header) continue;
    for (const std::string& key : header->keys) names.insert(key + " of the GGUF header");
  }
  return {names.begin(), names.end()};
}

}  // namespace

constexpr Format kGgufFormat = {
    .name = "gguf",
    .title = "GGUF",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

constexpr FormatRow kGgufRow = {
    .format = &kGgufFormat,
    .sign = kGgufSuffix,
    .recognises = has_gguf_files,
    .open = open_gguf,
    .named = gguf_file_role,
    .noted_additions = gguf_only_header_keys,
};

}  // namespace shw
