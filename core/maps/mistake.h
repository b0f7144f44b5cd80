// A conversion mistake that turns the expected elements into exactly the saved ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace shw {

struct Mistake {
  enum class Kind : std::uint8_t {
    kNamed,  // only this conversion gives these elements
    kOrder,  // the order of pieces without its reason: other numbers of heads give it too
  };
  Mistake(std::string in_words, Kind of_kind = Kind::kNamed)
      : text(std::move(in_words)), kind(of_kind) {}

  std::string text;
  Kind kind;
};

}  // namespace shw
