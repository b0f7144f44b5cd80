// The journal in an unfinished folder, for resuming: what is written there, from which inputs, and
// each file as soon as it is durable.
//
//   <XXH3-128 of the rest of the line, 32 hex digits> <JSON>\n
//
// The first line is the header, every other line is one file. Torn lines at the end, as a power
// loss leaves them, are dropped; any other line that does not match its hash means damage.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/exec/element_fingerprint.h"
#include "core/io/store.h"

namespace shw {

inline constexpr const char* kJournalFile = ".shardwright-journal";

// An input folder, and the state of its files when the run started.
struct JournalInput {
  std::string folder;  // resolved path
  std::vector<Entry> files;
};

struct JournalHeader {
  std::string out;      // as the user wrote it
  std::string request;  // FolderRun::request
  std::string program;  // hex hashes
  std::string laid_out;
  std::vector<JournalInput> inputs;
};

struct DurableFile {
  std::string path;
  std::uint64_t size = 0;
  // Checksums of the source elements of each chunk in the file, in file order, so that a resumed
  // run can prove the chunks without reading their sources.
  std::vector<ElementSums> elements = {};
};

struct JournalText {
  JournalHeader header;
  std::vector<DurableFile> files;
};

// Reads the journal of a folder. It is untrusted.
Result<JournalText> read_journal(const Directory& folder);

// Writes a journal.
class Journal {
 public:
  // Replaces any existing journal; the new one is durable under its name on return.
  static Result<std::unique_ptr<Journal>> begin(WritableDirectory& folder, const JournalText& text);
  // Appends a line; it becomes durable now or together with the next ones.
  // Thread-safe.
  Status add(const DurableFile& file);

 private:
  explicit Journal(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}

  std::mutex guard_;
  std::unique_ptr<OutputFile> file_;
  std::uint64_t end_ = 0;
  std::string pending_;
  bool writing_ = false;
};

}  // namespace shw
