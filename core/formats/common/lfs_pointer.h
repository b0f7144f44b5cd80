// Git LFS pointer files: about 130 bytes of text in place of a file in a repository cloned without
// Git LFS.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/v1";

// An error if the source is a pointer file.
inline Status check_is_no_lfs_pointer(const ByteSource& source) {
  constexpr std::uint64_t kLongestPointer = 1024;  // limit of the specification
  if (source.size() < kLfsPointer.size() || source.size() > kLongestPointer) return {};
  SHW_TRY(Bytes bytes, read_bytes(source, 0, kLfsPointer.size()));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text != kLfsPointer) return {};
  return fail(ErrorKind::kDamaged,
              "is a Git LFS pointer: the file itself was not downloaded, and `git lfs pull` "
              "fetches it",
              {source.name(), 0});
}

}  // namespace shw
