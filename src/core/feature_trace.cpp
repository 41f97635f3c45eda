// SPDX-License-Identifier: LGPL-2.1-or-later
// A line is "COMM-PID [CPU] FLAGS TIME: EVENT: TEXT". The name of a task is the only part that others choose: 15 bytes,
// newlines included. So a line is read from its end, every part must be where the kernel puts it, and half a line is not
// understood. Source: trace_print_context(), trace_raw_output_prep(), print_trace_line(), drivers/nvme/host/trace.h and
// trace.c.
#include "nvmepolicy/feature_trace.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace nvmepolicy {
namespace {

constexpr TraceRecord other{TraceRecord::Kind::other, 0, 0, 0};
constexpr TraceRecord unknown{TraceRecord::Kind::unknown, 0, 0, 0};
constexpr std::uint32_t feature_write_cache = 0x06;
constexpr std::uint32_t opcode_set_features = 0x09;
constexpr std::uint32_t opcode_get_features = 0x0a;

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/// Reads from the front; once something is not there, nothing more is.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] bool at_end() const { return good_ && text_.empty(); }

    /// The very text.
    Reader& skip(std::string_view expected)
    {
        good_ = good_ && text_.starts_with(expected);
        if (good_)
            text_.remove_prefix(expected.size());
        return *this;
    }
    /// The text, where it is there.
    bool accept(std::string_view expected)
    {
        const bool there = good_ && text_.starts_with(expected);
        if (there)
            text_.remove_prefix(expected.size());
        return there;
    }
    template <class Number>
    Reader& number(Number& value, int base = 10)
    {
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value, base);
        good_ = good_ && error == std::errc{};
        if (good_)
            text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        return *this;
    }
    /// With 0x, as "%#x" and "0x%x" print it.
    template <class Number>
    Reader& hexadecimal(Number& value)
    {
        return skip("0x").number(value, 16);
    }
    /// Everything up to `end`, and `end`.
    std::string_view until(std::string_view end)
    {
        const std::size_t at = text_.find(end);
        good_ = good_ && at != std::string_view::npos;
        if (!good_)
            return {};
        const std::string_view before = text_.substr(0, at);
        text_.remove_prefix(at + end.size());
        return before;
    }

private:
    std::string_view text_;
    bool good_ = true;
};

/// "CPU:1 [LOST 12 EVENTS]", and without a number where the kernel does not know how many.
bool tells_of_lost_events(std::string_view line)
{
    Reader reader(line);
    std::uint64_t number = 0;
    reader.skip("CPU:").number(number).skip(" [LOST ");
    if (reader.good() && !reader.accept("EVENTS]"))
        reader.number(number).skip(" EVENTS]");
    return reader.at_end();
}

/// What stands before an event: "  fio-1234    [001] d..1.  1234.567890". The name of the task in it may be anything.
bool is_context(std::string_view text)
{
    const std::size_t blank = text.rfind(' ');
    if (blank == std::string_view::npos)
        return false;
    std::string_view time = text.substr(blank + 1);
    const bool is_time = !time.empty() && std::ranges::all_of(time, [](char c) { return is_digit(c) || c == '.'; });
    // "-PID" and "[CPU]" come after the name, so the last of each is the kernel's.
    const std::size_t cpu = text.rfind(" [");
    if (!is_time || cpu == std::string_view::npos || cpu > blank)
        return false;
    std::uint32_t number = 0;
    Reader rest(text.substr(cpu));
    if (!rest.skip(" [").number(number).skip("] ").good())
        return false;
    std::string_view task = text.substr(0, cpu);
    if (task.ends_with(')')) // With record-tgid: "(   1200)", or "(-------)" where it is not known.
        task = task.substr(0, task.rfind('('));
    const std::size_t dash = task.rfind('-');
    return dash != std::string_view::npos && dash + 1 < task.size() && is_digit(task[dash + 1]);
}

struct Event {
    enum class Kind { setup, completion } kind;
    std::string_view text;
};

/// The last event that is named in the line: in its text no task has a say.
std::optional<Event> event_in(std::string_view line)
{
    constexpr std::string_view setup = ": nvme_setup_cmd: ";
    constexpr std::string_view completion = ": nvme_complete_rq: ";
    const auto after = [line](std::size_t at, std::string_view name) { return line.substr(at + name.size()); };
    const std::size_t sent = line.rfind(setup);
    const std::size_t back = line.rfind(completion);
    const bool is_setup = sent != std::string_view::npos && (back == std::string_view::npos || sent > back);
    const std::size_t at = is_setup ? sent : back;
    if (at == std::string_view::npos || !is_context(line.substr(0, at)))
        return std::nullopt;
    return is_setup ? Event{Event::Kind::setup, after(at, setup)} : Event{Event::Kind::completion, after(at, completion)};
}

/// "nvme0: disk=nvme0n1, qid=1, cmdid=28673, ": controller, queue and command.
Reader& read_address(Reader& reader, TraceRecord& record, int& queue)
{
    reader.skip("nvme").number(record.controller).skip(": ");
    if (reader.accept("disk="))
        reader.until(", ");
    return reader.skip("qid=").number(queue).skip(", cmdid=").number(record.command).skip(", ");
}

/// "nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1)" of a command on the admin queue.
TraceRecord::Kind kind_of_command(Reader& reader)
{
    using Kind = TraceRecord::Kind;
    const std::string_view name = reader.until(" ");
    if (!reader.good() || name.empty())
        return Kind::unknown;
    if (name.starts_with("0x")) { // An opcode without a name.
        std::uint32_t opcode = 0;
        Reader number(name);
        const bool is_number = number.hexadecimal(opcode).at_end();
        return is_number && opcode != opcode_set_features && opcode != opcode_get_features ? Kind::other : Kind::unknown;
    }
    const bool set = name == "nvme_admin_set_features";
    if (!set && name != "nvme_admin_get_features")
        return name.starts_with("nvme_") ? Kind::other : Kind::unknown;
    std::uint32_t feature = 0;
    std::uint32_t option = 0;
    std::uint32_t value = 0;
    reader.skip("fid=").hexadecimal(feature).skip(set ? ", sv=" : ", sel=").hexadecimal(option);
    reader.skip(", cdw11=").hexadecimal(value).skip(")");
    if (!reader.at_end())
        return Kind::unknown;
    if (feature != feature_write_cache)
        return Kind::other;
    return set ? Kind::set_write_cache : Kind::get_write_cache;
}

TraceRecord parse_setup(std::string_view text)
{
    Reader reader(text);
    TraceRecord record;
    int queue = 0;
    std::uint32_t namespace_id = 0;
    std::uint32_t flags = 0;
    std::uint64_t metadata = 0;
    read_address(reader, record, queue).skip("nsid=").number(namespace_id).skip(", flags=").hexadecimal(flags);
    reader.skip(", meta=").hexadecimal(metadata).skip(", cmd=(");
    if (!reader.good() || queue < 0)
        return unknown;
    if (queue != 0)
        return other;
    record.kind = kind_of_command(reader);
    const bool ours = record.kind == TraceRecord::Kind::set_write_cache || record.kind == TraceRecord::Kind::get_write_cache;
    return ours ? record : TraceRecord{record.kind, 0, 0, 0};
}

TraceRecord parse_completion(std::string_view text)
{
    Reader reader(text);
    TraceRecord record;
    int queue = 0;
    std::uint64_t result = 0;
    std::uint32_t number = 0;
    read_address(reader, record, queue).skip("res=").hexadecimal(result).skip(", retries=").number(number);
    reader.skip(", flags=").hexadecimal(number).skip(", status=").hexadecimal(record.status);
    if (!reader.at_end() || queue < 0)
        return unknown;
    if (queue != 0)
        return other;
    record.kind = TraceRecord::Kind::completed;
    return record;
}

} // namespace

TraceRecord parse_trace_line(std::string_view line)
{
    if (line.ends_with('\n'))
        line.remove_suffix(1);
    if (tells_of_lost_events(line))
        return {TraceRecord::Kind::lost, 0, 0, 0};
    const auto event = event_in(line);
    if (!event)
        return unknown;
    return event->kind == Event::Kind::setup ? parse_setup(event->text) : parse_completion(event->text);
}

} // namespace nvmepolicy
