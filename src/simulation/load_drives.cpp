// SPDX-License-Identifier: LGPL-2.1-or-later
#include "load_drives.h"

#include <algorithm>
#include <filesystem>

#include "host/text_file.h"

namespace nvmepolicy {

LoadedDrives load_drives(const std::string& file_or_directory)
{
    LoadedDrives loaded;
    std::vector<std::string> files;
    std::error_code error;
    if (std::filesystem::is_directory(file_or_directory, error)) {
        std::filesystem::directory_iterator entry(file_or_directory, error);
        for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
            if (entry->path().extension() == ".json")
                files.push_back(entry->path().string());
        std::ranges::sort(files);
        if (error || files.empty())
            loaded.errors.push_back(
                {file_or_directory, "", error ? error.message() : "no drive files (*.json) in here", RefusalKind::absent});
    } else {
        files.push_back(file_or_directory);
    }

    auto host = std::make_unique<SimulatedHost>();
    for (const std::string& file : files) {
        const auto text = read_text_file(file, largest_drive_file);
        const auto drive = text ? parse_drive_file(file, *text) : Result<DriveFile>(text.error());
        if (drive)
            host->add(*drive);
        else
            loaded.errors.push_back(drive.error());
    }
    if (loaded.errors.empty())
        loaded.host = std::move(host);
    return loaded;
}

} // namespace nvmepolicy
