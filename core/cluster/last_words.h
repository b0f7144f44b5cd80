// What the workers of a run have to say at its end. Where all of them met the same, it is said
// once; where they did not, whoever met it is named. What one only heard from another is nothing
// of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

struct LastWords {
  std::optional<Error> error;  // nothing: it went well
  std::string text = {};       // of an error that was put into words where it was met
};

Bytes packed(const LastWords& words);
Result<LastWords> unpacked_words(BytesView bytes);

// Words of some of the workers; `of_all`: of every one, so that nobody has to be named.
struct Saying {
  std::vector<int> workers;
  bool of_all = false;
  LastWords words;
};
// By rank; nothing of a worker that was not heard. In the order of the first that says it. Where
// all that is there was heard from somebody who is gone, the first one's words.
std::vector<Saying> sayings(const std::vector<std::optional<LastWords>>& by_rank);

// "worker 2", "workers 0, 3 and 5", "workers 0, 1, 2 and 509 more"
std::string who_says(const Saying& saying);

}  // namespace shw
