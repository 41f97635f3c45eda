// SPDX-License-Identifier: LGPL-2.1-or-later
// What a function returns when it can fail: a value, or a Refusal that a person can act on.
// The member names are those of std::expected, which C++20 does not have; this header can become one `using` some day.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace nvmepolicy {

/// What kind of "no" it was. The next step depends on it, the message does not.
enum class RefusalKind {
    invalid,     ///< A text, page or argument is not what its format allows. Asking again changes nothing.
    absent,      ///< There is no such thing, and that may well be right.
    gone,        ///< It was there and has left (hot-unplug).
    try_later,   ///< Passing: a reset, a controller that is not live yet, a busy object.
    denied,      ///< This user or this sandbox may not.
    unsupported, ///< Device or kernel does not know the request.
    timed_out,   ///< No answer within the time that we were willing to wait; the request may still be under way.
    failed,      ///< Everything else.
};

/// Where, which value, and why. The three together are one line of a message and name everything needed to act.
struct Refusal {
    std::string where;  ///< file:line:column: key, attribute path, or command and controller.
    std::string value;  ///< What was found or asked; empty where there is none.
    std::string reason; ///< Why not, and what is allowed.
    RefusalKind kind = RefusalKind::failed;

    /// `where: "value": reason`, leaving out what is empty.
    [[nodiscard]] std::string text() const
    {
        std::string line = where;
        if (!value.empty())
            line += (line.empty() ? "\"" : ": \"") + value + "\"";
        return line.empty() ? reason : line + ": " + reason;
    }
    friend bool operator==(const Refusal&, const Refusal&) = default;
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}           // NOLINT: implicit, as std::expected
    Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {} // NOLINT
    explicit operator bool() const { return state_.index() == 0; }
    [[nodiscard]] bool has_value() const { return state_.index() == 0; }

    const T& operator*() const& { return checked(); }
    T& operator*() & { return const_cast<T&>(checked()); }
    T&& operator*() && { return std::move(const_cast<T&>(checked())); }
    const T* operator->() const { return &checked(); }
    T* operator->() { return &const_cast<T&>(checked()); }
    [[nodiscard]] const Refusal& error() const
    {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    friend bool operator==(const Result&, const Result&) = default;

private:
    const T& checked() const
    {
        assert(has_value());
        return *std::get_if<0>(&state_);
    }
    std::variant<T, Refusal> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Refusal refusal) : state_(std::move(refusal)) {} // NOLINT: implicit, as std::expected
    explicit operator bool() const { return has_value(); }
    [[nodiscard]] bool has_value() const { return state_.index() == 0; }
    [[nodiscard]] const Refusal& error() const
    {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    friend bool operator==(const Result&, const Result&) = default;

private:
    std::variant<std::monostate, Refusal> state_;
};

} // namespace nvmepolicy
