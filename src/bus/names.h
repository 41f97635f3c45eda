// SPDX-License-Identifier: LGPL-2.1-or-later
// The names on D-Bus that are promised outside; dbus/*.xml describes what is behind them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nvmepolicy::bus {

inline constexpr const char* service_name = "org.nvmepolicy1";
inline constexpr const char* root_path = "/org/nvmepolicy1";
inline constexpr const char* manager_interface = "org.nvmepolicy1.Manager";
inline constexpr const char* controller_interface = "org.nvmepolicy1.Controller";
inline constexpr const char* subsystem_interface = "org.nvmepolicy1.Subsystem";

/// Of a hold, in bytes.
inline constexpr std::size_t longest_reason = 512;
inline constexpr std::size_t longest_application_id = 256;

/// Errors that callers can tell apart.
namespace error {
inline constexpr const char* not_authorized = "org.nvmepolicy1.Error.NotAuthorized";
inline constexpr const char* no_such_profile = "org.nvmepolicy1.Error.NoSuchProfile";
inline constexpr const char* no_such_controller = "org.nvmepolicy1.Error.NoSuchController";
inline constexpr const char* no_such_hold = "org.nvmepolicy1.Error.NoSuchHold";
inline constexpr const char* invalid_argument = "org.nvmepolicy1.Error.InvalidArgument";
inline constexpr const char* configuration_invalid = "org.nvmepolicy1.Error.ConfigurationInvalid";
inline constexpr const char* failed = "org.nvmepolicy1.Error.Failed";
} // namespace error

/// nvme0 -> /org/nvmepolicy1/controller/nvme0
[[nodiscard]] std::string controller_path(std::string_view name);
/// nvme-subsys0 -> /org/nvmepolicy1/subsystem/nvme_subsys0
[[nodiscard]] std::string subsystem_path(std::string_view name);
/// The name of the controller that is at such a path; empty: it is no path of a controller.
[[nodiscard]] std::string controller_of(std::string_view path);

} // namespace nvmepolicy::bus
