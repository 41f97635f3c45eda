// SPDX-License-Identifier: LGPL-2.1-or-later
// kernel-transcript: plays a script on the simulated kernel and prints what can be seen of it from outside. The VM case
// same-as-simulated plays the same script on a real one; tests/vm/guest/kernel_script.py describes scripts.
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <sstream>

#include "host/text_file.h"
#include "nvmepolicy/decode.h"
#include "simulation/simulated_kernel.h"

namespace {

using namespace nvmepolicy;

/// Stops where a script says it wants to look.
class PausedTime : public Instantly {
public:
    std::function<void(const std::string&)> at_step;
    void step(const std::string& what) override
    {
        if (at_step)
            at_step(what);
    }
    bool sleep_until(const std::string& what, const std::function<bool()>& condition, std::optional<Milliseconds>) override
    {
        step(what);
        return condition();
    }
};

struct Pause {
    const char* name;
    const char* step; ///< how the simulated kernel calls the moment
};
constexpr auto pauses = std::to_array<Pause>({
    {"identify", " is connecting"},
    {"table", " executes set-features"},
    {"live", " is programmed and not live yet"},
});

std::string unescaped(std::string_view text)
{
    constexpr std::string_view letters = "nts0";
    constexpr std::string_view meant("\n\t \0", 4);
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '\\' && i + 1 < text.size();
        const auto letter = escape ? letters.find(text[i + 1]) : std::string_view::npos;
        plain += letter == std::string_view::npos ? text[i] : meant[letter];
        i += letter == std::string_view::npos ? 0 : 1;
    }
    return plain;
}

std::string show_table(const ApstFeature& table)
{
    std::string text = table.enabled ? "apste=1" : "apste=0";
    for (std::size_t i = 0; i < table.entries.size(); ++i)
        if (table.entries[i].raw != 0)
            text += fmt::format(" {}:{:#x}", i, table.entries[i].raw);
    return text;
}

class Player {
public:
    Player(KernelVersion version, std::string drives, std::vector<std::string> lines)
        : drives_(std::move(drives))
        , lines_(std::move(lines))
    {
        kernel_.version = version;
        kernel_.announce = [this](const Uevent& event) {
            if (event.action == "add") {
                Slot& slot = slot_of(plugging_);
                slot.controller = kernel_.find(event.name);
                slot.controller->refuses_apst = slot.refuses;
            }
            events_.push_back(fmt::format("uevent {} {} {}", event.action, slug_of(event.name), event.nvme_event));
        };
        kernel_.programmed = [this](const SimulatedController& c, const ApstFeature& table, std::uint32_t status) {
            commands_.push_back(fmt::format("set-features {} {} status={:#x}", slug_of(c.name), show_table(table), status));
        };
        time_.at_step = [this](const std::string& what) { reached(what); };
    }

    /// Until the end, or `continue`.
    void play()
    {
        while (next_ < lines_.size()) {
            const std::string line = lines_[next_++];
            if (line.empty() || line.starts_with('#'))
                continue;
            say("> " + line);
            if (line == "continue")
                return;
            std::istringstream words(line);
            std::string verb;
            std::string subject;
            words >> verb >> subject >> std::ws;
            std::string rest;
            std::getline(words, rest);
            act(verb, subject, rest);
            tell();
        }
    }

private:
    struct Slot {
        DriveFile drive;
        std::optional<DriveFile> firmware; ///< for the next reset
        bool refuses = false;
        bool node_is_open = false;
        SimulatedKernel::Held controller;
    };

    void act(const std::string& verb, const std::string& subject, const std::string& rest)
    {
        if (verb == "parameter")
            return set_parameter(subject, rest);
        if (verb == "pause") {
            pause_ = subject;
            return;
        }
        Slot& slot = slot_of(subject);
        const SimulatedKernel::Held& c = slot.controller;
        if (verb == "plug")
            plug(slot, subject);
        else if (verb == "unplug")
            kernel_.remove(c);
        else if (verb == "reset" || verb == "reconnect")
            kernel_.reset(c, std::exchange(slot.firmware, std::nullopt));
        else if (verb == "write")
            say("  write " + shown(kernel_.write_text(c, unescaped(rest))));
        else if (verb == "read")
            say("  value " + shown(kernel_.call(c, "read-tolerance")));
        else if (verb == "get-feature")
            say("  feature " + shown_feature(slot));
        else if (verb == "open" || verb == "close")
            slot.node_is_open = verb == "open";
        else if (verb == "look")
            return look(c);
        else if (verb == "firmware")
            slot.firmware = changed(slot, rest);
        else if (verb == "refuse")
            slot.refuses = rest == "on";
        else if (verb == "lose-table")
            c->apst = {};
        else
            throw std::runtime_error("no verb " + verb);
        if (slot.controller)
            slot.controller->refuses_apst = slot.refuses;
        tell();
        if (verb == "plug" || verb == "unplug" || verb == "reset" || verb == "reconnect")
            say("  state " + (c->gone ? "gone" : show(c->state)));
    }

    void plug(Slot& slot, const std::string& slug)
    {
        plugging_ = slug;
        kernel_.probe({slot.drive, {"nqn.2026-11.org.nvmepolicyd.test:" + slug, slug, 1, {}}});
        tell();
        say("  name " + slot.controller->name);
    }

    void look(const SimulatedKernel::Held& c)
    {
        say("  state " + shown(kernel_.call(c, "read-attribute state")));
        say("  firmware " + shown(kernel_.call(c, "read-attribute firmware_rev")));
        say(std::string("  tolerance file ") + (c->tolerance_file ? "there" : "absent"));
    }

    void set_parameter(const std::string& name, const std::string& value)
    {
        auto& machine = kernel_.machine;
        if (name == "force_apst") {
            machine.force_apst = value == "Y";
            return;
        }
        const std::uint64_t number = std::stoull(value);
        if (name == "default_ps_max_latency_us")
            machine.default_ps_max_latency_us = number;
        else if (name == "apst_primary_timeout_ms")
            machine.apst.primary_timeout_ms = number;
        else if (name == "apst_primary_latency_tol_us")
            machine.apst.primary_latency_tol_us = number;
        else if (name == "apst_secondary_timeout_ms")
            machine.apst.secondary_timeout_ms = number;
        else if (name == "apst_secondary_latency_tol_us")
            machine.apst.secondary_latency_tol_us = number;
        else
            throw std::runtime_error("no parameter " + name);
    }

    /// As softnvme's `activate`.
    DriveFile changed(Slot& slot, const std::string& how)
    {
        DriveFile drive = slot.firmware.value_or(slot.controller ? slot.controller->drive : slot.drive);
        std::istringstream words(how);
        for (std::string word; words >> word;) {
            const std::string value = word.substr(word.find('=') + 1);
            if (word.starts_with("firmware="))
                drive.firmware = value;
            else if (word.starts_with("like=")) {
                const DriveFile& other = slot_of(value).drive;
                drive.power_states = other.power_states;
                drive.npss = other.npss;
                drive.apsta = other.apst_supported() ? 1 : 0;
            } else if (word.starts_with("apsta="))
                drive.apsta = value == "0" ? 0 : 1;
            else
                throw std::runtime_error("no " + word);
        }
        return slot.drive = drive;
    }

    void reached(const std::string& what)
    {
        for (const Pause& pause : pauses)
            if (pause_ == pause.name && what.ends_with(pause.step)) {
                pause_.clear();
                tell();
                play();
            }
    }

    static std::string shown(const KernelAnswer& answer)
    {
        if (answer.kind == KernelAnswer::Kind::error_number)
            return ::strerrorname_np(static_cast<int>(answer.number));
        if (answer.kind == KernelAnswer::Kind::nvme_status)
            return fmt::format("status={:#x}", answer.number);
        std::string text(answer.buffer.begin(), answer.buffer.end());
        return text.empty() ? "ok" : text.substr(0, text.find('\n'));
    }

    std::string shown_feature(const Slot& slot)
    {
        const SimulatedKernel::Held& c = slot.controller;
        if (!slot.node_is_open && kernel_.find(c->name) != c)
            return "ENOENT";
        if (!slot.node_is_open && c->state != ControllerState::live)
            return "EAGAIN"; // nvme_dev_open()
        const KernelAnswer answer = kernel_.call(c, "get-feature 12 0 256");
        const auto table = decode_apst_feature("", answer.buffer, answer.number);
        return answer.kind == KernelAnswer::Kind::ok && table ? show_table(*table) : shown(answer);
    }

    std::string slug_of(const std::string& name)
    {
        // The older of two of that name has left before the younger came.
        std::string found;
        std::uint64_t object = 0;
        for (const auto& [slug, slot] : slots_)
            if (slot.controller && slot.controller->name == name && slot.controller->object > object) {
                found = slug;
                object = slot.controller->object;
            }
        return found;
    }

    Slot& slot_of(const std::string& slug)
    {
        if (const auto found = slots_.find(slug); found != slots_.end())
            return found->second;
        const std::string file = drives_ + "/" + slug + ".json";
        const auto text = read_text_file(file, largest_drive_file);
        const auto drive = text ? parse_drive_file(file, *text) : Result<DriveFile>(text.error());
        if (!drive)
            throw std::runtime_error(drive.error().text());
        return slots_[slug] = Slot{*drive, {}, false, false, nullptr};
    }

    /// What has happened since, by kind: a real kernel's events and its commands come on different ways.
    void tell()
    {
        for (auto* kind : {&events_, &commands_})
            for (const std::string& line : std::exchange(*kind, {}))
                say("  " + line);
    }
    static void say(const std::string& line) { fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1)); }

    std::string drives_;
    std::vector<std::string> lines_;
    std::size_t next_ = 0;
    PausedTime time_;
    SimulatedKernel kernel_{time_};
    std::map<std::string, Slot> slots_;
    std::string plugging_;
    std::string pause_;
    std::vector<std::string> events_;
    std::vector<std::string> commands_;
};

} // namespace

int main(int argc, char** argv)
{
    if (argc != 4) {
        fmt::print(stderr, "usage: kernel-transcript 6.1|6.12 DRIVES SCRIPT\n");
        return 2;
    }
    try {
        std::ifstream file(argv[3]);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);)
            lines.push_back(line);
        const auto version = std::string_view(argv[1]) == "6.1" ? KernelVersion::linux_6_1 : KernelVersion::linux_6_12;
        Player(version, argv[2], std::move(lines)).play();
    } catch (const std::exception& error) {
        fmt::print(stderr, "kernel-transcript: {}\n", error.what());
        return 1;
    }
    return 0;
}
