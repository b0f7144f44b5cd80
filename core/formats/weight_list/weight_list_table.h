// Rows of the format table: models of CTranslate2, ONNX and OpenVINO, and checkpoints of MindSpore.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kCtranslate2Row;
extern const FormatRow kMindsporeRow;
extern const FormatRow kOnnxRow;
extern const FormatRow kOpenvinoRow;

}  // namespace shw
