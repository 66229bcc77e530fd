// Name, permissions and contents of the tune file when it is replaced.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/tuner/tune_cache.h"
#include "tests/tuner/folder.h"

namespace {

struct Events {
  std::vector<std::string> seen;
  off_t synced_bytes = 0;
  bool fail_sync = false;
  bool refuse_owner = false, refuse_group = false;
};
Events& events() {
  static Events all;
  return all;
}

}  // namespace

// Replaces the system's functions: the test checks the order of fsync and rename.
extern "C" int fsync(int file) {
  struct stat state = {};
  ::fstat(file, &state);
  events().seen.emplace_back("fsync");
  events().synced_bytes = state.st_size;
  if (events().fail_sync) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  events().seen.emplace_back("rename");
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int fchown(int file, uid_t owner, gid_t group) noexcept {
  if ((events().refuse_owner && owner != static_cast<uid_t>(-1)) ||
      (events().refuse_group && group != static_cast<gid_t>(-1))) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fchown, file, owner, group));
}

namespace tutti::test {
namespace {

using test::Folder;

TuneCache::Machine machine(const std::string& name) {
  return {name, {{Collective::reduce, 4, {{"direct", Protocol::simple, 8, 1, 2, 3}}}}};
}

mode_t mode_of(const std::string& path) {
  struct stat state = {};
  EXPECT_EQ(::stat(path.c_str(), &state), 0) << path;
  return state.st_mode & 07777;
}

void add(const std::string& path, const std::string& name) {
  const Status added = add_to_tune_cache(path, machine(name));
  EXPECT_TRUE(added.ok()) << added.message();
}

std::vector<std::string> names_in(const std::string& path) {
  auto cache = read_tune_cache(path);
  EXPECT_TRUE(cache.ok()) << path;
  std::vector<std::string> names;
  for (const TuneCache::Machine& each : cache.value().machines) names.push_back(each.name);
  return names;
}

TEST(TuneCacheFile, CanBeCreated_InFoldersThatExist) {
  const Folder folder;
  EXPECT_TRUE(check_can_create(folder.file()).ok());
  EXPECT_TRUE(check_can_create("tune").ok()) << "in the current folder";
  EXPECT_EQ(folder.files(), 0U) << "nothing is created";
  const std::string missing = folder / "missing/tune";
  EXPECT_EQ(check_can_create(missing).message(), "open " + missing + ": No such file or directory");
}

TEST(TuneCacheFile, KeepsSymbolicLinks) {
  const Folder folder;
  std::filesystem::create_directory(folder / "shared");
  const std::string target = folder / "shared/tune", link = folder / "tune", second = folder / "second";
  std::filesystem::create_symlink("shared/tune", link);
  std::filesystem::create_symlink(link, second);
  add(link, "first");  // Also for a link whose target does not exist yet.
  add(second, "second");
  add(target, "third");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_symlink(second));
  EXPECT_FALSE(std::filesystem::is_symlink(target));
  EXPECT_EQ(names_in(target), (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(folder.files(), 3U);
}

TEST(TuneCacheFile, KeepsMode_WhenReplaced) {
  const Folder folder;
  const std::string path = folder / "tune";
  for (const mode_t mode : {0664, 0600, 0640, 0666}) {
    add(path, "m");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    add(path, "n");
    EXPECT_EQ(mode_of(path), mode);
  }
}

TEST(TuneCacheFile, UsesUmask_WhenNew) {
  const Folder folder;
  const std::string path = folder / "tune";
  const mode_t before = ::umask(027);
  add(path, "m");
  ::umask(before);
  EXPECT_EQ(mode_of(path), 0640U);
}

// The file gets another group of this process, since only the superuser may use any group.
TEST(TuneCacheFile, KeepsGroup_WhenReplaced) {
  const Folder folder;
  const std::string path = folder / "tune";
  add(path, "m");
  constexpr gid_t kGroup = 4242;
  if (::chown(path.c_str(), static_cast<uid_t>(-1), kGroup) != 0) GTEST_SKIP() << "no rights to give files away";
  add(path, "n");
  struct stat state = {};
  ASSERT_EQ(::stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_gid, kGroup);
}

// Models a user who may not change owners, or who is not in the group.
TEST(TuneCacheFile, DropsGroupPermissions_WhenGroupIsLost) {
  const Folder folder;
  const std::string path = folder / "tune";
  for (const bool group : {false, true}) {
    add(path, "m");
    ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
    events() = {};
    events().refuse_owner = true;
    events().refuse_group = group;
    add(path, "n");
    events() = {};
    EXPECT_EQ(mode_of(path), group ? 0604U : 0664U);
  }
}

TEST(TuneCacheFile, IsSynced_BeforeRename) {
  const Folder folder;
  const std::string path = folder / "tune";
  add(path, "m");
  events() = {};
  add(path, "n");
  EXPECT_EQ(events().seen, (std::vector<std::string>{"fsync", "rename"}));
  EXPECT_EQ(events().synced_bytes, static_cast<off_t>(std::filesystem::file_size(path)));
}

TEST(TuneCacheFile, StaysUnchanged_WhenDiskFails) {
  const Folder folder;
  const std::string path = folder / "tune";
  add(path, "m");
  events().fail_sync = true;
  const Status added = add_to_tune_cache(path, machine("n"));
  events().fail_sync = false;
  EXPECT_NE(added.message().find("save " + path), std::string::npos) << added.message();
  EXPECT_EQ(names_in(path), std::vector<std::string>{"m"});
  EXPECT_EQ(folder.files(), 1U);
}

// In a container each run has the same process id, and a killed run may have left its file.
TEST(TuneCacheFile, IgnoresTemporaryFilesOfOthers) {
  const Folder folder;
  const std::string path = folder / "tune";
  for (int i = 0; i < 100; ++i)
    std::ofstream(path + "." + std::to_string(::getpid()) + "-" + std::to_string(i)) << "half a file";
  for (const char* name : {"first", "second"}) add(path, name);
  EXPECT_EQ(names_in(path), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(folder.files(), 101U);
}

}  // namespace
}  // namespace tutti::test
