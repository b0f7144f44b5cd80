#include "core/formats/pickle/pickle.h"

#include "core/formats/pickle/pickle_opcodes.h"

namespace shw {

Result<PickleTree> decode_pickle(BytesView bytes, const std::string& file, std::uint64_t base,
                                 const PickleLimits& limits) {
  NoShortcut none;
  PickleMachine<NoShortcut> machine(bytes, file, base, limits, none);
  SHW_CHECK(machine.run());
  return machine.take();
}

}  // namespace shw
