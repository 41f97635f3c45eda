// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

inline const ControllerId one{"nqn.test:one", "SERIAL1", 1, {}};
inline const ControllerId other{"nqn.test:other", "SERIAL2", 2, {}};

/// What earlier versions wrote.
inline const std::string schema_1 = R"({
 "schema": 1,
 "trials": [
  {
   "boot_id": "boot-1",
   "clean": false,
   "cntlid": 1,
   "path": "",
   "serial": "SERIAL1",
   "subsystem_nqn": "nqn.test:one"
  }
 ],
 "trips": [
  {
   "at": 7,
   "cntlid": 2,
   "path": "",
   "reason": "because",
   "serial": "SERIAL2",
   "subsystem_nqn": "nqn.test:other"
  }
 ]
}
)";

} // namespace nvmepolicy
