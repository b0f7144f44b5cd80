// What a repair needs of a file system. It writes through nothing else, and reads what it wrote
// through nothing else; tests put one underneath that fails, or that forgets what was not made
// durable (faulty_store.h, memory_store.h).
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

// A folder that is written to. Paths are relative to it and never leave it; folders on the way to a
// new file are made. Several threads may create files and copy them in, each its own.
class WritableDirectory {
 public:
  virtual ~WritableDirectory() = default;
  virtual const std::string& path() const = 0;
  // Fails if it exists.
  virtual Result<std::unique_ptr<OutputFile>> create_file(const std::string& relative) = 0;
  // One that somebody else on this machine has created, and finishes: written together.
  virtual Result<std::unique_ptr<OutputFile>> join_file(const std::string& relative) = 0;
  // As create_file(), to be written from front to back.
  Result<std::unique_ptr<ByteSink>> create(const std::string& relative);
  // On the same disk, and none of its names.
  virtual Result<std::shared_ptr<ScratchFile>> create_scratch() = 0;
  // Copies a whole file of the same store: reflink where the file system can, else a copy that
  // keeps holes. Never a hard link. Durable when it returns. `passing`, where it is not null, is
  // given what is copied, front to back; false where it was not, since the bytes are shared.
  virtual Result<bool> copy_past(const std::string& source_path, const std::string& relative,
                                 const RangeParts* passing, Progress* progress) = 0;
  Status copy_in(const std::string& source_path, const std::string& relative, Progress* progress);
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove(const std::string& relative) = 0;
  // A file that is there already, and that sync() is to make the name of durable as well.
  virtual void keep(const std::string& relative) = 0;
  virtual Status sync() = 0;  // the names in it are durable
};

// A whole small file, durable.
Status write_text(WritableDirectory& folder, const std::string& relative, std::string_view text);

class Store {
 public:
  virtual ~Store() = default;
  // Anything under that name, a dangling link too.
  virtual bool exists(const std::string& path) const = 0;
  // The path with every link followed; of one that does not exist yet, its parent's with the name
  // added.
  virtual Result<std::string> resolved(const std::string& path) const = 0;
  // Free for this user where `path` lies.
  virtual Result<std::uint64_t> free_bytes(const std::string& path) const = 0;
  // Whether a new file in the folder can have the blocks of `source` (OutputFile::share_at): tried
  // with one, of which nothing is left.
  virtual bool can_share(const std::string& folder, const ByteSource& source) const = 0;
  // Of all that lies in a folder; none where it cannot be read.
  virtual std::vector<std::string> names(const std::string& folder) const = 0;

  virtual Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const = 0;
  // Makes the folder (its parent must exist) and fails if it is there already.
  virtual Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) = 0;
  // One that exists, for a change in place.
  virtual Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) = 0;
  // Gives a finished folder its final name, which nothing has yet; durable when it returns.
  virtual Status publish(const std::string& temporary, const std::string& final_path) = 0;
  // Removes a half-made folder of ours with all below; refuses anything whose name does not hold
  // `marker`.
  virtual Status discard(const std::string& path, const std::string& marker) = 0;
};

// This machine's own.
Store& posix_store();

}  // namespace shw
