// What a repair is asked and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/run_limits.h"
#include "core/base/team.h"
#include "core/exec/device.h"

namespace shw {

struct ApplyOptions {
  std::string out;  // the new directory; empty: "<checkpoint>-repaired" beside it, "-2", ... where
                    // that exists
  bool in_place = false;
  std::string checkpoint = {};  // as the person named it; empty: the folder that was opened
  std::string partial = {};     // what a killed repair left, to be gone on with
  std::uint64_t memory = kDefaultMemory;  // that slabs and decoded items may take
  std::string suffix = "-repaired";       // of the name that is made where none is given
  bool integrity = false;     // writes an integrity.json (core/facts/storage/integrity.h) too
  DeviceOptions device = {};  // on what elements are made
  Team* team = nullptr;       // FolderRun::team
};

// What came of the way back from the result to the source.
struct WayBack {
  std::string program;    // whose names and layout the source has; empty without a map
  std::size_t equal = 0;  // tensors whose elements are the source's, by fingerprints of 128 bits
  std::vector<std::string> differ = {};   // in shape, dtype or elements
  std::vector<std::string> padding = {};  // in rows of padding alone, which were cut off
  std::vector<std::string> without = {};  // of the source, and not in the result: left out
};

// Where a folder was sent.
struct SentResult {
  std::string to;  // without anything secret
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::size_t kept = 0;  // of the files, those that an upload which was cut off had sent
};

struct RepairResult {
  std::string output;       // the directory
  std::string certificate;  // the file
  bool lossless = true;
  std::size_t rounded = 0;     // tensors whose values were rounded, where nothing else is lost
  std::size_t files_kept = 0;  // that an earlier run had made already
  DeviceUse device = {};       // what made the elements
  TeamTraffic traffic = {};    // what carried tiles between workers
  // Of tensors that have any: TensorCertificate::out_of_range.
  std::map<std::string, std::int64_t> out_of_range = {};
  std::vector<std::string> of_other_ranks = {};  // Certificate::of_other_ranks
  std::vector<std::string> left_out = {};        // Certificate::left_out
  // Entries that came along as they lay and do not match their checksums, each with why.
  std::map<std::string, std::string> damage = {};
  std::optional<WayBack> way_back = {};
  std::optional<SentResult> sent = {};
};

}  // namespace shw
