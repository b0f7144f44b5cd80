// A format that the program does not know: the minimum that is needed to add one.
//
//   toy.index = "toy-index 1" then, line by line,
//               "tensor" name dtype shape              a tensor, its tiles in the lines below
//               "tile" offsets sizes rank place codec  elements as they are, or "flipped"
//               "view" offsets sizes rank place element strides
//               "copy" rank place                      another copy of the tile above
//   place     = file offset length
#pragma once

#include "core/formats/table.h"

namespace shw::test {

extern const FormatRow kToyRow;
// The program's formats, and this one.
std::vector<FormatRow> with_toy();

// A checkpoint of two ranks: "w" in two tiles, one of them with every byte flipped and a copy on
// another rank; and "t", a transposed view into the storage of "w".
std::vector<std::pair<std::string, Bytes>> toy_files();

}  // namespace shw::test
