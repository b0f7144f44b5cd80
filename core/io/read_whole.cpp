#include "core/io/read_whole.h"

#include <fmt/core.h>

#include "core/base/words.h"

namespace shw {

Result<Bytes> read_whole(const ByteSource& source, std::uint64_t most) {
  if (source.size() > most)
    return fail(ErrorKind::kDamaged,
                fmt::format("is too large: the file has {}, and at most {} of its kind are read",
                            human_bytes(source.size()), human_bytes(most)),
                {source.name()});
  return read_bytes(source, 0, source.size());
}

Result<std::string> read_whole_text(const ByteSource& source, std::uint64_t most) {
  SHW_TRY(Bytes bytes, read_whole(source, most));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace shw
