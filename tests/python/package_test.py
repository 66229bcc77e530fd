"""Builds wheel and sdist, installs the wheel, and runs the example.  package_test.py <path of libtutti.so>"""

import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.path.join(ROOT, "python")
LIBRARY = os.path.abspath(sys.argv[1])


def run(*command, **environment):
    variables = {name: value for name, value in os.environ.items() if name not in ("TUTTI_LIBRARY", "PYTHONPATH")}
    done = subprocess.run(command, text=True, capture_output=True, env={**variables, **environment})
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def build(kind, folder):
    """Builds with the installed scikit-build-core, and the given library instead of a new one. Returns the file's path."""
    run(sys.executable, "-m", "build", kind, "--no-isolation", "-C", f"cmake.define.TUTTI_PREBUILT={LIBRARY}", "-o", folder,
        PYTHON)
    return glob.glob(os.path.join(folder, "*"))[0]


@unittest.skipUnless(shutil.which(os.environ.get("CXX", "c++")), "CMake needs a C++ compiler: install g++, or set CXX")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_wheel_contains_library_and_runs_without_the_source_tree(self):
        wheel = build("--wheel", os.path.join(self.folder, "dist"))
        self.assertRegex(os.path.basename(wheel), r"^tutti-\d+\.\d+\.\d+-py3-none-linux_")
        with zipfile.ZipFile(wheel) as file:
            names = set(file.namelist())
        self.assertLessEqual({"tutti/__init__.py", "tutti/py.typed", "tutti/libtutti.so"}, names)
        self.assertTrue(any(name.endswith("licenses/LICENSE") for name in names), names)
        self.assertFalse([name for name in names if not name.startswith("tutti")], names)

        place = os.path.join(self.folder, "place")
        run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", place, wheel)
        where = run(sys.executable, "-c", "import tutti; print(tutti.so_path, tutti.__version__)", PYTHONPATH=place)
        version = os.path.basename(wheel).split("-")[1]
        self.assertEqual(where.split(), [os.path.join(place, "tutti", "libtutti.so"), version])
        example = os.path.join(ROOT, "examples", "python", "all_reduce.py")
        ranks = [subprocess.Popen([sys.executable, example], stdout=subprocess.PIPE, text=True, env={
            **os.environ, "PYTHONPATH": place, "TUTTI_RANK": str(rank), "TUTTI_RANKS": "2"}) for rank in range(2)]
        outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
        self.assertEqual(outputs, ["2 ranks: mean 1.5, norm 1500, losses [1.0, 0.5]\n", ""])

    @unittest.skipUnless(os.path.exists(os.path.join(ROOT, ".git")), "git lists the sources")
    def test_sdist_contains_all_sources_of_the_library(self):
        sdist = build("--sdist", os.path.join(self.folder, "dist"))
        with tarfile.open(sdist) as file:
            names = {name.split("/", 1)[1] for name in file.getnames() if "/" in name}
            file.extractall(self.folder)
        tracked = run("git", "-C", ROOT, "ls-files", "CMakeLists.txt", "LICENSE", "algorithms", "cmake", "include", "src",
                      "transports").split()
        self.assertEqual({"library/" + name for name in tracked} - names, set())
        self.assertFalse([name for name in names if "__pycache__" in name or name.endswith(".so")])

        # CMake finds all files that it needs. The version is that of the header.
        unpacked = sdist[:-len(".tar.gz")].replace(os.path.join(self.folder, "dist"), self.folder)
        summary = run("cmake", "-S", unpacked, "-B", os.path.join(self.folder, "build"), "-DTUTTI_CUDA=OFF",
                      "-DSKBUILD_METADATA_DIR=meta")
        self.assertRegex(summary, f"tutti {os.path.basename(unpacked).split('-')[1]}, Release")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
