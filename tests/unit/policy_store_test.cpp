// SPDX-License-Identifier: LGPL-2.1-or-later
// Which files make up the configuration: etc over run over the vendor's, drop-ins by name, /dev/null masks.
#include "host/policy_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "temporary_directory.h"
#include "unprivileged.h"

namespace nvmepolicy {
namespace {

struct Places {
    TemporaryDirectory at;
    Places() { std::filesystem::create_directory(at / "vendor"); }
    [[nodiscard]] PolicyReading load(const std::optional<std::string>& file = std::nullopt) const
    {
        return load_policy({{at / "etc", at / "run"}, at / "vendor"}, file);
    }
    void main(const std::string& directory, const std::string& profile) const
    {
        at.write(directory + "/nvmepolicyd.toml", "[daemon]\nprofile = \"" + profile + "\"\n");
    }
    void drop_in(const std::string& directory, const std::string& name, const std::string& profile) const
    {
        at.write(directory + "/nvmepolicyd.toml.d/" + name, "[daemon]\nprofile = \"" + profile + "\"\n");
    }
};

std::string profile_of(const PolicyReading& reading)
{
    std::string text;
    for (const Refusal& error : reading.errors)
        text += error.text() + "\n";
    return reading.errors.empty() ? reading.policy.daemon.profile.value : text;
}

TEST(NoConfiguration, IsTheBuiltInOne)
{
    const Places places;
    EXPECT_EQ(profile_of(places.load()), "balanced");
}

TEST(TheVendorsDirectory, IsMissed)
{
    const Places places;
    places.main("etc", "performance");
    std::filesystem::remove(places.at / "vendor");
    EXPECT_EQ(profile_of(places.load()),
              places.at / "vendor"
                  + ": there is no such directory; a program that was moved without it does not know "
                    "which drives hang\n");
}

TEST(TheMainFile, IsTheOneOfTheHighestRankAlone)
{
    const Places places;
    places.main("vendor", "power-saver");
    EXPECT_EQ(profile_of(places.load()), "power-saver");
    places.main("run", "performance");
    EXPECT_EQ(profile_of(places.load()), "performance");
    places.main("etc", "balanced");
    EXPECT_EQ(profile_of(places.load()), "balanced");
    // It takes the place of the others: what it leaves out is the built-in default, not theirs.
    places.at.write("etc/nvmepolicyd.toml", "");
    places.at.write("run/nvmepolicyd.toml", "[daemon]\ndry_run = true\n");
    EXPECT_FALSE(places.load().policy.daemon.dry_run.value);
}

TEST(AMainFile, MaskedByDevNullIsEmpty)
{
    const Places places;
    places.main("vendor", "power-saver");
    places.at.link("etc/nvmepolicyd.toml", "/dev/null");
    EXPECT_EQ(profile_of(places.load()), "balanced");
}

TEST(DropIns, AreMergedInTheOrderOfTheirNamesOverAllDirectories)
{
    const Places places;
    places.main("etc", "balanced");
    places.drop_in("etc", "10-etc.toml", "performance");
    places.drop_in("vendor", "90-vendor.toml", "power-saver");
    EXPECT_EQ(profile_of(places.load()), "power-saver");
    places.drop_in("run", "95-run.toml", "performance");
    EXPECT_EQ(profile_of(places.load()), "performance");
}

TEST(ADropIn, OfTheSameNameIsTakenFromEtc)
{
    const Places places;
    places.drop_in("vendor", "50-x.toml", "power-saver");
    places.drop_in("run", "50-x.toml", "balanced");
    places.drop_in("etc", "50-x.toml", "performance");
    EXPECT_EQ(profile_of(places.load()), "performance");
}

TEST(ADropIn, MaskedByDevNullIsNotRead)
{
    const Places places;
    places.drop_in("vendor", "50-x.toml", "power-saver");
    places.at.link("etc/nvmepolicyd.toml.d/50-x.toml", "/dev/null");
    EXPECT_EQ(profile_of(places.load()), "balanced");
}

TEST(ADropInDirectory, HoldsOtherFilesToo)
{
    const Places places;
    places.at.write("etc/nvmepolicyd.toml.d/README", "not toml");
    places.at.write("etc/nvmepolicyd.toml.d/50-x.toml.bak", "not toml");
    places.at.write("etc/nvmepolicyd.toml.d/50-x.toml~", "not toml");
    places.at.write("etc/nvmepolicyd.toml.d/.toml", "not toml");
    EXPECT_EQ(profile_of(places.load()), "balanced");
}

TEST(AFileGivenByName, TakesThePlaceOfEverythingButDrivesToml)
{
    const Places places;
    places.main("etc", "performance");
    places.drop_in("etc", "50-x.toml", "performance");
    places.at.write("vendor/drives.toml", "[[match]]\nmodel = \"X*\"\nbecause = \"a test\"\nsource = \"here\"\n[match.apst]\n"
                                          "mode = \"observe\"\n");
    const std::string file = places.at.write("my.toml", "[daemon]\nprofile = \"power-saver\"\n");
    const PolicyReading reading = places.load(file);
    EXPECT_EQ(profile_of(reading), "power-saver");
    EXPECT_EQ(reading.policy.matches.size(), 1U);
    places.at.write("my.toml.d/10.toml", "[daemon]\nprofile = \"performance\"\n");
    EXPECT_EQ(profile_of(places.load(file)), "performance");
}

TEST(AFileGivenByName, MustExist)
{
    const Places places;
    EXPECT_EQ(profile_of(places.load(places.at / "none.toml")), places.at / "none.toml" + ": there is no such file (ENOENT)\n");
}

TEST(EveryFileThatCannotBeRead, IsAnError)
{
    const Places places;
    std::filesystem::create_directories(places.at / "etc/nvmepolicyd.toml.d/20-directory.toml");
    ASSERT_EQ(::mkfifo((places.at / "etc/nvmepolicyd.toml.d/30-fifo.toml").c_str(), 0600), 0);
    places.at.link("etc/nvmepolicyd.toml.d/40-dangling.toml", "nowhere");
    places.at.write("etc/nvmepolicyd.toml.d/50-large.toml", std::string(1024 * 1024, '#'));
    const std::string in = places.at / "etc/nvmepolicyd.toml.d/";
    EXPECT_EQ(profile_of(places.load()), in + "20-directory.toml: not a regular file\n"                  //
                                             + in + "30-fifo.toml: not a regular file\n"                 //
                                             + in + "40-dangling.toml: there is no such file (ENOENT)\n" //
                                             + in + "50-large.toml: larger than the 262144 bytes that are allowed here\n");
}

TEST(ADropInDirectory, ThatIsAFileIsAnError)
{
    const Places places;
    places.at.write("etc/nvmepolicyd.toml.d", "");
    EXPECT_EQ(profile_of(places.load()), places.at / "etc/nvmepolicyd.toml.d" + ": cannot be listed: Not a directory\n");
}

TEST(AnUnreadableFile, DoesNotLetTheOneBelowTakeOver)
{
    const Places places;
    places.main("etc", "performance");
    places.main("vendor", "power-saver");
    ASSERT_EQ(::chmod(places.at.path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod((places.at / "etc/nvmepolicyd.toml").c_str(), 0), 0);
    const Unprivileged nobody;
    const PolicyReading reading = places.load();
    EXPECT_EQ(reading.errors.size(), 1U);
    EXPECT_EQ(reading.errors[0].kind, RefusalKind::denied);
}

TEST(ErrorsOfAllFiles, AreReportedAtOnce)
{
    const Places places;
    places.at.write("etc/nvmepolicyd.toml", "[daemon]\nprofle = 1\n");
    places.at.write("run/nvmepolicyd.toml.d/10.toml", "[daemon]\ndry_run = 1\n");
    places.at.write("vendor/nvmepolicyd.toml.d/20.toml", "[");
    const PolicyReading reading = places.load();
    ASSERT_EQ(reading.errors.size(), 3U) << profile_of(reading);
    for (std::size_t i = 0; i < 3; ++i) {
        const char* const files[] = {
            "etc/nvmepolicyd.toml:2:", "run/nvmepolicyd.toml.d/10.toml:2:", "vendor/nvmepolicyd.toml.d/20.toml:1:"};
        EXPECT_TRUE(std::any_of(reading.errors.begin(), reading.errors.end(),
                                [&](const Refusal& error) { return error.where.starts_with(places.at / files[i]); }))
            << files[i] << " in\n"
            << profile_of(reading);
    }
}

} // namespace
} // namespace nvmepolicy
