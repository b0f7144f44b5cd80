// The pickle of a state dict that is to be written: nested as its entries' paths say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/formats/format_writer.h"
#include "core/formats/torch_file/state_dict.h"

namespace shw {

// Dicts keyed by what is text in the paths, lists where they have indices, as torch's set_element
// builds them. The storage of tensor i is data/i, all of it and row-major. `plain`: the opcodes of
// every object. `forms`: keys whose text is written as the number or word (True, False, None)
// that it tells, and what is no plain dict or tensor. kUnsupported where two entries contradict
// each other.
Result<Bytes> pickle_state_dict(const Outputs& outputs, const std::vector<std::string>& plain,
                                const StateForms& forms = {});

}  // namespace shw
