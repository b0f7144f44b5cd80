#include "core/formats/torch_file/torch_file_table.h"

#include <algorithm>

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/torch_file/torch_file.h"
#include "core/formats/torch_file/torch_file_formats.h"
#include "core/formats/torch_file/torch_file_writer.h"
#include "core/formats/torch_file/torch_index.h"
#include "core/formats/unread.h"

namespace shw {
namespace {

// By first bytes: other archives begin with another record.
Result<bool> is_torch_archive(const DirectoryLook& look, const Entry& entry) {
  constexpr std::uint64_t kLocalHeaderSize = 30;
  constexpr std::uint64_t kLongestName = 512;
  SHW_TRY(Bytes bytes, look.first_bytes(entry.path, kLocalHeaderSize + kLongestName));
  if (bytes.size() < kLocalHeaderSize || load_little<std::uint32_t>(bytes) != kZipMagic)
    return false;
  std::size_t length = load_little<std::uint16_t>(bytes, 26);
  auto rest = std::span(bytes).subspan(kLocalHeaderSize);
  std::string_view name(reinterpret_cast<const char*>(rest.data()), std::min(length, rest.size()));
  return name.ends_with("/data.pkl");
}

// What is a part of another format's checkpoint stays one: a rank's file is not the whole.
bool is_unread(const Entry& entry) {
  auto others = unread_formats();
  return std::any_of(others.begin(), others.end(), [&](const UnreadFormat& other) {
    return !other.is_torch_file &&
           other.matches(entry.path,
                         std::string_view(entry.path).substr(entry.path.rfind('/') + 1));
  });
}

// One such file at the top, and one only: of several nobody says which is meant, unless an index
// does.
Result<bool> has_torch_file(const DirectoryLook& look) {
  SHW_TRY(auto entries, look.entries());
  const bool may_have_index = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path.ends_with(".bin.index.json");
  });
  if (may_have_index) {
    SHW_TRY(auto index, find_torch_index(look.directory()));
    if (index && !index->files.empty()) return true;
  }
  if (std::any_of(entries.begin(), entries.end(), is_unread)) return false;
  std::size_t found = 0;
  for (const Entry& entry : entries) {
    bool at_top = entry.path.find('/') == std::string::npos;
    bool named = entries.size() == 1 || named_torch_file(entry.path) != NamedFile::kNothing;
    if (!at_top || entry.kind != EntryKind::kFile || !named) continue;
    SHW_TRY(bool is_archive, is_torch_archive(look, entry));
    if (is_archive && ++found > 1) return false;
  }
  return found == 1;
}

}  // namespace

constexpr FormatRow kTorchFileRow = {
    .format = &kTorchFileFormat,
    .sign = "torch.save file",
    .recognises = has_torch_file,
    .open = open_torch_file,
    .named = named_torch_file,
    .names_are_common = true,
    .said_beside = said_in_forms,
};

}  // namespace shw
