// What a run notes in the folder that it makes, so that another one can go on with it: what is made
// there, of which inputs, and every file as soon as it is durable.
//
//   <XXH3-128 of the rest of the line, 32 hex digits> <JSON>\n
//
// The first line is the header, every other one a file. Where lines are torn at the end, as a power
// cut leaves them, it ends; any other that is not what its hash says makes it a damaged file.
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

// A folder that is read, and how every file of it was when the run began.
struct JournalInput {
  std::string folder;  // resolved
  std::vector<Entry> files;
};

struct JournalHeader {
  std::string out;      // as it was asked for
  std::string request;  // FolderRun::request
  std::string program;  // hashes, in hex
  std::string laid_out;
  std::vector<JournalInput> inputs;
};

struct DurableFile {
  std::string path;
  std::uint64_t size = 0;
  // Of its made tiles, in their order in it, what was read for each: who goes on proves them by
  // that, and has no need of what they were made of.
  std::vector<ElementSums> elements = {};
};

struct JournalText {
  JournalHeader header;
  std::vector<DurableFile> files;
};

// Of a folder that lies there, whoever wrote it.
Result<JournalText> read_journal(const Directory& folder);

// A journal that is being written.
class Journal {
 public:
  // Durable under its name when this returns, whatever was there before.
  static Result<std::unique_ptr<Journal>> begin(WritableDirectory& folder, const JournalText& text);
  // Adds a line and sees to it that it becomes durable, now or together with the next ones. From
  // several threads.
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
