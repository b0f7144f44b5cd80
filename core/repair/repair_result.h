// What a repair is asked and what it answers.
#pragma once

#include <string>

namespace shw {

struct ApplyOptions {
  std::string out;  // the new directory; empty: "<checkpoint>-repaired" beside it, "-2", ... where
                    // that exists
  bool in_place = false;
};

struct RepairResult {
  std::string output;       // the directory
  std::string certificate;  // the file
  bool lossless = true;
};

}  // namespace shw
