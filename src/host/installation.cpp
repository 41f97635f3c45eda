// SPDX-License-Identifier: LGPL-2.1-or-later
#include "installation.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace nvmepolicy {
namespace {

/// What systemd made for RuntimeDirectory= and its like: a list, of which the first is ours.
std::string directory(const char* variable, const char* otherwise)
{
    const char* set = ::secure_getenv(variable);
    const std::string_view list = set && *set ? set : otherwise;
    return std::string(list.substr(0, list.find(':')));
}

} // namespace

Installation this_installation()
{
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    Installation here{"/usr/lib/nvmepolicyd", directory("RUNTIME_DIRECTORY", "/run/nvmepolicyd"),
                      directory("STATE_DIRECTORY", "/var/lib/nvmepolicyd")};
    if (!error && program.has_parent_path())
        here.vendor_directory = (program.parent_path() / "../lib/nvmepolicyd").lexically_normal().string();
    return here;
}

} // namespace nvmepolicy
