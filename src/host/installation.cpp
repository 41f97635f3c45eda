// SPDX-License-Identifier: LGPL-2.1-or-later
#include "installation.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace nvmepolicy {

Installation this_installation()
{
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    Installation here{"/usr/lib/nvmepolicyd", "/run/nvmepolicyd"};
    if (!error && program.has_parent_path())
        here.vendor_directory = (program.parent_path() / "../lib/nvmepolicyd").lexically_normal().string();
    if (const char* directory = ::secure_getenv("RUNTIME_DIRECTORY"); directory && *directory)
        here.runtime_directory = std::string_view(directory).substr(0, std::string_view(directory).find(':'));
    return here;
}

} // namespace nvmepolicy
