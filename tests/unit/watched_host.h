// SPDX-License-Identifier: LGPL-2.1-or-later
// A host in front of another one that counts the calls and can come between any two of them: to answer in its place, to
// change the world behind it, or to end the program there. So "at every step" is a loop over numbers.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "host/ledger_store.h"
#include "nvmepolicy/drive_file.h"
#include "reconcile/round.h"
#include "simulation/simulated_host.h"

namespace nvmepolicy {

/// What is answered instead of asking the host behind.
using Answer = std::variant<std::monostate, Refusal, std::string>;

/// Thrown between two calls, as a crash that leaves everything as it is.
struct Crash {};

class WatchedHost : public Host {
public:
    explicit WatchedHost(Host& behind) : behind_(behind) {}

    /// Called before each call, with its name: "serial", "list power", "identify", "write-tolerance 25000", …
    std::function<Answer(const std::string& call, std::size_t number)> before;
    /// Called after each write that went through.
    std::function<void()> after_write;

    std::vector<std::string> calls;
    std::vector<std::string> writes; ///< "nvme0 25000", in order, those that reached the host behind

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return behind_.simulated(); }

    Answer note(const std::string& call)
    {
        const std::lock_guard lock(mutex_); // a round and a restore ask from several threads
        calls.push_back(call);
        return before ? before(call, calls.size() - 1) : Answer{};
    }
    void note_write(const std::string& write)
    {
        const std::lock_guard lock(mutex_);
        writes.push_back(write);
        if (after_write)
            after_write();
    }
    [[nodiscard]] std::size_t count(const std::string& call) const
    {
        return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
    }

private:
    Host& behind_;
    std::recursive_mutex mutex_; ///< what is called in between may ask again
};

class WatchedDirectory : public Directory {
public:
    WatchedDirectory(WatchedHost& host, std::unique_ptr<Directory> behind) : host_(host), behind_(std::move(behind)) {}
    [[nodiscard]] const std::string& path() const override { return behind_->path(); }
    [[nodiscard]] std::uint64_t object() const override { return behind_->object(); }
    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
    {
        Answer answer = host_.note(attribute);
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return *text;
        return behind_->read(attribute);
    }
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override
    {
        Answer answer = host_.note("list " + below);
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return std::vector{*text};
        return behind_->list(below);
    }
    [[nodiscard]] const Directory& behind() const { return *behind_; }

private:
    WatchedHost& host_;
    std::unique_ptr<Directory> behind_;
};

class WatchedDevice : public ControllerDevice {
public:
    WatchedDevice(WatchedHost& host, std::string name, std::unique_ptr<ControllerDevice> behind)
        : host_(host)
        , name_(std::move(name))
        , behind_(std::move(behind))
    {
    }
    [[nodiscard]] Result<std::vector<std::uint8_t>> identify_controller() override
    {
        Answer answer = host_.note("identify");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return std::vector<std::uint8_t>(text->begin(), text->end());
        return behind_->identify_controller();
    }
    [[nodiscard]] Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length) override
    {
        Answer answer = host_.note("get-feature");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return FeatureReply{1, {text->begin(), text->end()}};
        return behind_->get_feature(feature, select, length);
    }
    [[nodiscard]] Result<std::string> read_attribute(const std::string& attribute) override
    {
        Answer answer = host_.note("read-attribute " + attribute);
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return *text;
        return behind_->read_attribute(attribute);
    }
    [[nodiscard]] Result<std::string> read_tolerance() override
    {
        Answer answer = host_.note("read-tolerance");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return *text;
        return behind_->read_tolerance();
    }
    [[nodiscard]] Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) override
    {
        Answer answer = host_.note("write-tolerance " + tolerance.kernel_text());
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        auto written = behind_->write_tolerance(tolerance, still_wanted);
        if (written)
            host_.note_write(name_ + " " + tolerance.kernel_text());
        return written;
    }

private:
    WatchedHost& host_;
    std::string name_;
    std::unique_ptr<ControllerDevice> behind_;
};

inline Result<std::unique_ptr<Directory>> WatchedHost::open_directory(const std::string& path)
{
    Answer answer = note("open " + path);
    if (auto* refusal = std::get_if<Refusal>(&answer))
        return *refusal;
    auto directory = behind_.open_directory(path);
    if (!directory)
        return directory.error();
    return std::unique_ptr<Directory>(std::make_unique<WatchedDirectory>(*this, *std::move(directory)));
}

inline std::unique_ptr<ControllerDevice> WatchedHost::open_device(const Directory& directory, const std::string& name)
{
    return std::make_unique<WatchedDevice>(
        *this, name, behind_.open_device(dynamic_cast<const WatchedDirectory&>(directory).behind(), name));
}

// ---------------------------------------------------------------------------------------------------------------------

inline LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}

inline PowerState state_of(int index, std::int64_t entry_us, std::int64_t exit_us, bool operational)
{
    PowerState s;
    s.index = index;
    s.max_power = Microwatts{operational ? 6'000'000 : 50'000};
    if (entry_us != 0)
        s.entry_latency = Microseconds{entry_us};
    if (exit_us != 0)
        s.exit_latency = Microseconds{exit_us};
    s.operational = operational;
    return s;
}

/// Samsung 990 EVO Plus as in tests/drives: PS3 1600 + 4600 us, PS4 1600 + 43000 us.
inline DriveFile evo_plus()
{
    DriveFile drive;
    drive.slug = "samsung-990-evo-plus-4tb";
    drive.model = "Samsung SSD 990 EVO Plus 4TB";
    drive.firmware = "2B2QKXG7";
    drive.pci_vendor_id = 0x144d;
    drive.pci_device_id = 0xa80d;
    drive.npss = 4;
    drive.power_states = {state_of(0, 0, 0, true), state_of(1, 1700, 2100, true), state_of(2, 3000, 6500, true),
                          state_of(3, 1600, 4600, false), state_of(4, 1600, 43000, false)};
    return drive;
}

/// SK hynix BC501: PS3 1000 + 1000 us, PS4 1000 + 5000 us.
inline DriveFile bc501()
{
    DriveFile drive;
    drive.slug = "skhynix-bc501a-128gb";
    drive.model = "BC501A NVMe SK hynix 128GB";
    drive.firmware = "80002101";
    drive.npss = 4;
    drive.power_states = {state_of(0, 0, 0, true), state_of(1, 0, 0, true), state_of(2, 0, 0, true),
                          state_of(3, 1000, 1000, false), state_of(4, 1000, 5000, false)};
    return drive;
}

/// What a round knows of a simulated machine.
inline Circumstances circumstances(const SimulatedHost& host, const std::string& profile = "balanced")
{
    Circumstances now;
    now.machine = host.machine;
    now.wish.profile = profile;
    return now;
}

inline Refusal refusal_of(RefusalKind kind)
{
    return {"somewhere", "", "a fault put here by the test", kind};
}

constexpr RefusalKind every_kind[] = {RefusalKind::invalid,   RefusalKind::absent, RefusalKind::gone,
                                      RefusalKind::try_later, RefusalKind::denied, RefusalKind::unsupported,
                                      RefusalKind::timed_out, RefusalKind::failed};

inline const char* word(RefusalKind kind)
{
    switch (kind) {
    case RefusalKind::invalid: return "invalid";
    case RefusalKind::absent: return "absent";
    case RefusalKind::gone: return "gone";
    case RefusalKind::try_later: return "try_later";
    case RefusalKind::denied: return "denied";
    case RefusalKind::unsupported: return "unsupported";
    case RefusalKind::timed_out: return "timed_out";
    case RefusalKind::failed: break;
    }
    return "failed";
}

inline void PrintTo(const LatencyTolerance& tolerance, std::ostream* out)
{
    *out << tolerance.kernel_text();
}

} // namespace nvmepolicy
