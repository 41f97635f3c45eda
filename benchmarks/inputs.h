// SPDX-License-Identifier: LGPL-2.1-or-later
// What the benchmarks work on: the captured drives and the configuration that comes with the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/text_file.h"
#include "nvmepolicy/drive_file.h"
#include "nvmepolicy/policy_file.h"

namespace nvmepolicy {

/// A benchmark of anything but the right inputs would be worse than none.
template <class T>
T must(const Result<T>& result)
{
    if (!result) {
        std::fprintf(stderr, "%s\n", result.error().text().c_str());
        std::exit(1);
    }
    return *result;
}

inline std::string source_file(const std::string& path)
{
    return must(read_text_file(std::string(NVMEPOLICY_SOURCE_DIR) + "/" + path, std::size_t{1024} * 1024));
}

/// In the order of the directory's names, so that every run has the same mixture.
inline std::vector<DriveFile> all_drives()
{
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(NVMEPOLICY_SOURCE_DIR "/tests/drives"))
        if (entry.path().extension() == ".json")
            names.push_back("tests/drives/" + entry.path().filename().string());
    std::sort(names.begin(), names.end());
    std::vector<DriveFile> drives;
    drives.reserve(names.size());
    for (const std::string& name : names)
        drives.push_back(must(parse_drive_file(name, source_file(name))));
    return drives;
}

inline std::vector<PolicyText> vendor_policy_texts()
{
    return {{PolicyText::Role::drives, "drives.toml", source_file("rules/drives.toml"), true},
            {PolicyText::Role::main, "nvmepolicyd.toml", source_file("config/nvmepolicyd.toml"), true}};
}

inline Policy vendor_policy()
{
    PolicyReading reading = read_policy(vendor_policy_texts());
    for (const Refusal& error : reading.errors)
        must(Result<int>(error));
    return std::move(reading.policy);
}

} // namespace nvmepolicy
