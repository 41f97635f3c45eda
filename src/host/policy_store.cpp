// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy_store.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "text_file.h"

namespace nvmepolicy {
namespace {

constexpr const char* main_name = "nvmepolicyd.toml";
constexpr const char* drives_name = "drives.toml";

struct Collection {
    /// Adds a file; one that is not there counts as an error only where it was asked for by name.
    bool add(PolicyText::Role role, const std::string& path, bool must_exist)
    {
        auto text = read_text_file(path, largest_policy_file);
        if (text) {
            files.push_back({role, path, *std::move(text), path.starts_with(vendor_directory + "/")});
            return true;
        }
        const bool missing = text.error().kind == RefusalKind::absent;
        if (!missing || must_exist)
            errors.push_back(text.error());
        return !missing;
    }

    /// The names of *.toml in a drop-in directory; the first directory that has a name keeps it.
    void collect_drop_ins(const std::string& directory, std::map<std::string, std::string>& by_name)
    {
        std::error_code error;
        std::filesystem::directory_iterator entry(directory, error);
        for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
            if (entry->path().extension() == ".toml" && !entry->path().filename().string().starts_with('.'))
                by_name.emplace(entry->path().filename().string(), entry->path().string());
        if (error && error != std::errc::no_such_file_or_directory)
            errors.push_back({directory, "", "cannot be listed: " + error.message(), RefusalKind::failed});
    }

    std::string vendor_directory;
    std::vector<PolicyText> files;
    std::vector<Refusal> errors;
};

} // namespace

PolicyReading load_policy(const PolicyPlaces& places, const std::optional<std::string>& file)
{
    Collection found{places.vendor_directory, {}, {}};
    if (std::error_code error; !std::filesystem::is_directory(places.vendor_directory, error))
        found.errors.push_back(
            {places.vendor_directory, "",
             "there is no such directory; a program that was moved without it does not know which drives hang",
             RefusalKind::absent});
    found.add(PolicyText::Role::drives, places.vendor_directory + "/" + drives_name, false);

    std::map<std::string, std::string> drop_ins;
    if (file) {
        found.add(PolicyText::Role::main, *file, true);
        found.collect_drop_ins(*file + ".d", drop_ins);
    } else {
        std::vector<std::string> directories = places.directories;
        directories.push_back(places.vendor_directory);
        for (const std::string& directory : directories)
            if (found.add(PolicyText::Role::main, directory + "/" + main_name, false))
                break;
        for (const std::string& directory : directories)
            found.collect_drop_ins(directory + "/" + main_name + ".d", drop_ins);
    }
    for (const auto& [name, path] : drop_ins)
        found.add(PolicyText::Role::drop_in, path, true);

    PolicyReading reading = read_policy(found.files);
    reading.errors.insert(reading.errors.begin(), found.errors.begin(), found.errors.end());
    return reading;
}

} // namespace nvmepolicy
