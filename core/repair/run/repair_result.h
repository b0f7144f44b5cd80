// Options and result of a repair.
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
  // New directory; empty: "<checkpoint>-repaired" next to it, then "-repaired-b", ...
  std::string out;
  bool in_place = false;
  std::string checkpoint = {};            // as typed by the user; empty: the folder that was opened
  std::string partial = {};               // folder of a killed run, to be resumed
  std::uint64_t memory = kDefaultMemory;  // in bytes, for slabs and decoded items
  std::string suffix = "-repaired";       // of the default name of the new directory
  bool integrity = false;     // also writes an integrity.json (core/facts/storage/integrity.h)
  DeviceOptions device = {};  // computes elements
  Team* team = nullptr;       // FolderRun::team
};

// Result of converting back and comparing with the source.
struct RoundTripResult {
  std::string program;    // program whose names and layout the source has; empty without a map
  std::size_t equal = 0;  // number of tensors with equal elements, by 128-bit fingerprints
  std::vector<std::string> differ = {};   // FQNs: other shape, dtype or elements
  std::vector<std::string> padding = {};  // FQNs: only padding rows differ, which were cut off
  std::vector<std::string> without = {};  // FQNs that the result lacks, though it should have them
  std::size_t left_out = 0;               // number of tensors that the conversion left out
  // A line per kind and reason, with its count, where a map left them out: the target program has
  // no place for them, or an option names them. Empty without a map: options name all.
  std::vector<std::string> left_out_why = {};
  // Number of tensors (steps of optimizer states) whose value the result has as a setting.
  std::size_t as_settings = 0;
};

// The upload of a result.
struct UploadResult {
  std::string to;  // address without secrets
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::size_t kept = 0;  // number of files that an earlier, interrupted upload had sent
};

struct RepairResult {
  std::string output;       // path of the directory
  std::string certificate;  // path of the file
  bool lossless = true;
  std::size_t rounded = 0;     // number of cast tensors, if nothing else is lost
  std::size_t files_kept = 0;  // number of files that an earlier run had finished
  DeviceUse device = {};       // device that computed elements
  TeamTraffic traffic = {};    // traffic between ranks
  // TensorCertificate::out_of_range by FQN, for tensors that have any.
  std::map<std::string, std::int64_t> out_of_range = {};
  std::vector<std::string> of_other_ranks = {};  // Certificate::of_other_ranks
  std::vector<std::string> left_out = {};        // Certificate::left_out
  // Copied tensors and entries that do not match their checksums, each with the reason.
  std::map<std::string, std::string> damage = {};
  std::optional<RoundTripResult> way_back = {};
  std::optional<UploadResult> sent = {};
};

}  // namespace shw
