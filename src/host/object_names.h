// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's names of NVMe objects. They tell what kind of thing something is, never which one belongs to which:
// nvme0n1 need not belong to nvme0.
#pragma once

#include <string>
#include <string_view>

namespace nvmepolicy {

[[nodiscard]] bool is_controller(std::string_view name); ///< nvme3
[[nodiscard]] bool is_disk(std::string_view name);       ///< nvme3n1: a plain disk or a multipath head
[[nodiscard]] bool is_path(std::string_view name);       ///< nvme3c4n1: a hidden path disk
[[nodiscard]] bool is_subsystem(std::string_view name);  ///< nvme-subsys3
/// nvme2 before nvme10.
[[nodiscard]] bool natural_order(const std::string& a, const std::string& b);

} // namespace nvmepolicy
