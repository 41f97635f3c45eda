// SPDX-License-Identifier: LGPL-2.1-or-later
// Latencies and power as people write and read them. Everything is exact: a text either is a whole number of
// microseconds or is refused, and what is shown can be read back.
#include "nvmepolicy/units.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "duration.h"
#include "nvmepolicy/wording.h"

namespace nvmepolicy {

namespace {

struct TimeUnit {
    std::string_view name;
    std::int64_t microseconds;
    std::size_t decimals; ///< that many digits after the point are still whole microseconds
};
constexpr std::array time_units{TimeUnit{"us", 1, 0}, TimeUnit{"ms", 1'000, 3}, TimeUnit{"s", 1'000'000, 6}};

constexpr std::string_view a_duration = R"(a duration with its unit (us, ms or s), for example "25ms", or 0)";
constexpr std::string_view a_bound = R"(a duration with its unit (us, ms or s), for example "25ms", "any", or 0)";
constexpr std::string_view a_tolerance =
    R"(a duration with its unit (us, ms or s), for example 25ms, a whole number of microseconds, any, or auto)";

// std::isdigit depends on the locale, and is undefined for bytes above 127 in a signed char.
bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view take_digits(std::string_view& text)
{
    const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
    const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(digits.size());
    return digits;
}

/// The number, or none where it is above `most`, whatever the number of digits.
std::optional<std::int64_t> bounded(std::string_view digits, std::int64_t most)
{
    std::int64_t number = 0;
    for (const char digit : digits) {
        number = number * 10 + (digit - '0');
        if (number > most)
            return std::nullopt;
    }
    return number;
}

std::string above(Microseconds longest)
{
    return fmt::format("above {} us", longest.count());
}

Refusal refused(const std::string& where, std::string_view text, const std::string& problem, std::string_view allowed)
{
    return {where, printable(text), fmt::format("{}; allowed: {}", problem, allowed), RefusalKind::invalid};
}

/// A count of thousandths as a decimal number without trailing zeros: 4600 and 1000 give 4.6.
std::string decimal(std::int64_t count, std::int64_t one)
{
    // Unsigned, since the most negative number has no positive counterpart.
    const auto magnitude = count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
    const auto divisor = static_cast<std::uint64_t>(one);
    std::string text = fmt::format("{}{}", count < 0 ? "-" : "", magnitude / divisor);
    if (std::uint64_t rest = magnitude % divisor; rest != 0) {
        text += '.';
        for (std::uint64_t place = divisor / 10; rest != 0; place /= 10) {
            text += static_cast<char>('0' + rest / place);
            rest %= place;
        }
    }
    return text;
}

} // namespace

DurationReading read_duration(std::string_view text, Microseconds longest)
{
    const auto problem = [](std::string text_of_it) { return DurationReading{{}, std::move(text_of_it)}; };

    if (text.empty())
        return problem("is empty");
    if (is_blank(text.front()) || is_blank(text.back()))
        return problem("has blanks around it");
    if (text == "0")
        return {Microseconds{0}, {}};
    if (text.front() == '-' && text.size() > 1 && is_digit(text[1]))
        return problem("cannot be negative");

    const std::string_view whole = take_digits(text);
    if (whole.empty())
        return problem("not a duration");
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take_digits(text);
        if (fraction.empty())
            return problem("has no digits after the point");
    }
    if (text.empty())
        return problem("has no unit");
    // One blank, because that is how show() writes it and people copy from there.
    if (text.starts_with(' '))
        text.remove_prefix(1);
    const auto unit =
        std::find_if(time_units.begin(), time_units.end(), [&](const TimeUnit& candidate) { return candidate.name == text; });
    if (unit == time_units.end())
        return problem(std::all_of(text.begin(), text.end(), is_letter)
                           ? fmt::format("has the unknown unit \"{}\"", printable(text))
                           : std::string("not a duration"));

    while (fraction.ends_with('0'))
        fraction.remove_suffix(1);
    if (fraction.size() > unit->decimals)
        return problem("not a whole number of microseconds");
    const std::optional<std::int64_t> units = bounded(whole, longest.count());
    if (!units)
        return problem(above(longest));
    std::int64_t microseconds = *units * unit->microseconds; // `longest` is far below 2^63 / 10^6
    std::int64_t digit_value = unit->microseconds;
    for (const char digit : fraction) {
        digit_value /= 10;
        microseconds += (digit - '0') * digit_value;
    }
    if (microseconds > longest.count())
        return problem(above(longest));
    return {Microseconds{microseconds}, {}};
}

BoundReading read_bound(std::string_view text)
{
    if (text == "any")
        return {LatencyBound{}, {}};
    DurationReading reading = read_duration(text, largest_tolerance);
    if (!reading.duration)
        return {{}, std::move(reading.problem)};
    return {LatencyBound{reading.duration}, {}};
}

std::string LatencyTolerance::kernel_text() const
{
    if (const std::optional<Microseconds> at_most = limit())
        return fmt::format("{}", at_most->count());
    return is_automatic() ? "auto" : "any";
}

LatencyBound stricter(const LatencyBound& a, const LatencyBound& b)
{
    if (!a.limit)
        return b;
    if (!b.limit)
        return a;
    return *a.limit < *b.limit ? a : b;
}

Result<Microseconds> parse_duration(const std::string& where, std::string_view text)
{
    const DurationReading reading = read_duration(text, largest_tolerance);
    if (!reading.duration)
        return refused(where, text, reading.problem, a_duration);
    return *reading.duration;
}

Result<LatencyBound> parse_bound(const std::string& where, std::string_view text)
{
    const BoundReading reading = read_bound(text);
    if (!reading.bound)
        return refused(where, text, reading.problem, a_bound);
    return *reading.bound;
}

Result<LatencyTolerance> parse_tolerance(const std::string& where, std::string_view text)
{
    if (text == "any")
        return LatencyTolerance::any();
    if (text == "auto")
        return LatencyTolerance::automatic();
    if (!text.empty() && std::all_of(text.begin(), text.end(), is_digit)) {
        if (text.size() > 1 && text.front() == '0')
            return refused(where, text, "a leading zero, which makes it octal in the kernel's file", a_tolerance);
        if (text == "2147483647") // the kernel's number for it
            return LatencyTolerance::any();
        const std::optional<std::int64_t> number = bounded(text, largest_tolerance.count());
        if (!number)
            return refused(where, text, above(largest_tolerance), a_tolerance);
        return LatencyTolerance::of(Microseconds{*number});
    }
    const DurationReading reading = read_duration(text, largest_tolerance);
    if (!reading.duration)
        return refused(where, text, reading.problem, a_tolerance);
    return LatencyTolerance::of(*reading.duration);
}

std::string show(Microseconds latency)
{
    const std::int64_t count = latency.count();
    if (count == 0)
        return "0";
    if (count >= 1'000'000)
        return decimal(count, 1'000'000) + " s";
    if (count >= 1'000)
        return decimal(count, 1'000) + " ms";
    return decimal(count, 1) + " us";
}

std::string show(Microwatts power)
{
    if (power.count >= 1'000'000)
        return decimal(power.count, 1'000'000) + " W";
    return decimal(power.count, 1'000) + " mW";
}

std::string show(const LatencyTolerance& tolerance)
{
    if (const std::optional<Microseconds> at_most = tolerance.limit())
        return show(*at_most);
    return tolerance.kernel_text();
}

std::string show(const LatencyBound& bound)
{
    return bound.limit ? show(*bound.limit) : "any";
}

} // namespace nvmepolicy
