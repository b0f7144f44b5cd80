// Tables of assets that hold one row of JSON per line, so that only needed lines are parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

class LineTable {
 public:
  constexpr explicit LineTable(std::string_view text) : text_(text) {}

  // The lines of a list ("groups"), without the commas after them.
  std::vector<std::string_view> lines(std::string_view list) const;

  // The value on the line of a key ("LlamaForCausalLM"); empty if there is none.
  std::string_view row(std::string_view key) const;

 private:
  std::string_view text_;
};

}  // namespace shw
