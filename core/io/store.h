// The file system operations of a repair; all writing goes through this interface, and so does
// reading back. Tests replace it by a store that fails (faulty_store.h) or that loses data that was
// not made durable (memory_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/read_through.h"
#include "core/io/scratch.h"
#include "core/io/sink.h"
#include "core/io/source.h"

namespace shw {

// A folder opened for writing. Paths are relative and cannot leave it; parent folders of new files
// are created. Several threads may create and copy different files.
class WritableDirectory {
 public:
  virtual ~WritableDirectory() = default;
  virtual const std::string& path() const = 0;
  // Fails if the file exists.
  virtual Result<std::unique_ptr<OutputFile>> create_file(const std::string& relative) = 0;
  // Opens a file that another process on this machine created and finishes: both write to it.
  virtual Result<std::unique_ptr<OutputFile>> join_file(const std::string& relative) = 0;
  // As create_file(), for sequential writing.
  Result<std::unique_ptr<ByteSink>> create(const std::string& relative);
  // An unnamed temporary file on the same disk.
  virtual Result<std::shared_ptr<ScratchFile>> create_scratch() = 0;
  // Copies a whole file of the same store by reflink, or by a copy that keeps holes; never a hard
  // link. Durable on return. `passing`, if not null, receives the copied bytes in order. Returns
  // false if the bytes were shared instead.
  virtual Result<bool> copy_file_durably(const std::string& source_path,
                                         const std::string& relative, const ExtentVisitor* passing,
                                         Progress* progress) = 0;
  Status copy_whole_file_in(const std::string& source_path, const std::string& relative,
                            Progress* progress);
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove(const std::string& relative) = 0;
  // Marks an existing file whose name sync() must make durable.
  virtual void keep(const std::string& relative) = 0;
  virtual Status sync() = 0;  // makes the names in the folder durable
};

// Writes a small text file and makes it durable.
Status write_text(WritableDirectory& folder, const std::string& relative, std::string_view text);

class Store {
 public:
  virtual ~Store() = default;
  // True for any entry, also for a dangling link.
  virtual bool exists(const std::string& path) const = 0;
  // True if publish() can give a folder this name.
  virtual bool is_free_for_folder(const std::string& path) const { return !exists(path); }
  // The path with all links followed. For a path that does not exist: its parent's path with the
  // name added.
  virtual Result<std::string> resolved(const std::string& path) const = 0;
  // Free bytes for this user on the file system of `path`.
  virtual Result<std::uint64_t> free_bytes(const std::string& path) const = 0;
  // True if a new file in the folder can share blocks with `source` (OutputFile::reflink_at). Tries
  // it with a temporary file.
  virtual bool can_reflink(const std::string& folder, const ByteSource& source) const = 0;
  // Names of all entries of a folder; empty if it cannot be read.
  virtual std::vector<std::string> names(const std::string& folder) const = 0;

  virtual Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const = 0;
  // Creates the folder; fails if it exists. Its parent must exist.
  virtual Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) = 0;
  // Opens an existing folder, for a repair in place.
  virtual Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) = 0;
  // Renames a finished folder to its final name, which must not exist or be an empty folder;
  // durable on return.
  virtual Status publish(const std::string& temporary, const std::string& final_path) = 0;
  // Deletes an unfinished output folder with its contents; refuses any whose name does not contain
  // `marker`.
  virtual Status discard(const std::string& path, const std::string& marker) = 0;
};

// The local file system.
Store& posix_store();

}  // namespace shw
