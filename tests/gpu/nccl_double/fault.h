// A simulated fault; control.h describes the syntax.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace shw::nccl_double {

struct Fault {
  std::string kind;  // or the name of a call
  int rank = 0;
  long group = 0;
  int code = 0;
};

// Several faults are separated by commas.
inline std::vector<Fault> parse_faults(const std::string& text) {
  std::vector<Fault> faults;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ',');) {
    std::vector<std::string> words;
    std::istringstream parts(one);
    for (std::string word; std::getline(parts, word, ':');) words.push_back(word);
    if (words.size() < 2) continue;
    Fault fault;
    fault.kind = words[0];
    if (fault.kind == "call") {
      fault.kind = "nccl" + words[1];
      fault.code = words.size() > 2 ? std::stoi(words[2]) : 3;
    } else {
      fault.rank = std::stoi(words[1]);
      fault.group = words.size() > 2 ? std::stol(words[2]) : 0;
      fault.code = words.size() > 3 ? std::stoi(words[3]) : 6;
    }
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace shw::nccl_double
