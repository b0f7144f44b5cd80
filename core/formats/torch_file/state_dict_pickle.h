// Writes the pickle of a state dict, nested by its entries' paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/formats/format_writer.h"
#include "core/formats/torch_file/state_dict.h"

namespace shw {

// Text keys form dicts, indices form lists, as torch's set_element does. The storage of tensor i is
// data/i, complete and row-major. `plain`: the opcodes of every object. `forms`: keys that are
// written as numbers or words (True, False, None), and containers and tensors that are not plain.
// kUnsupported if two entries contradict each other.
Result<Bytes> pickle_state_dict(const Outputs& outputs, const std::vector<std::string>& plain,
                                const StateForms& forms = {});

}  // namespace shw
