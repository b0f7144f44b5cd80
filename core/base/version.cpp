#include "core/base/version.h"

namespace shw {

const char* const kProgramVersion = SHW_VERSION;

}  // namespace shw
