// A row of the format table (table.h): how a format is recognised and opened.
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
#include "core/formats/common/tensor_class.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// A directory before anything in it is opened. The listing is made on first use, which an index
// with a known name avoids.
class DirectoryContents {
 public:
  explicit DirectoryContents(const Directory& directory) : directory_(directory) {}
  const Directory& directory() const { return directory_; }
  Entry entry(std::string_view path) const { return directory_.stat(std::string(path)); }
  Result<std::span<const Entry>> entries() const;
  // At most `count` bytes from the start of the file; empty if it is not a file.
  Result<Bytes> first_bytes(const std::string& path, std::uint64_t count) const;

 private:
  const Directory& directory_;
  mutable std::optional<std::vector<Entry>> entries_;
};

// The meaning of a file that the user names.
enum class FileRole : std::uint8_t {
  kNothing,     // not a checkpoint by itself
  kCheckpoint,  // stands for its directory
  kSingleFile,  // a checkpoint of this one file
  kPart,        // a data file that needs the files next to it
};

// A noted addition (FormatRow::noted_additions) that loaders need to read the right numbers.
struct NeededAddition {
  std::string name;                       // as in noted_additions
  std::string why;                        // "diffusers scales the matrices by it"
  std::vector<std::string> tensors = {};  // tensors that must not change while it applies
};

using OpenedCheckpoint = Result<std::shared_ptr<const Checkpoint>>;

struct FormatRow {
  const Format* format = nullptr;
  std::string_view sign = {};  // what identifies the format, for people: ".metadata"
  // Judges by contents and first bytes, never by the directory's name. Null if the opener of
  // another row distinguishes the two.
  Result<bool> (*recognises)(const DirectoryContents& look) = nullptr;
  // Reads metadata only, no tensor data. Null together with `recognises`.
  OpenedCheckpoint (*open)(std::shared_ptr<const Directory> directory,
                           Progress* progress) = nullptr;
  FileRole (*named)(std::string_view file) = nullptr;
  // The file without which a named one of this format cannot be read: "a.bin" for "a.xml". The two
  // are a checkpoint, whatever else is in the folder. Null if the format has no such pairs.
  std::string (*companion)(std::string_view file) = nullptr;
  // Called if no format, or another one, is recognised: reports what an unfinished save of this
  // format leaves, or several models of which none is chosen.
  std::optional<Error> (*unfinished)(std::span<const Entry> entries) = nullptr;
  // Other formats use such file names too: one in a folder does not make it a checkpoint.
  bool names_are_common = false;
  // Data besides the entries that only the format's own writer keeps: "_metadata of the state
  // dict". Null if there is none.
  std::vector<std::string> (*noted_additions)(const Checkpoint& checkpoint) = nullptr;
  std::vector<NeededAddition> (*needed_additions)(const Checkpoint& checkpoint) = nullptr;
  // Reads the classes of tensors that are stored as the tensors that they wrap. Null if the format
  // has none.
  std::vector<TensorClass> (*tensor_classes)(const Checkpoint& checkpoint) = nullptr;
  // Verifies the checksums of a file as a whole; kAbsent if it has none. Null if no file of the
  // format has one.
  Result<DataCheck> (*check_file)(const std::shared_ptr<const ByteSource>& file,
                                  Progress* progress) = nullptr;
};

}  // namespace shw
