// The JSON that describes the weights or constants of an archive of torch.export (torch 2.9 and
// later, torch/_export/serde/schema.py). The file is not trusted.
//
//   config  = {"config": {FQN: payload}}
//   payload = {"path_name": "weight_0", "use_pickle": bool, "tensor_meta": meta | null}
//   meta    = {"dtype": number, "sizes": [int], "strides": [int], "storage_offset": int,
//              "requires_grad": bool}
//   int     = {"as_int": number}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct ExportedTensor {
  std::string fqn;
  std::string record;         // in the folder of the config
  std::string not_read = {};  // why its bytes are not read: "is pickled"; otherwise empty
  Dtype dtype = Dtype::kUnknown;
  Extents sizes = {}, strides = {};
  std::int64_t offset = 0;  // in elements of the storage
  bool requires_grad = false;
};

// In the order of the file. kDamaged if it is not such a config.
Result<std::vector<ExportedTensor>> parse_export_config(std::string_view text,
                                                        const std::string& file);

}  // namespace shw
