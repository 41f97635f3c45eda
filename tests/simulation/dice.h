// SPDX-License-Identifier: LGPL-2.1-or-later
// Chance that is the same on every machine: one seed, one run. Source: SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nvmepolicy::simulation {

class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}

    /// 0 … n - 1.
    [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    [[nodiscard]] bool one_in(std::size_t n) { return below(n) == 0; }
    [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most)
    {
        return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1)));
    }
    template <class T>
    [[nodiscard]] const T& any_of(std::span<const T> all)
    {
        return all[below(all.size())];
    }

private:
    std::uint64_t next()
    {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }
    std::uint64_t state_;
};

} // namespace nvmepolicy::simulation
