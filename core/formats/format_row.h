// A format as the table of them holds it (table.h): how it is told by what lies there, and opened.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// What a directory shows before anything in it is opened. It is listed when somebody first asks:
// with an index by a known name nobody does.
class DirectoryLook {
 public:
  explicit DirectoryLook(const Directory& directory) : directory_(directory) {}
  const Directory& directory() const { return directory_; }
  Entry entry(std::string_view path) const { return directory_.stat(std::string(path)); }
  Result<std::span<const Entry>> entries() const;
  // At most that many, from the start of the file; none of what is no file.
  Result<Bytes> first_bytes(const std::string& path, std::uint64_t count) const;

 private:
  const Directory& directory_;
  mutable std::optional<std::vector<Entry>> entries_;
};

// What naming a single file means.
enum class NamedFile : std::uint8_t {
  kNothing,     // it is no checkpoint by itself
  kCheckpoint,  // the directory around it
  kAlone,       // a checkpoint of this one file
  kPart,        // a data file that says nothing without what lies beside it
};

using OpenedCheckpoint = Result<std::shared_ptr<const Checkpoint>>;

struct FormatRow {
  const Format* format = nullptr;
  std::string_view sign = {};  // what a directory of it has, for people: ".metadata"
  // By what lies there and its first bytes, never by the directory's name. Null where the opener of
  // another row tells the two apart.
  Result<bool> (*recognises)(const DirectoryLook& look) = nullptr;
  // Metadata only, no tensor byte. Null with `recognises`.
  OpenedCheckpoint (*open)(std::shared_ptr<const Directory> directory,
                           Progress* progress) = nullptr;
  NamedFile (*named)(std::string_view file) = nullptr;
  // Where nothing is recognised, or another format is by what lies beside: what a save of this
  // format leaves that did not finish.
  std::optional<Error> (*unfinished)(std::span<const Entry> entries) = nullptr;
  // Files of other formats have such names too: one in a folder does not make a checkpoint of it.
  bool names_are_common = false;
  // What is said beside the entries, and only the format's own writer keeps: "_metadata of the
  // state dict". Null where nothing is.
  std::vector<std::string> (*said_beside)(const Checkpoint& checkpoint) = nullptr;
  // All bytes of a file that have a checksum beside its items, against it; kAbsent where the file
  // has none. Null where no file of the format has.
  Result<DataCheck> (*check_file)(const std::shared_ptr<const ByteSource>& file,
                                  Progress* progress) = nullptr;
};

}  // namespace shw
