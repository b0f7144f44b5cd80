#include "core/formats/tar/nemo_open.h"

#include <algorithm>

#include "core/base/little_endian.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/top_file.h"
#include "core/formats/open_nested.h"
#include "core/formats/tar/tar_directory.h"

namespace shw {
namespace {

constexpr std::string_view kNemoSuffix = ".nemo";
constexpr std::uint16_t kGzipMagic = 0x8b1f;

constexpr Format kNemoFormat = {.name = "nemo", .title = "NeMo archive (tar)", .codec = &kRawCodec};

std::vector<std::string> nemo_files(std::span<const Entry> entries) {
  std::vector<std::string> files;
  for (const Entry& entry : entries) {
    if (is_top_file(entry) && entry.path.ends_with(kNemoSuffix)) files.push_back(entry.path);
  }
  return files;
}

Result<bool> has_one_nemo(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return nemo_files(entries).size() == 1;
}

OpenedCheckpoint open_nemo(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  const auto files = nemo_files(entries);
  if (files.size() != 1)
    return fail(ErrorKind::kUnsupported, "holds several NeMo archives", {directory->name()},
                files.empty()
                    ? std::string()
                    : "Give the path of one of them. " + advice_to_open(*directory, files.front()));
  SHW_TRY(auto source, directory->open(files.front()));
  SHW_CHECK(check_is_no_lfs_pointer(*source));
  if (source->size() >= 2) {
    SHW_TRY(Bytes first, read_bytes(*source, 0, 2));
    if (load_little<std::uint16_t>(first) == kGzipMagic)
      return fail(ErrorKind::kUnsupported,
                  "is a NeMo archive compressed with gzip, which cannot be read in place",
                  {files.front()}, "Unpack it (tar xzf FILE) and open the checkpoint inside.");
  }
  SHW_TRY(auto inside, open_tar(source, directory->name() + "/" + files.front()));
  return open_nested(std::move(inside), progress);
}

FileRole nemo_file_role(std::string_view file) {
  return file.ends_with(kNemoSuffix) ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

constexpr FormatRow kNemoRow = {
    .format = &kNemoFormat,
    .sign = kNemoSuffix,
    .recognises = has_one_nemo,
    .open = open_nemo,
    .named = nemo_file_role,
};

}  // namespace shw
